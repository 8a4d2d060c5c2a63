//! Who reaches the management API?

use std::fs;

use outgate_tests::prelude::*;

fn open() -> serde_json::Value {
    json!({"environment_id": "e1", "network": {"allowlist": [{"domain": "*"}]}})
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

#[test]
fn answers_probes_without_a_key_and_nothing_else() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(open());
        let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
        let key = key.trim();
        assert_eq!(gateway.management(get("/healthz", "")).json(), json!({"healthy": true}));
        assert_eq!(gateway.management(get("/readyz", "")).json(), json!({"ready": true}));
        let wrong = canary(43);
        for headers in [
            String::new(),
            format!("x-goog-api-key: {wrong}\r\n"),
            format!("x-goog-api-key: {}\r\n", &key[1..]),
            format!("x-goog-api-key: {key}\r\nx-goog-api-key: {key}\r\n"),
            format!("Authorization: Bearer {key}\r\n"),
        ] {
            let refused = gateway.management(get("/v1beta/environments", &headers));
            assert_eq!(refused.status, 401, "{headers}: {}", refused.text());
            assert_eq!(refused.json()["error"]["status"], "UNAUTHENTICATED");
            assert_secret_absent(refused.text(), key);
        }
        let authorized = format!("x-goog-api-key: {key}\r\n");
        assert_eq!(gateway.management(get("/nothing", &authorized)).status, 404);
        for path in ["/healthz", "/readyz"] {
            let posted = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(gateway.management(posted).status, 401, "only GET is a probe");
        }
        assert_secret_absent(gateway.output(), key);
    });
}

#[test]
fn no_sandbox_reaches_it_through_the_proxy() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(open());
        let own = gateway.explicit().port();
        world.dns.name("inside.example.test", &["127.0.0.1"]);
        let socket = format!("{}/management.sock", gateway.state().display());
        for target in [
            format!("http://127.0.0.1:{own}/healthz"),
            format!("http://[::1]:{own}/healthz"),
            "http://localhost/healthz".to_owned(),
            "http://inside.example.test/healthz".to_owned(),
            format!("http://unix:{socket}/healthz"),
            format!("unix:{socket}"),
        ] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let answer = gateway.client().exchange(request);
            assert!(answer.status >= 400, "{target}: {}", answer.text());
            assert!(!answer.text().contains("healthy"), "{target}: {}", answer.text());
        }
        for authority in [format!("127.0.0.1:{own}"), "inside.example.test:443".to_owned()] {
            let refused = gateway.client().try_connect_tunnel(&authority).err();
            assert_eq!(refused.expect("a refusal").status, 403, "{authority}");
        }
    });
}

#[test]
fn a_management_port_is_not_dialled_even_where_its_address_is_opened() {
    isolated(|| {
        let world = world!();
        let port = free_port();
        let control = free_port();
        let _control = Origin::http(&format!("127.0.0.1:{control}")).start();
        let allowlist = json!([{"domain": "127.0.0.1", "ports": [port, control]}]);
        let gateway = world
            .gateway_builder()
            .management(&format!("127.0.0.1:{port}"))
            .configuration(&format!(
                "[addresses]\ndangerously_allow = [\"127.0.0.1:{port}\", \"127.0.0.1:{control}\"]\n"
            ))
            .environment(&json!({"network": {"allowlist": allowlist}}))
            .start();
        let ask = |port| gateway.curl(&format!("http://127.0.0.1:{port}/healthz")).run();
        assert_eq!(ask(control).status, 200, "the control: the address itself is open");
        let refused = ask(port);
        assert_eq!((refused.status, refused.reason()), (403, Some("address_not_allowed")));
        assert!(gateway.wait_log("dangerously_allow"), "a knob that weakens is said at the start");
        let direct = Curl::new(&format!("http://127.0.0.1:{port}/healthz")).run();
        assert_eq!(direct.status, 200, "it is there for those outside");
    });
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}
