//! Does each leg speak what its own two ends agreed on?

use outgate_tests::prelude::*;
use serde_json::Value;

use crate::{NAME, OTHER, open_environment, open_gateway, spoken};

#[test]
fn carries_every_pair_of_protocols() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.http2(OTHER).alpn(&["http/1.1"]).start();
        let mut gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let http2 = gateway.http2(name).connect();
            let answer = http2.ask(http2.request("POST", "/a?b").header("x-one", "1"), "h2");
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            check_echo(&answer.json(), name, "h2");
            let tunnel = gateway.client().connect_tunnel(&format!("{name}:443"));
            let mut http1 = tunnel.tls(&Hello::to(name).alpn(&["http/1.1"]));
            let answer = http1.exchange(format!(
                "POST /a?b HTTP/1.1\r\nHost: {name}\r\nX-One: 1\r\nContent-Length: 2\r\n\r\nh1"
            ));
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            check_echo(&answer.json(), name, "h1");
        }
        let agreed: Vec<_> = [&newer, &older]
            .iter()
            .map(|origin| origin.handshakes()[0].alpn.clone().unwrap_or_default())
            .collect();
        assert_eq!(agreed, ["h2", "http/1.1"]);
        assert_eq!(newer.requests().len(), 2);
        for request in newer.requests() {
            assert_eq!(request.scheme.as_deref(), Some("https"));
            assert_eq!(request.authority.as_deref(), Some(NAME));
            assert_eq!(request.header("host"), None, "{request:?}");
        }
        assert_eq!(newer.requests()[1].header("content-length"), Some("2"), "as the client said");
        assert_eq!(older.http1_requests().len(), 2, "each is one well-formed request");
        let audit = gateway.final_audit();
        let all: Vec<_> = audit.iter().map(spoken).collect();
        let (one, two) = (Some("1.1"), Some("2"));
        assert_eq!(all, [(two, two), (one, two), (two, one), (one, one)]);
    });
}

fn check_echo(echo: &Value, name: &str, body: &str) {
    assert_eq!(echo["method"], "POST", "{name}");
    assert_eq!(echo["target"], "/a?b", "{name}");
    assert_eq!(echo["body"], body, "{name}");
    let headers = echo["headers"].to_string().to_lowercase();
    assert!(headers.contains(r#"["x-one","1"]"#), "{name}: {headers}");
}

#[test]
fn chooses_by_what_the_client_offers() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).start();
        let gateway = open_gateway(&world);
        let offers: [(&[&str], Option<&str>); 4] = [
            (&["h2", "http/1.1"], Some("h2")),
            (&["http/1.1", "h2"], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&[], None),
        ];
        for (offer, chosen) in offers {
            let tunnel = gateway.client().connect_tunnel("api.example.com:443");
            let client = tunnel.tls(&Hello::to(NAME).alpn(offer));
            assert_eq!(client.alpn().as_deref(), chosen, "{offer:?}");
        }
        let tunnel = gateway.client().connect_tunnel("api.example.com:443");
        let mut silent = tunnel.tls(&Hello::to(NAME).alpn(&[]));
        let answer = silent.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(answer.status, 200, "without ALPN it is HTTP/1.1");
    });
}

#[test]
fn curl_speaks_http2_to_either_origin() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let _older = world.https(OTHER).start();
        let gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let url = format!("https://{name}/a");
            let answer = gateway.curl(&url).http2().body("from curl").run();
            assert_eq!((answer.exit_code, answer.status), (0, 200), "{answer:?}");
            assert_eq!(answer.details["http_version"], "2", "{name}");
            assert_eq!(answer.json()["body"], "from curl");
        }
        assert_eq!(newer.requests()[0].values("content-length"), ["9"]);
        let big = gateway.curl("https://api.example.com/").http2().body(vec![b'x'; 1 << 20]).run();
        assert_eq!((big.exit_code, big.status), (0, 200), "{big:?}");
        assert_eq!(newer.requests()[1].body.len(), 1 << 20);
        let head = gateway.curl("https://api.example.com/").http2().head().run();
        assert_eq!((head.exit_code, head.status), (0, 200), "{head:?}");
    });
}

#[test]
fn an_origin_that_speaks_both_gets_its_websockets_over_http1() {
    isolated(|| {
        let world = world!();
        let origin =
            world.http2(NAME).alpn(&["h2", "http/1.1"]).http1(scripts::websocket_echo()).start();
        let gateway = open_gateway(&world);
        assert_eq!(gateway.http2(NAME).connect().get("/").status, 200);
        let tunnel = gateway.client().connect_tunnel("api.example.com:443");
        let mut client = tunnel.tls(&Hello::to(NAME));
        client.send(
            "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        let answer = client.try_read_response("GET").expect("an answer");
        assert_eq!(answer.status, 101, "{answer:?}");
        client.send("hello");
        assert_eq!(client.read_exact(5), b"hello");
        let agreed: Vec<_> = origin.handshakes().into_iter().filter_map(|one| one.alpn).collect();
        assert_eq!(agreed, ["h2", "http/1.1"]);
    });
}

#[test]
fn prior_knowledge_inside_a_tunnel_reaches_a_plain_origin_as_such() {
    isolated(|| {
        let world = world!();
        let newer = world.h2c(NAME).start();
        let older = world.http(OTHER).start();
        let mut gateway = open_gateway(&world);
        let client = gateway.h2c(NAME).connect();
        let answer = client.ask(client.request("PUT", "/a"), "h2c");
        assert_eq!((answer.status, &answer.json()["body"]), (200, &json!("h2c")));
        let request = &newer.requests()[0];
        assert_eq!(request.scheme.as_deref(), Some("http"));
        assert_eq!(request.authority.as_deref(), Some(NAME));
        let curl = gateway
            .curl("http://api.example.com/")
            .argument("--proxytunnel")
            .argument("--http2-prior-knowledge")
            .run();
        assert_eq!((curl.exit_code, curl.status), (0, 200), "{curl:?}");
        assert_eq!(curl.details["http_version"], "2");
        let url = format!("http://{OTHER}/");
        let plain = gateway.curl(&url).argument("--proxytunnel").run();
        assert_eq!((plain.exit_code, plain.status), (0, 200), "{plain:?}");
        assert_eq!(older.requests().len(), 1, "HTTP/1.1 in clear text stays HTTP/1.1");
        let audit = gateway.final_audit();
        let all: Vec<_> = audit.iter().map(spoken).collect();
        let (one, two) = (Some("1.1"), Some("2"));
        assert_eq!(all, [(two, two), (two, two), (one, one)]);
        assert!(audit.iter().all(|line| line["scheme"] == "http" && line["port"] == 80));
    });
}

#[test]
fn prior_knowledge_to_a_plain_origin_that_knows_no_http2_is_a_fault_of_the_origin() {
    isolated(|| {
        let world = world!();
        let older = world.http(NAME).respond(scripts::ok("no")).start();
        let gateway = open_gateway(&world);
        let answer = gateway.h2c(NAME).connect().get("/");
        assert_eq!((answer.status, answer.reason()), (502, Some("origin_protocol")));
        assert_eq!(older.connections(), 1);
        assert_eq!(gateway.wait_audit(1)[0]["reason"], "origin_protocol");
    });
}

#[test]
fn injects_on_plain_http2_only_where_that_is_allowed() {
    isolated(|| {
        let world = world!();
        let origin = world.h2c(NAME).start();
        let secret = canary(32);
        let entry = json!({"domain": NAME, "transform": {"X-Key": secret}});
        let gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let answer = gateway.h2c(NAME).connect().get("/");
        assert_eq!((answer.status, answer.reason()), (403, Some("injection_needs_tls")));
        assert_eq!(origin.connections(), 0);
        let mut allowed = open_environment();
        allowed["network"]["allowlist"][0]["transform"] = json!({"X-Key": secret});
        allowed["network"]["allowlist"][0]["allow_plaintext"] = json!(true);
        let gateway = world.gateway(allowed);
        assert_eq!(gateway.h2c(NAME).connect().get("/").status, 200);
        assert_eq!(origin.requests()[0].header("x-key"), Some(secret.as_str()));
    });
}

#[test]
fn http2_on_the_forward_port_is_refused() {
    isolated(|| {
        let world = world!();
        let origin = world.h2c(NAME).start();
        let mut gateway = open_gateway(&world);
        let mut client = gateway.client();
        client.send(frames::PREFACE);
        let answer = client.read_response();
        assert_eq!(answer.status, 400);
        assert_eq!(answer.header("outgate-reason"), Some("malformed_request"));
        assert!(client.is_closed());
        assert_eq!(origin.connections(), 0);
        assert_eq!(gateway.final_audit().len(), 1);
    });
}

#[test]
fn an_upgrade_to_h2c_is_not_made() {
    isolated(|| {
        let world = world!();
        let plain = world.http(NAME).start();
        let secure = world.https(NAME).start();
        let gateway = open_gateway(&world);
        let fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                      HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
        let request = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n{fields}");
        let mut tunnel = gateway.client().connect_tunnel("api.example.com:443");
        tunnel = tunnel.tls(&Hello::to(NAME));
        assert_eq!(tunnel.exchange(&request).status, 200);
        let forward = request.replace("GET /", "GET http://api.example.com/");
        assert_eq!(gateway.client().exchange(forward).status, 200);
        for request in [&plain.requests()[0], &secure.requests()[0]] {
            for name in ["upgrade", "connection", "http2-settings"] {
                assert_eq!(request.header(name), None, "{request:?}");
            }
        }
        // The preface as a second request: HTTP/1.1 it is not.
        tunnel.send(frames::PREFACE);
        assert_eq!(tunnel.read_response().status, 400);
        assert!(tunnel.is_closed());
        assert_eq!(secure.requests().len(), 1);
    });
}
