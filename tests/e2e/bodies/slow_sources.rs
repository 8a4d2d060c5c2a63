//! Whose time is it that a source of secrets takes?

use outgate_tests::prelude::*;
use serde_json::Value;

use crate::scene::{API, JSON, Scene, chunk, chunked_head, post};

/// A variable whose command takes `seconds` each time that it is asked for its value.
fn slow(seconds: u32, value: &str) -> Value {
    let command = format!("sleep {seconds}; printf %s {value}");
    json!({"id": "key", "type": "environment_variable",
           "value": {"from_command": ["sh", "-c", command]},
           "injection_location": "body", "placeholder_prefix": "ghp_"})
}

#[test]
fn a_slow_source_is_no_pause_of_the_clients() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let value = canary(40);
        let limits = "[limits]\nbody_pause = \"200ms\"\n";
        let scene = Scene::with(&world, &[slow(2, &value)], limits);
        let mut client = scene.client();
        client.send(chunked_head(JSON));
        let body = format!("\"{}\"", scene.placeholder("KEY"));
        client.send([&chunk(body)[..], b"0\r\n\r\n"].concat());
        assert_eq!(client.read_response().json()["body"], format!("\"{value}\""));
        let request = &origin.requests()[0];
        // It was read whole first, as one that pauses is not.
        assert_eq!(request.header("content-length"), Some("42"), "{request:?}");
        // The control: known by now, the value takes no time, and a pause is the client's.
        let mut client = scene.client();
        client.send(chunked_head(JSON));
        client.send(chunk("\"begun"));
        std::thread::sleep(Duration::from_millis(800));
        client.send([&chunk("\"")[..], b"0\r\n\r\n"].concat());
        assert_eq!(client.read_response().status, 200);
        assert_eq!(origin.requests()[1].header("content-length"), None);
    });
}

#[test]
fn a_client_is_not_refused_for_a_slow_source() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let value = canary(40);
        let limits = "[limits]\nidle_tunnel = \"1s\"\nresponse_head = \"1s\"\n";
        let scene = Scene::with(&world, &[slow(3, &value)], limits);
        let body = format!("\"{}\"", scene.placeholder("KEY"));
        let answer = scene.client().exchange(post(JSON, body));
        assert_eq!(answer.json()["body"], format!("\"{value}\""), "{answer:?}");
        // The control: a client that stops is refused for it.
        let mut client = scene.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: {API}\r\n{JSON}Content-Length: 9\r\n\r\n\"begun"
        ));
        let refused = client.read_response();
        let said = (refused.status, refused.header("outgate-reason"));
        assert_eq!(said, (408, Some("request_timeout")));
    });
}

#[test]
fn an_origin_is_not_late_for_a_slow_source() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let value = canary(40);
        // Searched as it streams: too long to be read ahead.
        let limits = "[limits]\nresponse_head = \"1s\"\nbody_buffer_bytes = 1000\n";
        let scene = Scene::with(&world, &[slow(4, &value)], limits);
        let placeholder = scene.placeholder("KEY");
        let body = format!("\"{}{placeholder}\"", "x".repeat(100_000));
        let answer = scene.client().exchange(post(JSON, body));
        assert_eq!(answer.status, 200, "{answer:?}");
    });
}
