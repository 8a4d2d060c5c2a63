//! Do the gateway's own requests carry values in their bodies too?

use std::fs;

use outgate_tests::prelude::*;

use super::scene::{API, Scene, done_at, key};

#[test]
fn a_hook_s_payload_has_the_value_where_the_agent_has_its_placeholder() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok(r#"{"decision": "allow"}"#)).start();
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let file = folder.path().join("hooks.json");
        let hook = json!({"type": "http", "url": "https://api.example.com/events"});
        let hooks = json!({"gate": {"pre_tool_execution": [{"hooks": [hook]}]}});
        fs::write(&file, hooks.to_string()).expect("written");
        let value = canary(40);
        let scene = Scene::with(&world, &[key(&value)], &format!("[hooks]\nfile = {file:?}\n"));
        let path = format!("/v1/environments/{}/hooks/pre_tool_execution", scene.id());
        let call = |text: &str| {
            let event = json!({"tool_call": {"name": "view_file", "args": {"path": text}}});
            done_at(&scene.gateway, "POST", &path, &event)
        };
        let answer = call(&scene.placeholder("KEY"));
        assert_eq!(answer["outcomes"][0]["outcome"], "allow", "{answer}");
        let request = &origin.requests()[0];
        let payload: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(payload["tool_call"]["args"]["path"], json!(value));
        let refused = call(&scene.placeholder("KEY")[4..]);
        assert_eq!(refused["outcomes"][0]["outcome"], "failed", "{refused}");
        assert_eq!(origin.requests().len(), 1);
        assert_secret_absent(format!("{answer}{refused}{}", scene.gateway.output()), &value);
    });
}
