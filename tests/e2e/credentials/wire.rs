//! Is an entry's credential on the wire as it is now, and only there?

use outgate_tests::prelude::*;

use super::scene::{Made, done, store};

fn environment() -> serde_json::Value {
    json!({"environment_id": "e1", "network": {"allowlist": [
        {"domain": "api.example.com", "credential": "main"},
        {"domain": "a.ok.example.test", "credential": "main",
            "strip": ["X-Other-Key", "query:key"], "allow_plaintext": true},
    ]}})
}

#[test]
fn a_new_value_is_used_by_the_next_request_and_a_deleted_one_by_none() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        let mut client = gateway
            .client()
            .connect_tunnel("api.example.com:443")
            .tls(&Hello::to("api.example.com"));
        let mut ask = || {
            client.send("GET / HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: mine\r\n\r\n");
            client.read_response()
        };
        let refused = ask();
        assert_eq!(refused.status, 403);
        assert_eq!(refused.header("outgate-reason"), Some("credential_unavailable"));
        let (one, two) = (canary(40), canary(40));
        store(&gateway, &json!({"id": "main", "type": "bearer_token", "token": one}));
        assert_eq!(ask().status, 200);
        done(&gateway, "PATCH", "credentials/main", &json!({"token": two}));
        assert_eq!(ask().status, 200);
        done(&gateway, "DELETE", "credentials/main", &json!(null));
        assert_eq!(ask().status, 403);
        let seen: Vec<_> = origin.requests();
        let values: Vec<_> =
            seen.iter().map(|request| request.head.values("authorization")).collect();
        assert_eq!(values, [[format!("Bearer {one}")], [format!("Bearer {two}")]]);
        for secret in [&one, &two] {
            assert_secret_absent(gateway.output(), secret);
        }
        let audit = gateway.wait_audit(7);
        let changes = audit.iter().filter(|line| line["kind"] == "credential");
        let changes: Vec<_> = changes.map(|line| line["method"].as_str()).collect();
        assert_eq!(changes, [Some("POST"), Some("PATCH"), Some("DELETE")]);
        let used = audit.iter().filter(|line| line["injected"] == json!(["authorization"]));
        assert!(used.clone().all(|line| line["credentials"] == json!(["main"])));
        assert_eq!(used.count(), 2);
    });
}

#[test]
fn other_carriers_are_stripped_and_a_query_s_key_is_replaced() {
    isolated(|| {
        let world = world!();
        let origin = world.https("a.ok.example.test").respond(scripts::ok("yes")).start();
        let plain = world.http("a.ok.example.test").respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        store(
            &gateway,
            &json!({"id": "main", "type": "api_key_query", "name": "api key",
                                "key": "a&b"}),
        );
        for scheme in ["https", "http"] {
            let answer = gateway
                .curl(&format!("{scheme}://a.ok.example.test/p?key=mine&x=1&api+key=mine&k%65y=2"))
                .header("x-other-key", "mine")
                .header("x_other_key", "mine")
                .run();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        for request in [&origin.requests()[0], &plain.requests()[0]] {
            assert_eq!(request.head.start_line, "GET /p?x=1&api%20key=a%26b HTTP/1.1");
            assert!(!String::from_utf8_lossy(&request.head.raw).contains("mine"), "{request:?}");
        }
        let audit = gateway.wait_audit(3);
        assert!(audit[1..].iter().all(|line| line["path"] == "/p"));
    });
}

#[test]
fn a_websocket_begun_with_a_credential_that_is_gone_is_closed_within_a_second() {
    isolated(|| {
        let world = world!();
        let _origin = world.https("api.example.com").script(scripts::websocket_echo()).start();
        let gateway = world.gateway(environment());
        store(&gateway, &json!({"id": "main", "type": "basic", "username": "u", "password": "p"}));
        let mut client = gateway
            .client()
            .connect_tunnel("api.example.com:443")
            .tls(&Hello::to("api.example.com"));
        client.send(
            "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        assert_eq!(client.read_response().status, 101);
        client.send(b"still here");
        assert_eq!(client.read_exact(10), b"still here");
        done(&gateway, "PATCH", "credentials/main", &json!({"password": "q"}));
        assert!(client.is_closed());
    });
}

#[test]
fn a_parameter_that_is_replaced_is_not_looked_at_for_placeholders() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let gateway = world.gateway_builder().start();
        store(&gateway, &json!({"id": "main", "type": "api_key_query", "name": "key", "key": "k"}));
        let entry = json!({"domain": "api.example.com", "credential": "main"});
        let made = Made::new(&gateway, &json!({"network": {"allowlist": [entry]}}));
        let variable = json!({"id": "var", "type": "environment_variable", "value": "v",
                              "injection_location": ["query"]});
        store(&gateway, &variable);
        let other = json!({"env": {"KEY": {"credential": "var"}}});
        let foreign = Made::new(&gateway, &other).placeholder("KEY");
        let ask = |query: &str| {
            made.curl(&format!("https://api.example.com/p?{query}={foreign}&x=1")).run()
        };
        assert_eq!(ask("key").status, 200);
        assert_eq!(ask("other").status, 403);
        assert_eq!(origin.requests()[0].head.start_line, "GET /p?x=1&key=k HTTP/1.1");
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn the_headers_of_an_entry_and_of_its_credential_must_differ() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(environment());
        store(&gateway, &json!({"id": "main", "type": "bearer_token", "token": "t"}));
        store(&gateway, &json!({"id": "var", "type": "environment_variable", "value": "v"}));
        gateway.set_environment(&json!({"environment_id": "e1", "network": {"allowlist": [
            {"domain": "api.example.com", "credential": "main",
                "transform": {"Authorization": "x"}},
            {"domain": "b.example.com", "credential": "var"},
        ]}}));
        assert!(gateway.wait_log("network.allowlist[0].credential: main sets authorization"));
        assert!(
            gateway.wait_log("network.allowlist[1].credential: var is an environment_variable")
        );
    });
}
