//! Does an upgrade to WebSocket pass by any guard that holds for other requests?

use outgate_tests::prelude::*;

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn injecting(value: &str, script: impl Fn() -> Box<origin::Script>) -> BothWays {
    let entry = json!({"domain": "api.example.com", "transform": {"X-Api-Key": value},
                       "allow_plaintext": true});
    BothWays::start(&world!(), json!({"network": {"allowlist": [entry]}}), script)
}

#[test]
fn what_makes_a_request_malformed_makes_an_upgrade_malformed() {
    isolated(|| {
        let both = injecting(&canary(32), scripts::websocket_echo);
        let host = "Host: api.example.com\r\n";
        let many: String = (0..101).map(|number| format!("X-{number}: 1\r\n")).collect();
        let big = "x".repeat(192 << 10);
        let whole = |line: &str, fields: &str| format!("{line}\r\n{fields}{UPGRADE}\r\n");
        let get = |fields: &str| whole("GET @/ws HTTP/1.1", fields);
        let table = [
            (400, "malformed_request", get("")),
            (400, "malformed_request", get(&host.repeat(2))),
            (400, "malformed_host", get("Host: api.example.com, evil.example.test\r\n")),
            (400, "malformed_host", get("Host: [api.example.com]\r\n")),
            (400, "malformed_host", get("Host: user@api.example.com\r\n")),
            (400, "malformed_host", get("Host: 2130706433\r\n")),
            (400, "malformed_port", get("Host: api.example.com:0x50\r\n")),
            (421, "name_mismatch", get("Host: evil.example.test\r\n")),
            (421, "name_mismatch", get("Host: 127.0.0.1\r\n")),
            (400, "malformed_request", get(&format!("{host} folded: 1\r\n"))),
            (400, "malformed_request", get(&format!("{host}X : 1\r\n"))),
            (400, "malformed_request", get(&format!("{host}X: a\0b\r\n"))),
            (400, "malformed_request", get(&format!("{host}Content-Length: +5\r\n"))),
            (400, "malformed_request", get(&format!("{host}Transfer-Encoding: gzip\r\n"))),
            (400, "malformed_request", get(&format!("{host}Expect: x\r\n"))),
            (400, "malformed_request", whole("get @/ws HTTP/1.1", host)),
            (400, "malformed_request", whole("GET  @/ws HTTP/1.1", host)),
            (400, "malformed_request", whole("GET @/ws HTTP/1.2", host)),
            (400, "malformed_request", whole("GET @/\u{e9} HTTP/1.1", host)),
            (431, "head_too_large", get(&format!("{host}{many}"))),
            (431, "head_too_large", get(&format!("{host}X: {big}\r\n"))),
        ];
        for (status, reason, head) in &table {
            both.refuses(head, *status, reason);
        }
        for way in Way::ALL {
            assert_eq!(both.ask(way, get(host)).status, 101, "{way}: the control");
        }
        both.audited(2 * table.len() + 2);
    });
}

#[test]
fn another_name_is_another_name_in_an_absolute_target_too() {
    isolated(|| {
        let both = injecting(&canary(32), scripts::websocket_echo);
        for (line, status) in [
            ("GET https://evil.example.test/ws HTTP/1.1\r\nHost: api.example.com", 421),
            ("GET http://api.example.com/ws HTTP/1.1\r\nHost: api.example.com", 421),
            ("GET https://api.example.com/ws HTTP/1.1\r\nHost: evil.example.test", 421),
            ("GET ws://api.example.com/ws HTTP/1.1\r\nHost: api.example.com", 421),
            ("CONNECT evil.example.test:443 HTTP/1.1\r\nHost: evil.example.test:443", 405),
            ("GET https://api.example.com/ws HTTP/1.1\r\nHost: api.example.com", 101),
        ] {
            let answer = both.ask(Way::Tunnel, format!("{line}\r\n{UPGRADE}\r\n"));
            assert_eq!(answer.status, status, "{line}: {answer:?}");
        }
        assert_eq!(both.origin(Way::Tunnel).requests().len(), 1);
        assert_eq!(both.origin(Way::Forward).connections(), 0);
        both.audited(6);
    });
}

#[test]
fn what_is_injected_is_there_once_and_stays() {
    isolated(|| {
        let value = canary(32);
        let both = injecting(&value, scripts::websocket_echo);
        let own = [
            "X-Api-Key: mine\r\nx-api-key: mine\r\nX_Api_Key: mine\r\n",
            "Connection: X-Api-Key, Host\r\n",
            "Connection: close\r\nConnection: x-api-key\r\nX-API-KEY:\r\n",
        ];
        for fields in own {
            for way in Way::ALL {
                let head =
                    format!("GET @/ws HTTP/1.1\r\nHost: api.example.com\r\n{fields}{UPGRADE}\r\n");
                assert_eq!(both.ask(way, head).status, 101, "{way} {fields:?}");
            }
        }
        for way in Way::ALL {
            let requests = both.origin(way).requests();
            assert_eq!(requests.len(), own.len(), "{way}");
            for request in requests {
                assert_eq!(request.head.values("x-api-key"), [value.as_str()], "{request:?}");
                assert_eq!(request.head.values("x_api_key").len(), 0, "{request:?}");
                assert_eq!(request.header("host"), Some("api.example.com"));
                assert_eq!(request.header("connection"), Some("Upgrade"));
                assert_eq!(request.header("upgrade"), Some("websocket"));
            }
        }
        both.audited(2 * own.len());
    });
}

#[test]
fn a_body_beside_it_is_a_body_and_never_a_frame() {
    isolated(|| {
        let both = injecting(&canary(32), scripts::echo);
        let inner = "GET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
        let framings = [
            format!("Content-Length: {}\r\n\r\n{inner}", inner.len()),
            format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()),
        ];
        for framing in framings {
            for way in Way::ALL {
                let head = "GET @/ws HTTP/1.1\r\nHost: api.example.com\r\n";
                let mut client = both.sent(way, format!("{head}{UPGRADE}{framing}"));
                let answer = client.read_response();
                assert_eq!((answer.status, answer.json()["body"].as_str()), (200, Some(inner)));
                client.send(way.write("GET @/next HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
                assert_eq!(client.read_response().json()["target"], "/next", "{way}");
            }
        }
        for way in Way::ALL {
            let mut targets = crate::targets(&both, way);
            targets.sort_unstable();
            assert_eq!(targets, ["/next", "/next", "/ws", "/ws"], "{way}");
        }
        both.audited(8);
    });
}

/// What follows would be the rest of a request to one side and frames to the other.
#[test]
fn a_switch_before_the_end_of_the_request_is_a_502() {
    isolated(|| {
        let switched = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            scripts::websocket_accept("dGhlIHNhbXBsZSBub25jZQ==")
        );
        let both = injecting(&canary(32), move || {
            let switched = switched.clone();
            Box::new(move |connection: &mut Connection| {
                let Some(head) = connection.head() else { return };
                if head.start_line.contains("/late") {
                    connection.body(head).expect("a whole request");
                }
                connection.upgrade();
                connection.send(&switched);
                let bytes = connection.bytes();
                connection.send(&bytes);
            })
        });
        let head =
            |path: &str| format!("GET @/{path} HTTP/1.1\r\nHost: api.example.com\r\n{UPGRADE}");
        for (framing, rest) in [
            ("Content-Length: 9\r\n\r\nhello", "more"),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "0\r\n\r\n"),
        ] {
            for way in Way::ALL {
                let mut client = both.sent(way, format!("{}{framing}", head("early")));
                let answer = client.read_response();
                let said = (answer.status, answer.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {framing:?}");
                client.send(rest);
                assert!(client.is_closed(), "{way} {framing:?}");

                let mut client = both.sent(way, format!("{}{framing}{rest}", head("late")));
                assert_eq!(client.read_response().status, 101, "{way} {framing:?}");
                client.send("frames");
                assert_eq!(client.read_exact(6), b"frames", "{way} {framing:?}");
            }
        }
        for way in Way::ALL {
            let raw = both.origin(way).raw();
            let seen = String::from_utf8_lossy(&raw);
            assert_eq!(seen.matches("frames").count(), 2, "{way}: {seen}");
        }
        both.audited(8);
    });
}
