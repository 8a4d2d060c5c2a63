//! Does a connection stay HTTP/1.1 until both sides agreed otherwise?

use outgate_tests::prelude::*;

use crate::{answered_by, both_ways, targets};

const H2C: &str = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAAQAAP__\r\n";
const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[test]
fn removes_an_upgrade_to_anything_but_websocket() {
    isolated(|| {
        let both = both_ways();
        let offers = [
            H2C.to_owned(),
            "Connection: upgrade\r\nUpgrade: TLS/1.2\r\n".to_owned(),
            "Connection: upgrade\r\nUpgrade: h2c, websocket\r\n".to_owned(),
            "Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n".to_owned(),
            "Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n".to_owned(),
            "Upgrade: websocket\r\n".to_owned(),
        ];
        for offer in &offers {
            for way in Way::ALL {
                let head = format!("GET @/ HTTP/1.1\r\nHost: api.example.com\r\n{offer}\r\n");
                let answer = both.ask(way, head);
                assert_eq!(answer.status, 200, "{way} {offer}");
            }
        }
        for way in Way::ALL {
            for request in both.origin(way).requests() {
                for name in ["upgrade", "connection", "http2-settings"] {
                    assert_eq!(request.header(name), None, "{way}: {request:?}");
                }
            }
        }
        both.audited(2 * offers.len());
    });
}

#[test]
fn answers_502_for_a_switch_to_http_2_that_the_client_offered() {
    isolated(|| {
        let world = world!();
        let both = answered_by(&world, || {
            scripts::respond(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n\
                 \0\0\0\x04\0\0\0\0\0",
            )
        });
        for way in Way::ALL {
            let head = format!("GET @/ HTTP/1.1\r\nHost: api.example.com\r\n{H2C}\r\n");
            let mut client = both.sent(way, [head.as_str(), PREFACE].concat());
            let answer = client.read_response();
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (502, Some("origin_protocol")), "{way}");
            assert_eq!(client.read_response().status, 400, "{way}: the preface is no request");
            assert!(client.is_closed(), "{way}");
            assert!(both.origin(way).wait_closed(), "{way}");
            let raw = both.origin(way).raw();
            assert!(!raw.windows(6).any(|window| window == b"HTTP/2"), "{way}");
        }
    });
}

#[test]
fn never_serves_a_preface_of_http_2_on_an_http_1_connection() {
    isolated(|| {
        let both = both_ways();
        both.refuses_and_closes(PREFACE, 400, "malformed_request");
        for way in Way::ALL {
            let mut client = both.sent(way, "GET @/1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(client.read_response().status, 200);
            client.send(PREFACE);
            assert_eq!(client.read_response().status, 400, "{way}");
            assert!(client.is_closed(), "{way}");
            assert_eq!(targets(&both, way), ["/1"], "{way}");
        }
        both.audited(2 + 4);
    });
}

#[test]
fn answers_502_for_a_switch_that_nobody_asked_for() {
    isolated(|| {
        let world = world!();
        for protocol in ["websocket", "h2c", "anything"] {
            let both = answered_by(&world, move || {
                scripts::respond(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                     Upgrade: {protocol}\r\n\r\nopaque"
                ))
            });
            for way in Way::ALL {
                let request = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
                let answer = both.ask(way, request);
                let said = (answer.status, answer.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {protocol}");
                assert!(both.origin(way).wait_closed(), "{way} {protocol}");
            }
            both.audited(2);
        }
    });
}
