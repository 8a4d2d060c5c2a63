//! Does a value take its placeholder's place only where it is trusted?

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

use super::scene::{Made, done, store};

fn environment() -> serde_json::Value {
    json!({
        "env": {"KEY": {"credential": "key"}, "MODE": "test"},
        "network": {"allowlist": [{"domain": "api.example.com"}, {"domain": "*"}]},
    })
}

fn credential(value: &str, locations: &[&str]) -> serde_json::Value {
    json!({"id": "key", "type": "environment_variable", "value": value,
           "injection_location": locations, "placeholder_prefix": "ghp_"})
}

#[test]
fn a_value_stands_for_its_placeholder_in_headers_basic_and_query() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let gateway = world.gateway_builder().start();
        let value = canary(40);
        store(&gateway, &credential(&value, &["header", "query"]));
        let made = Made::new(&gateway, &environment());
        let placeholder = made.placeholder("KEY");
        assert!(placeholder.starts_with("ghp_"));
        assert_eq!(made.answer["env"]["MODE"], "test");
        let answer = made
            .curl(&format!("https://api.example.com/p?k={placeholder}"))
            .header("x-key", &format!("token {placeholder}"))
            .argument("--user")
            .argument(format!("x-access-token:{placeholder}"))
            .run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let request = &origin.requests()[0];
        assert_eq!(request.header("x-key"), Some(format!("token {value}").as_str()));
        assert_eq!(request.head.start_line, format!("GET /p?k={value} HTTP/1.1"));
        let basic = made.curl("https://api.example.com/").argument("--user");
        let basic = basic.argument(format!("x-access-token:{value}")).run();
        assert_eq!(basic.status, 200);
        let requests = origin.requests();
        assert_eq!(request.header("authorization"), requests[1].header("authorization"));
        assert_secret_absent(gateway.output(), &value);
        let line = &gateway.wait_audit(3)[1];
        assert_eq!(line["credentials"], json!(["key"]), "{line}");
        assert_eq!(line["injected"], json!(["x-key", "authorization"]), "{line}");
    });
}

#[test]
fn elsewhere_nothing_is_sent() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let plain = world.http("api.example.com").respond(scripts::ok("yes")).start();
        let evil = world.https("evil.example.test").respond(scripts::ok("yes")).start();
        let gateway = world.gateway_builder().start();
        store(&gateway, &credential(&canary(40), &["header"]));
        let made = Made::new(&gateway, &environment());
        let other = Made::new(&gateway, &environment());
        let placeholder = made.placeholder("KEY");
        assert_ne!(placeholder, other.placeholder("KEY"));
        let carries = |curl: Curl| curl.header("authorization", &format!("Bearer {placeholder}"));
        let refusals = [
            // `*` allows it, but names nothing.
            carries(made.curl("https://evil.example.test/")).run(),
            carries(other.curl("https://api.example.com/")).run(),
            made.curl(&format!("https://api.example.com/?k={placeholder}")).run(),
            made.curl(&format!("https://api.example.com/bot{placeholder}/send")).run(),
            carries(made.curl("https://api.example.com/")).header("x", &placeholder[4..]).run(),
        ];
        for answer in refusals {
            assert_eq!(answer.status, 403, "{answer:?}");
            assert_eq!(answer.header("outgate-reason"), Some("placeholder_not_trusted"));
            assert!(!answer.text().contains(&placeholder[4..]));
        }
        let clear = carries(made.curl("http://api.example.com/")).run();
        assert_eq!(clear.header("outgate-reason"), Some("injection_needs_tls"), "{clear:?}");
        done(&gateway, "DELETE", "credentials/key", &json!(null));
        let gone = carries(made.curl("https://api.example.com/")).run();
        assert_eq!(gone.header("outgate-reason"), Some("placeholder_not_trusted"), "{gone:?}");
        for origin in [&api, &plain, &evil] {
            assert_eq!(origin.requests().len(), 0);
        }
    });
}

#[test]
fn each_of_several_requests_in_one_write_is_looked_at_for_itself() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").start();
        let mut gateway = world.gateway_builder().start();
        let value = canary(40);
        store(&gateway, &credential(&value, &["header"]));
        let made = Made::new(&gateway, &environment());
        let placeholder = made.placeholder("KEY");
        let proof = STANDARD.encode(format!(
            "{}:{}",
            made.id(),
            made.answer["proxy_token"].as_str().expect("a token")
        ));
        let mut client = gateway.client();
        client.send(format!(
            "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\
             Proxy-Authorization: Basic {proof}\r\n\r\n"
        ));
        assert_eq!(client.try_read_response("CONNECT").map(|answer| answer.status), Ok(200));
        let mut client = client.tls(&Hello::to("api.example.com"));
        let get = |path: &str, host: &str, key: &str| {
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n")
        };
        client.send(
            [
                get("/1", "api.example.com", "none"),
                get("/2", "evil.example.test", &placeholder),
                get("/3", "api.example.com", &placeholder),
                get("/4", "api.example.com", "none"),
                get("/5", "api.example.com", &placeholder).replace("Host:", "Host :"),
                get("/6", "api.example.com", &placeholder),
            ]
            .concat(),
        );
        let statuses: Vec<u16> = (0..5).map(|_| client.read_response().status).collect();
        assert_eq!(statuses, [200, 421, 200, 200, 400]);
        assert!(client.is_closed());
        let requests = origin.requests();
        let read: Vec<_> = requests
            .iter()
            .map(|one| (one.target.as_str(), one.header("x-key").expect("they have one")))
            .collect();
        assert_eq!(read, [("/1", "none"), ("/3", value.as_str()), ("/4", "none")]);
        let audit = gateway.final_audit();
        assert_eq!(audit.iter().filter(|line| line["kind"] == "request").count(), 5);
        assert_secret_absent(gateway.output(), &value);
    });
}
