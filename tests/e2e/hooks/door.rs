//! The door on the management address of `outgate serve`.

use outgate_tests::prelude::*;
use serde_json::Value;

use super::scene::{Place, Running, before_every_call, closed, only, post, telling, view};

const DOOR: &str = "/v1/environments/env_one/hooks/pre_tool_execution";

#[test]
fn answers_events_of_its_environments_and_nothing_else() {
    isolated(|| {
        let gateway = world!().gateway(closed());
        let answer = post(&gateway, DOOR, &view("/x").to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        assert_eq!((&answer["decision"], &answer["outcomes"]), (&json!("allow"), &json!([])));
        assert_eq!(answer["id"].as_str().map(str::len), Some(32));
        for (path, body, status) in [
            (DOOR, "{}".to_owned(), 400),
            (DOOR, r#"{"tool_call": {"name": "x", "args": {"a": 1, "a": 1}}}"#.to_owned(), 400),
            (DOOR, " ".repeat((8 << 20) + 1), 400),
            ("/v1/environments/env_two/hooks/pre_tool_execution", view("/x").to_string(), 404),
            ("/v1/environments/env_one/hooks/pre_tool_excution", view("/x").to_string(), 404),
        ] {
            let refused = post(&gateway, path, &body);
            assert_eq!(refused.status, status, "{path}: {}", refused.text());
            assert!(refused.json()["error"]["message"].is_string());
        }
    });
}

#[test]
fn the_key_is_needed() {
    isolated(|| {
        let gateway = world!().gateway(closed());
        let request = format!("POST {DOOR} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}");
        assert_eq!(gateway.management(request).status, 401);
    });
}

#[test]
fn without_a_sandbox_no_command_runs_and_that_is_said_everywhere() {
    isolated(|| {
        let world = world!();
        let place = Place::new(&world, &closed());
        let mark = place.path("mark");
        let command = format!("touch {}; echo '{{\"decision\": \"deny\"}}'", mark.display());
        let hooks = before_every_call(&json!({"type": "command", "command": command}));
        place.write("operator.json", &hooks.to_string());
        let file = format!("[hooks]\nfile = {:?}\n", place.path("operator.json"));
        let mut gateway =
            world.gateway_builder().environment(&closed()).configuration(&file).start();
        let answer = post(&gateway, DOOR, &view("/x").to_string()).json();
        assert_eq!((only(&answer), &answer["decision"]), ("no_sandbox", &json!("allow")));
        assert!(!mark.exists());
        assert!(gateway.wait_log("no_sandbox"));
        let series = "outgate_hooks_total{event=\"pre_tool_execution\",outcome=\"failed\",cause=\"no_sandbox\"}";
        assert!(wait_until(Duration::from_secs(10), || gateway.metrics().contains(series)));
        let lines = gateway.final_audit();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((&line["kind"], &line["verdict"]), (&json!("hook"), &json!("allow")));
        assert_eq!(
            (&line["hook"]["group"], &line["hook"]["cause"]),
            (&json!("gate"), &json!("no_sandbox"))
        );
    });
}

#[test]
fn commands_run_beside_the_gateway_only_where_the_operator_dares() {
    isolated(|| {
        let world = world!();
        let place = Place::new(&world, &closed());
        let hooks = json!({"type": "command", "command": "echo '{\"decision\": \"deny\"}'"});
        place.write("operator.json", &before_every_call(&hooks).to_string());
        let file = format!(
            "[hooks]\nfile = {:?}\ndangerously_run_hooks_on_host = true\n",
            place.path("operator.json")
        );
        let gateway = world.gateway_builder().environment(&closed()).configuration(&file).start();
        assert!(gateway.wait_log("dangerously_run_hooks_on_host"));
        let answer = post(&gateway, DOOR, &view("/x").to_string()).json();
        assert_eq!(only(&answer), "deny");
    });
}

#[test]
fn commands_run_in_the_namespaces_that_the_operator_names() {
    isolated(|| {
        let world = world!();
        let place = Place::new(&world, &closed());
        let _running = sandbox(&place, "86398");
        let gateway = world.gateway_builder().configuration(&naming(&place, true)).start();
        let answer = post(&gateway, DOOR, &view("/x").to_string()).json();
        assert_eq!(answer["reason"], "of-this-sandbox test /workspace", "{answer}");
    });
}

#[test]
fn a_sandbox_that_the_operator_names_later_is_found() {
    isolated(|| {
        let world = world!();
        let place = Place::new(&world, &closed());
        let _running = sandbox(&place, "86397");
        let gateway = world.gateway_builder().configuration(&naming(&place, false)).start();
        let asked = || post(&gateway, DOOR, &view("/x").to_string()).json();
        assert_eq!(only(&asked()), "no_sandbox");
        gateway.set_configuration(&naming(&place, true));
        gateway.reload();
        assert!(wait_until(Duration::from_secs(20), || only(&asked()) == "deny"), "{}", asked());
    });
}

#[test]
fn hooks_from_sources_fail_visibly_where_the_named_sandbox_is_not_there() {
    isolated(|| {
        let world = world!();
        let place = Place::new(&world, &closed());
        place.write("one.pid", "0\n");
        let file = naming(&place, true);
        place.write("operator.json", "{}");
        place.write("env_one.json", &with_hooks().to_string());
        let gateway = world.gateway_builder().configuration(&file).start();
        let asked = || post(&gateway, DOOR, &view("/x").to_string()).json();
        let failed = || asked()["outcomes"][0]["cause"] == "no_sandbox";
        assert!(wait_until(Duration::from_secs(20), failed), "{}", asked());
    });
}

/// A sandbox with a working directory, found by one of its processes.
fn sandbox(place: &Place, seconds: &str) -> Running {
    std::fs::create_dir(place.path("root/workspace")).expect("the folder is the test's");
    let script = format!("echo of-this-sandbox > /tmp/mark; sleep {seconds} & touch here");
    let running = place.run(&script);
    assert!(place.comes("here"), "the command runs");
    // As the host numbers it: the one that sleeps below this test's sandbox.
    let sleeping = format!("sleep\0{seconds}\0");
    let pid = outgate_tests::run::process_of(&sleeping).expect("the sleeping process");
    place.write("one.pid", &format!("{pid}\n"));
    running
}

/// What an operator says of an environment in that sandbox, or before there is one.
fn naming(place: &Place, sandbox: bool) -> String {
    let command = telling("echo $(cat /tmp/mark) $MODE $(pwd)");
    let hooks = json!({"type": "command", "command": command});
    place.write("operator.json", &before_every_call(&hooks).to_string());
    place.write("env_one.json", &closed().to_string());
    let operator = place.path("operator.json");
    let environment = place.path("env_one.json");
    let file = format!("[hooks]\nfile = {operator:?}\n[[environment]]\nfile = {environment:?}\n");
    match sandbox {
        true => format!("{file}namespaces_of = {:?}\n", place.path("one.pid")),
        false => file,
    }
}

/// An environment whose sources bring a hook along.
fn with_hooks() -> Value {
    let hooks = before_every_call(&json!({"type": "command", "command": "true"})).to_string();
    let mut environment = closed();
    environment["sources"] =
        json!([{"type": "inline", "target": ".agents/hooks.json", "content": hooks}]);
    environment
}

#[test]
fn hooks_that_come_from_sources_are_found() {
    isolated(|| {
        let gateway = world!().gateway(with_hooks());
        // They are fetched while the gateway serves; without a sandbox the command doesn't run.
        let asked = || post(&gateway, DOOR, &view("/x").to_string()).json();
        let failed = || asked()["outcomes"][0]["cause"] == "no_sandbox";
        assert!(wait_until(Duration::from_secs(20), failed), "{}", asked());
    });
}
