//! How do calls of URLs leave?

use outgate_tests::prelude::*;
use serde_json::Value;

use super::scene::{Place, before_every_call, only, post, view};

const API: &str = "api.example.com";

fn answering(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn calling(url: &str) -> Value {
    before_every_call(&json!({"type": "http", "url": url, "headers": {"X-Event-Source": "agent"}}))
}

fn allowing(secret: &str) -> Value {
    json!({"environment_id": "env_one", "network": {"allowlist": [
        {"domain": API, "transform": {"Authorization": secret}}]}})
}

#[test]
fn a_url_is_called_with_the_secret_that_the_sandbox_does_not_hold() {
    isolated(|| {
        let world = world!();
        let origin =
            world.https(API).respond(answering(r#"{"decision": "deny", "reason": "no"}"#)).start();
        let secret = format!("Bearer {}", canary(32));
        let place = Place::new(&world, &allowing(&secret));
        place.hooks(&calling("https://api.example.com/events"));
        let answer = place.ask(&view("/x"));
        assert_eq!((only(&answer), &answer["reason"]), ("deny", &json!("no")));
        let requests = origin.requests();
        let [request] = requests.as_slice() else { panic!("{} requests", requests.len()) };
        assert_eq!(request.method, "POST");
        assert_eq!(request.target, "/events");
        assert_eq!(request.header("authorization"), Some(secret.as_str()));
        assert_eq!(request.header("x-event-source"), Some("agent"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(
            String::from_utf8_lossy(&request.body),
            r#"{"tool_call":{"name":"view_file","args":{"path":"/x"}},"environment_id":"env_one"}"#
        );
        // One line for the handler, one for its request; the request fires no hook.
        assert_eq!(place.audit("hook").len(), 1);
        let lines = place.audit("request");
        assert_eq!((lines.len(), &lines[0]["ingress"]), (1, &json!("hook")));
        assert_eq!(lines[0]["injected"], json!(["authorization"]));
        assert_secret_absent(format!("{answer}{lines:?}"), &secret);
    });
}

#[test]
fn a_secret_that_the_server_sends_back_is_not_in_the_reason() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).script(|connection| {
            let Some(request) = connection.request() else { return };
            let sent = request.header("authorization").unwrap_or_default();
            let body = json!({"decision": "deny", "reason": format!("you sent {sent}")});
            connection.send(answering(&body.to_string()));
        });
        let _origin = origin.start();
        let secret = canary(32);
        let place = Place::new(&world, &allowing(&format!("Bearer {secret}")));
        place.hooks(&calling("https://api.example.com/"));
        let answer = place.ask(&view("/x"));
        assert_eq!(answer["reason"], "you sent [removed]");
        assert_secret_absent(answer.to_string(), &secret);
    });
}

#[test]
fn a_connection_is_used_again_after_any_answer() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).script(|connection| {
            while let Some(request) = connection.request() {
                let sent = match request.target.as_str() {
                    "/error" => "HTTP/1.1 500 E\r\ncontent-length: 4\r\n\r\nfail".to_owned(),
                    _ => answering(r#"{"decision": "deny"}"#),
                };
                connection.send(sent);
            }
        });
        let origin = origin.start();
        let place = Place::new(&world, &allowing("Bearer x"));
        let hooks = |path: &str| calling(&format!("https://api.example.com/{path}")).to_string();
        place.write("operator.json", &hooks(""));
        let file = format!("[hooks]\nfile = {:?}\n", place.path("operator.json"));
        let gateway = world.gateway_builder().environment(&allowing("Bearer x"));
        let gateway = gateway.configuration(&file).start();
        let door = "/v1/environments/env_one/hooks/pre_tool_execution";
        for (path, outcome) in [("", "deny"), ("error", "http_status"), ("", "deny"), ("", "deny")]
        {
            place.write("operator.json", &hooks(path));
            let answer = post(&gateway, door, &view("/x").to_string()).json();
            assert_eq!(only(&answer), outcome);
        }
        assert_eq!((origin.requests().len(), origin.connections()), (4, 1));
    });
}

#[test]
fn what_the_environment_refuses_is_refused_to_its_hooks() {
    isolated(|| {
        let world = world!();
        let evil = world.https("evil.example.test").start();
        world.dns.name("inside.example.test", &["127.0.0.1"]);
        let place = Place::new(
            &world,
            &json!({"environment_id": "env_one", "network": {"allowlist": [
                {"domain": API, "methods": ["GET"]}, {"domain": "inside.example.test"}]}}),
        );
        for url in [
            "https://evil.example.test/",
            "https://api.example.com/",
            "https://inside.example.test/",
            "https://127.0.0.1/",
            "https://169.254.169.254/",
            "http://api.example.com/",
            "https://me@api.example.com/",
        ] {
            place.hooks(&calling(url));
            let answer = place.ask(&view("/x"));
            assert_eq!(
                (only(&answer), &answer["decision"]),
                ("url_refused", &json!("allow")),
                "{url}"
            );
        }
        assert_eq!(evil.connections(), 0);
    });
}

#[test]
fn redirects_and_other_answers_are_failures() {
    isolated(|| {
        let world = world!();
        let evil = world.https("evil.example.test").start();
        for (answer, cause) in [
            (
                "HTTP/1.1 307 T\r\nlocation: https://evil.example.test/\r\ncontent-length: 0\r\n\r\n".to_owned(),
                "http_status",
            ),
            ("HTTP/1.1 500 E\r\ncontent-length: 20\r\n\r\n{\"decision\": \"deny\"}".to_owned(), "http_status"),
            ("HTTP/1.1 204 N\r\n\r\n".to_owned(), "empty_output"),
            (answering("<html>"), "invalid_output"),
            (answering(&"x".repeat(2 << 20)), "output_too_large"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_owned(), "transport"),
        ] {
            let origin = world.https(API).script(scripts_closing(answer)).start();
            let place = Place::new(&world, &json!({"network": {"allowlist": [{"domain": "*"}]}}));
            place.hooks(&calling("https://api.example.com/"));
            let answer = place.ask(&view("/x"));
            assert_eq!((only(&answer), &answer["decision"]), (cause, &json!("allow")));
            origin.stop();
        }
        assert_eq!(evil.connections(), 0);
    });
}

/// Answers one request, then closes.
fn scripts_closing(answer: String) -> impl Fn(&mut Connection) + Send + Sync + 'static {
    move |connection| {
        if connection.request().is_some() {
            connection.send(&answer);
            connection.finish();
        }
    }
}
