//! The door on the management address of `outgate serve`.

use outgate_tests::prelude::*;

use super::scene::{Place, before_every_call, closed, only, post, telling, view};

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
        let _running = place.run("echo of-this-sandbox > /tmp/mark; sleep 86398 & touch here");
        assert!(place.comes("here"), "the command runs");
        // As the host numbers it: the one that sleeps below this test's sandbox.
        let pid =
            outgate_tests::run::process_of("sleep\u{0}86398\u{0}").expect("the sleeping process");
        place.write("one.pid", &format!("{pid}\n"));
        let hooks = json!({"type": "command", "command": telling("echo $(cat /tmp/mark) $MODE")});
        place.write("operator.json", &before_every_call(&hooks).to_string());
        place.write("env_one.json", &closed().to_string());
        let file = format!(
            "[hooks]\nfile = {:?}\n[[environment]]\nfile = {:?}\nnamespaces_of = {:?}\n",
            place.path("operator.json"),
            place.path("env_one.json"),
            place.path("one.pid")
        );
        let gateway = world.gateway_builder().configuration(&file).start();
        let answer = post(&gateway, DOOR, &view("/x").to_string()).json();
        assert_eq!(answer["reason"], "of-this-sandbox test", "{answer}");
    });
}

#[test]
fn hooks_that_come_from_sources_are_found() {
    isolated(|| {
        let command = json!({"type": "command", "command": "true"});
        let hooks = before_every_call(&command).to_string();
        let mut environment = closed();
        environment["sources"] =
            json!([{"type": "inline", "target": ".agents/hooks.json", "content": hooks}]);
        let gateway = world!().gateway(environment);
        // They are fetched while the gateway serves; without a sandbox the command doesn't run.
        let asked = || post(&gateway, DOOR, &view("/x").to_string()).json();
        let failed = || asked()["outcomes"][0]["cause"] == "no_sandbox";
        assert!(wait_until(Duration::from_secs(20), failed), "{}", asked());
    });
}
