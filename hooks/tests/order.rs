//! In which order are handlers asked, what does each ending mean for the next, and do many calls
//! at once disturb each other?

#[path = "support/scene.rs"]
mod scene;

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::Full;
use outgate_hooks::{
    BrokenFile, Cause, Ending, Engine, Event, Failure, HookSet, HookTransport, OnFailure, Outcome,
    Phase, Run, Verdict, compile,
};
use outgate_policy::EnvironmentId;
use scene::{Nowhere, ask, ask_about, before_every_call, call, endings, hooks};
use serde_json::{Value, json};

/// A URL whose path says what it answers, and after how many seconds: `/deny/2`.
struct Obeying;

impl HookTransport for Obeying {
    type Body = Full<Bytes>;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, Failure> {
        let path = request.uri().path().to_owned();
        let mut words = path.split('/').skip(1);
        let word = words.next().unwrap_or_default();
        let seconds = words.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let body = match word {
            "echo" => {
                let payload: Value = serde_json::from_slice(request.body()).expect("JSON");
                let number = payload["tool_call"]["args"]["number"].to_string();
                json!({"decision": "deny", "reason": number}).to_string()
            }
            "broken" => return Err(Failure::new(Cause::Transport, "broken")),
            word => json!({"decision": word, "reason": path}).to_string(),
        };
        Ok(Response::new(Full::from(body)))
    }
}

fn url(path: &str) -> Value {
    json!({"type": "http", "url": format!("https://hooks.example.com/{path}"), "timeout": 5})
}

fn strict(path: &str) -> Value {
    let mut handler = url(path);
    handler["on_failure"] = json!("deny");
    handler
}

async fn verdict(set: &HookSet) -> (Verdict, String) {
    let answer = ask(set, &Nowhere, &Obeying).await;
    (answer.decision, endings(&answer).join(","))
}

#[tokio::test(start_paused = true)]
async fn the_first_valid_deny_ends_the_run_and_no_failure_before_it_hides_it() {
    for (handlers, decision, expected) in [
        (vec!["deny", "broken"], Verdict::Deny, "deny,skipped"),
        (vec!["broken", "deny"], Verdict::Deny, "transport,deny"),
        (vec!["allow", "deny/3"], Verdict::Deny, "allow,deny"),
        (vec!["deny/3", "allow"], Verdict::Deny, "deny,skipped"),
        (vec!["deny", "deny/60"], Verdict::Deny, "deny,skipped"),
        (vec!["deny/60", "deny"], Verdict::Deny, "timeout,deny"),
        (vec!["deny", "deny"], Verdict::Deny, "deny,skipped"),
        (vec!["allow", "allow"], Verdict::Allow, "allow,allow"),
        (vec!["broken", "perhaps", "allow/60"], Verdict::Allow, "transport,invalid_output,timeout"),
        (vec![], Verdict::Allow, ""),
    ] {
        let set = before_every_call(&handlers.iter().map(|path| url(path)).collect::<Vec<_>>());
        assert_eq!(verdict(&set).await, (decision, expected.to_owned()), "{handlers:?}");
    }
}

#[tokio::test]
async fn groups_rules_and_handlers_run_in_the_order_of_the_file() {
    // Three groups as text: a `Value` would sort them by name.
    let z = json!({"pre_tool_execution": [
        {"matcher": "delete_file", "hooks": [url("deny/0/unconcerned")]},
        {"matcher": "view_.*", "hooks": [url("allow/0/1"), url("allow/0/2")]},
        {"hooks": [url("allow/0/3")]}]});
    let off = json!({"enabled": false, "pre_tool_execution": [{"hooks": [url("deny/0/off")]}]});
    let a = json!({"post_tool_execution": [{"hooks": [url("deny/0/post")]}],
                   "pre_tool_execution": [{"hooks": [url("deny/0/4"), url("allow/0/5")]}]});
    let text = format!(r#"{{"z": {z}, "off": {off}, "a": {a}}}"#);
    let set = HookSet::merge([&compile(&text).unwrap().file]);
    let answer = ask(&set, &Nowhere, &Obeying).await;
    let places: Vec<_> = answer
        .outcomes
        .iter()
        .map(|outcome| (outcome.group.as_str(), outcome.handler.as_deref().unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            ("z", "pre_tool_execution[1].hooks[0]"),
            ("z", "pre_tool_execution[1].hooks[1]"),
            ("z", "pre_tool_execution[2].hooks[0]"),
            ("a", "pre_tool_execution[0].hooks[0]"),
            ("a", "pre_tool_execution[0].hooks[1]"),
        ]
    );
    assert_eq!(answer.reason.unwrap().as_str(), "/deny/0/4");
}

#[tokio::test(start_paused = true)]
async fn on_failure_deny_makes_each_failure_close() {
    for path in ["broken", "perhaps", "deny/60"] {
        assert_eq!(verdict(&before_every_call(&[url(path)])).await.0, Verdict::Allow, "{path}");
        let closed = before_every_call(&[strict(path), url("allow")]);
        let answer = ask(&closed, &Nowhere, &Obeying).await;
        assert_eq!(answer.decision, Verdict::Deny, "{path}");
        assert_eq!(endings(&answer)[1], "skipped", "{path}");
        assert!(answer.reason.unwrap().as_str().contains(answer.outcomes[0].cause.unwrap().code()));
    }
    let of_group = hooks(&json!({"g": {"on_failure": "deny",
        "pre_tool_execution": [{"hooks": [url("broken")]}]}}));
    assert_eq!(verdict(&of_group).await.0, Verdict::Deny);
    let mut lenient = url("broken");
    lenient["on_failure"] = json!("allow");
    let of_handler = hooks(&json!({"g": {"on_failure": "deny",
        "pre_tool_execution": [{"hooks": [lenient]}]}}));
    assert_eq!(verdict(&of_handler).await.0, Verdict::Allow);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_stands_against_the_call_says_so_also_if_it_is_a_failure() {
    let denied = async |handlers: &[Value], phase: Phase| -> Vec<bool> {
        let set = hooks(&json!({"g": {phase.as_str(): [{"hooks": handlers}]}}));
        let (engine, event) = (Engine::default(), call(&json!({})));
        let asked = ask_about(&engine, &set, &event, phase, &Nowhere, &Obeying);
        asked.await.unwrap().outcomes.iter().map(|outcome| outcome.denied).collect()
    };
    let handlers = [url("broken"), url("allow"), strict("broken"), url("deny")];
    assert_eq!(denied(&handlers, Phase::PreToolExecution).await, [false, false, true, false]);
    assert_eq!(denied(&[url("deny")], Phase::PreToolExecution).await, [true]);
    assert_eq!(denied(&handlers, Phase::PostToolExecution).await, [false; 4]);
}

#[tokio::test]
async fn a_disabled_group_fails_on_every_event_and_its_on_failure_is_obeyed() {
    let file = |extra: Value| {
        let mut bad = json!({"pre_tool_excution": []});
        bad.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        hooks(&json!({"bad": bad, "good": {"pre_tool_execution": [{"hooks": [url("allow")]}]}}))
    };
    assert_eq!(verdict(&file(json!({}))).await, (Verdict::Allow, "invalid_group,allow".to_owned()));
    let closed = file(json!({"on_failure": "deny"}));
    assert_eq!(verdict(&closed).await, (Verdict::Deny, "invalid_group,skipped".to_owned()));
    let after = ask_about(
        &Engine::default(),
        &closed,
        &call(&json!({})),
        Phase::PostToolExecution,
        &Nowhere,
        &Obeying,
    )
    .await
    .unwrap();
    assert_eq!(
        (after.decision, endings(&after).join(",")),
        (Verdict::Allow, "invalid_group".to_owned())
    );
}

#[tokio::test]
async fn a_broken_file_fails_on_every_event_and_its_on_failure_is_obeyed() {
    for (on_failure, decision) in
        [(OnFailure::Allow, Verdict::Allow), (OnFailure::Deny, Verdict::Deny)]
    {
        let mut set = before_every_call(&[url("allow")]);
        set.broken.push(BrokenFile { name: "/.agents/hooks.json".to_owned(), on_failure });
        let (decided, endings) = verdict(&set).await;
        assert_eq!(decided, decision);
        assert!(endings.starts_with("invalid_file,"), "{endings}");
    }
}

#[tokio::test]
async fn only_events_of_the_kinds_of_a_group_fire_it() {
    let event = |kind: &str| {
        let text =
            json!({"tool_call": {"name": "view_file", "args": {}}, "kind": kind}).to_string();
        Event::parse(text.as_bytes()).unwrap()
    };
    let rule = json!([{"hooks": [url("deny")]}]);
    for (group, fired) in [
        (json!({"pre_tool_execution": rule}), vec!["builtin"]),
        (
            json!({"applies_to": ["function", "mcp_server"], "pre_tool_execution": rule}),
            vec!["function", "mcp_server"],
        ),
        (
            json!({"applies_to": ["builtin", "mcp_server"], "pre_tool_execution": rule}),
            vec!["builtin", "mcp_server"],
        ),
        (json!({"pre_tool_execution": {}}), vec!["builtin"]),
        (json!({"applies_to": ["function"], "pre_tool_execution": {}}), vec!["function"]),
    ] {
        let set = hooks(&json!({"g": group}));
        for kind in ["builtin", "function", "mcp_server"] {
            let (engine, event) = (Engine::default(), event(kind));
            let asked =
                ask_about(&engine, &set, &event, Phase::PreToolExecution, &Nowhere, &Obeying);
            assert_eq!(
                !asked.await.unwrap().outcomes.is_empty(),
                fired.contains(&kind),
                "{group}, {kind}"
            );
        }
    }
}

#[tokio::test]
async fn a_matcher_of_either_generation_fires_once_and_the_name_stays() {
    let set = hooks(&json!({"g": {"pre_tool_execution": [
        {"matcher": "read_file|view_file", "hooks": [url("deny")]}]}}));
    let answering = scene::Answering::status(200, r#"{"decision": "deny"}"#);
    let event = Event::parse(br#"{"tool_call": {"name": "read_file", "args": {}}}"#).unwrap();
    let answer =
        ask_about(&Engine::default(), &set, &event, Phase::PreToolExecution, &Nowhere, &answering)
            .await
            .unwrap();
    assert_eq!(endings(&answer), ["deny"]);
    let asked = answering.asked.into_inner().unwrap();
    assert!(asked[0].body().starts_with(br#"{"tool_call":{"name":"read_file","#));
}

#[test]
fn the_first_of_two_groups_with_one_name_stays() {
    let file = |path: &str| {
        compile(
            &json!({
        "gate": {"pre_tool_execution": [{"hooks": [url(path)]}]},
        (path): {"enabled": false}})
            .to_string(),
        )
        .unwrap()
        .file
    };
    let (operator, root, directory) = (file("operator"), file("root"), file("directory"));
    let merged = HookSet::merge([&operator, &root, &directory]);
    let names: Vec<_> = merged.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["gate", "operator", "root", "directory"]);
    assert!(std::sync::Arc::ptr_eq(&merged.groups[0], &operator.groups[0]));
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_is_not_the_handlers_time() {
    let set = before_every_call(&[url("deny/1")]);
    let engine = Engine::default();
    let event = call(&json!({}));
    let calls = (0..100)
        .map(|_| ask_about(&engine, &set, &event, Phase::PreToolExecution, &Nowhere, &Obeying));
    for answer in join_all(calls).await {
        let answer = answer.unwrap();
        assert_eq!(answer.decision, Verdict::Deny, "{answer:?}");
        assert_eq!(answer.outcomes[0].milliseconds, 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_may_wait_are_told_to_ask_again() {
    let set = before_every_call(&[url("deny/1")]);
    let engine = Engine::new(2, 640 << 10);
    let event = call(&json!({}));
    let calls = (0..20)
        .map(|_| ask_about(&engine, &set, &event, Phase::PreToolExecution, &Nowhere, &Obeying));
    let (answered, busy): (Vec<_>, Vec<_>) =
        join_all(calls).await.into_iter().partition(Result::is_ok);
    assert_eq!((answered.len(), busy.len()), (10, 10));
    assert!(answered.iter().flatten().all(|answer| answer.decision == Verdict::Deny));
    assert!(
        ask_about(&engine, &set, &event, Phase::PreToolExecution, &Nowhere, &Obeying).await.is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn answers_never_cross_between_calls() {
    let set = before_every_call(&[url("echo/1")]);
    let engine = Engine::default();
    let events: Vec<_> = (0..200).map(|number| call(&json!({"number": number}))).collect();
    let calls = events
        .iter()
        .map(|event| ask_about(&engine, &set, event, Phase::PreToolExecution, &Nowhere, &Obeying));
    for (number, answer) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap().reason.unwrap().as_str(), number.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_told_once_also_of_a_run_that_nobody_waits_for() {
    let set = before_every_call(&[url("allow"), url("deny/3"), url("allow")]);
    let (engine, event) = (Engine::default(), call(&json!({})));
    let told = std::sync::Mutex::new(Vec::new());
    let observe = |outcome: &Outcome| {
        let cause = outcome.cause.map(Cause::code);
        told.lock().unwrap().push((outcome.outcome, cause, outcome.milliseconds));
    };
    let environment = EnvironmentId::parse("env_1").unwrap();
    let run = || Run {
        id: "run".to_owned(),
        environment: &environment,
        phase: Phase::PreToolExecution,
        event: &event,
        spawner: &Nowhere,
        transport: &Obeying,
        observe: &observe,
    };
    let waited = tokio::time::timeout(Duration::from_secs(2), engine.run(&set, run())).await;
    assert!(waited.is_err());
    let first = (Ending::Allow, None, 0);
    let cancelled = (Ending::Failed, Some("cancelled"), 2000);
    assert_eq!(std::mem::take(&mut *told.lock().unwrap()), [first, cancelled]);
    engine.run(&set, run()).await.unwrap();
    let rest = [first, (Ending::Deny, None, 3000), (Ending::Skipped, None, 0)];
    assert_eq!(*told.lock().unwrap(), rest);
}
