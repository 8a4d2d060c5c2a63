//! Do the examples do what they are there for?

use outgate_tests::prelude::*;
use serde_json::Value;

use super::scene::{Place, example, only, view};

#[test]
fn every_example_is_without_a_mistake() {
    isolated(|| {
        let world = world!();
        for name in ["security-gate", "privacy-gate", "audit-logging"] {
            let file = format!("{}/../examples/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let finished = world.outgate(&["check", &file]);
            assert_eq!(finished.code(), 0, "{finished:?}");
            assert!(!finished.text().contains("warning"), "{finished:?}");
        }
    });
}

#[test]
fn the_privacy_gate_lets_the_agent_go_on_with_a_public_path() {
    isolated(|| {
        let place = Place::new(&world!(), &example("privacy-gate"));
        let denied = place.ask(&view("/private/salaries.csv"));
        assert_eq!(only(&denied), "deny");
        assert!(denied["reason"].as_str().is_some_and(|reason| reason.contains("/public/")));
        assert_eq!(only(&place.ask(&view("/public/prices.csv"))), "allow");
        assert_eq!(only(&place.ask(&view("/private"))), "deny");
        for path in
            [r"\/private\/x", r"/\u0070rivate/x", r"\u002fprivate\u002Fx", "/public/../private/x"]
        {
            let call = format!(
                r#"{{"tool_call": {{"name": "view_file", "args": {{"path": "{path}"}}}}}}"#
            );
            assert_eq!(place.hook("pre", &call).code(), 2, "{path}");
        }
    });
}

#[test]
fn audit_logging_posts_each_call_with_the_token() {
    isolated(|| {
        let world = world!();
        world.name("telemetry.example.com", "11.22.33.77");
        let body = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let telemetry = world.https("telemetry.example.com").respond(body).start();
        let place = Place::new(&world, &example("audit-logging"));
        let mut event = view("/data/x");
        event["error"] = json!("no such file");
        let finished = place.hook("post", &event.to_string());
        assert_eq!(finished.code(), 0, "{finished:?}");
        let requests = telemetry.requests();
        let [request] = requests.as_slice() else { panic!("{} requests", requests.len()) };
        assert_eq!(request.header("authorization"), Some("Bearer telemetry_secret_token_123"));
        let payload: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(payload["error"], "no such file");
        assert_eq!(payload["environment_id"], "audit-logging");
    });
}
