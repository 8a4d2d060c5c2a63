//! What is shown, and did it really happen?
//!
//! Each step says what it is about, runs curl, and compares what the sandbox saw and what the
//! servers received with what has to be.

use outgate_hooks::{Phase, Verdict};
use serde_json::{Value, json};

use super::curl::Seen;
use super::stage::{GREETING, INSIDE, Stage};
use crate::failure::Failure;

/// One thing that a person gets to see.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) about: String,
    pub(super) command: Option<String>,
    /// Lines of what was observed, a label and a value each.
    pub(super) observed: Vec<(String, String)>,
    /// What has to be true, and whether it is.
    pub(super) checks: Vec<(String, bool)>,
}

/// Makes a step happen.
type Show = fn(&Stage) -> Result<Step, Failure>;

/// What the audit has to tell: verdict, domain or hook, reason.
const STORY: [[&str; 3]; 7] = [
    ["allow", "docs.example.test", "-"],
    ["deny", "evil.example.test", "domain_not_allowed"],
    ["allow", "api.example.test", "-"],
    ["deny", "internal.example.test", "address_not_allowed"],
    ["deny", "privacy-gate", "-"],
    ["allow", "api.example.test", "-"],
    ["allow", "audit-logging", "-"],
];

/// All of them, in the order of the story.
pub(super) const STEPS: [Show; 7] = [allowed, refused, injected, shut, denied, told, audited];

fn allowed(stage: &Stage) -> Result<Step, Failure> {
    let url = stage.url("docs.example.test");
    let seen = stage.curl.get(&url)?;
    let received = stage.origin.take_received();
    Ok(Step {
        title: "allowed",
        about: "docs.example.test is in the allowlist".to_owned(),
        command: Some(stage.curl.command(&url)),
        observed: vec![answer(&seen)],
        checks: vec![
            ("the origin answered".to_owned(), seen.status() == Some(200) && seen.body == GREETING),
            ("over TLS, to one request".to_owned(), received.len() == 1),
        ],
    })
}

fn refused(stage: &Stage) -> Result<Step, Failure> {
    let url = stage.url("evil.example.test");
    let seen = stage.curl.get(&url)?;
    Ok(Step {
        title: "refused",
        about: "evil.example.test is not".to_owned(),
        command: Some(stage.curl.command(&url)),
        observed: vec![answer(&seen)],
        checks: vec![
            refusal(&seen, "domain_not_allowed"),
            ("nothing left the gateway".to_owned(), stage.origin.take_received().is_empty()),
        ],
    })
}

fn injected(stage: &Stage) -> Result<Step, Failure> {
    let url = stage.url("api.example.test");
    let seen = stage.curl.get(&url)?;
    let received = stage.origin.take_received();
    let values = received.first().map(|request| request.header("authorization"));
    let values = values.unwrap_or_default();
    Ok(Step {
        title: "injected",
        about: "api.example.test wants a secret that the sandbox does not hold".to_owned(),
        command: Some(stage.curl.command(&url)),
        observed: vec![
            ("sandbox sent".to_owned(), seen.sent().join(" · ")),
            ("origin received".to_owned(), format!("Authorization: {}", values.join(", "))),
        ],
        checks: vec![
            ("the origin got it, once".to_owned(), values == [stage.secret.as_str()]),
            ("the sandbox never saw it".to_owned(), !seen.shows(&stage.secret)),
            ("and got its answer".to_owned(), seen.status() == Some(200) && seen.body == GREETING),
        ],
    })
}

fn shut(stage: &Stage) -> Result<Step, Failure> {
    let port = stage.service.port();
    let url = format!("http://internal.example.test:{port}/");
    let seen = stage.curl.get(&url)?;
    let met = stage.service.take_received();
    let control = stage.curl.get_directly(&format!("http://127.0.0.1:{port}/"))?;
    Ok(Step {
        title: "shut",
        about: format!(
            "internal.example.test is in the allowlist too, but leads to 127.0.0.1:{port}, where a \
             service of this machine listens"
        ),
        command: Some(stage.curl.command(&url)),
        observed: vec![answer(&seen)],
        checks: vec![
            refusal(&seen, "address_not_allowed"),
            ("the service met nobody from the sandbox".to_owned(), met.is_empty()),
            ("though it answers everybody else here".to_owned(), control.body == INSIDE),
        ],
    })
}

fn denied(stage: &Stage) -> Result<Step, Failure> {
    let event = viewing("/private/salaries.csv");
    let answer = stage.ask(Phase::PreToolExecution, &event)?;
    let reason = answer.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(Step {
        title: "denied",
        about: "an agent wants to read a file, and a hook, which is a command, says no".to_owned(),
        command: None,
        observed: vec![
            ("tool call".to_owned(), event["tool_call"].to_string()),
            ("reason".to_owned(), reason.clone()),
        ],
        checks: vec![
            ("the call is denied".to_owned(), answer.decision == Verdict::Deny),
            ("with the hook's reason".to_owned(), reason == "not for agents"),
        ],
    })
}

fn told(stage: &Stage) -> Result<Step, Failure> {
    let event = viewing("/public/prices.csv");
    let answer = stage.ask(Phase::PostToolExecution, &event)?;
    let received = stage.origin.take_received();
    let values = received.first().map(|request| request.header("authorization"));
    let values = values.unwrap_or_default();
    let failed = answer.outcomes.iter().any(|outcome| outcome.cause.is_some());
    Ok(Step {
        title: "told",
        about: "it read another one, and a hook, which is a URL, is told".to_owned(),
        command: None,
        observed: vec![
            ("tool call".to_owned(), event["tool_call"].to_string()),
            ("origin received".to_owned(), format!("Authorization: {}", values.join(", "))),
        ],
        checks: vec![
            ("the origin was told, once".to_owned(), received.len() == 1 && !failed),
            ("with a secret that no hooks file has".to_owned(), values == [stage.secret.as_str()]),
        ],
    })
}

fn viewing(path: &str) -> Value {
    json!({"tool_call": {"name": "view_file", "args": {"path": path}}})
}

fn audited(stage: &Stage) -> Result<Step, Failure> {
    let text = stage.audit_lines(STORY.len())?;
    let lines: Vec<Value> = text.lines().flat_map(serde_json::from_str).collect();
    let told = lines.iter().map(|line| {
        let field = |name| line.get(name).and_then(Value::as_str).unwrap_or("-");
        let hook = line["hook"]["group"].as_str().unwrap_or("-");
        let whom = if line["kind"] == "hook" { hook } else { field("domain") };
        [field("verdict"), whom, field("reason")]
    });
    let told: Vec<_> = told.collect();
    Ok(Step {
        title: "audited",
        about: format!("one line each in {}", stage.audit.display()),
        command: None,
        observed: told
            .iter()
            .map(|[verdict, domain, reason]| (verdict.to_string(), format!("{domain} {reason}")))
            .collect(),
        checks: vec![
            ("what was shown, and nothing else".to_owned(), told == STORY),
            ("without the secret".to_owned(), !text.contains(&stage.secret)),
        ],
    })
}

fn answer(seen: &Seen) -> (String, String) {
    let text = seen.message().unwrap_or_else(|| seen.body.clone());
    let status = seen.status().map_or("no answer".to_owned(), |status| status.to_string());
    ("answer".to_owned(), format!("{status} {text}"))
}

fn refusal(seen: &Seen, code: &str) -> (String, bool) {
    let named = seen.status() == Some(403) && seen.reason() == Some(code);
    (format!("refused with {code}"), named && seen.message().is_some())
}
