//! Is what can't be read cut, and not passed?

use outgate_tests::prelude::*;

use crate::{GET, NAME, answer, environment, tunnel};

/// What a bomb may take at most, above what the gateway had before.
const ROOM_KIB: u64 = 16 << 10;

/// What comes of a plain request.
fn asked(gateway: &Gateway) -> Result<Response, ReadFault> {
    let mut client = tunnel(gateway);
    client.send(GET);
    client.try_read_response("GET")
}

#[test]
fn an_answer_in_a_coding_that_is_not_known_is_not_sent_at_all() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        for coding in ["deflate", "dcz", "gzip, gzip, gzip"] {
            let head = format!("200 OK\r\nContent-Encoding: {coding}");
            let _origin = world.https(NAME).respond(answer(&head, &secret)).start();
            let mut gateway = world.gateway(environment(&secret, true));
            let said = tunnel(&gateway).exchange(GET);
            assert_eq!(
                (said.status, said.header("outgate-reason")),
                (502, Some("origin_protocol"))
            );
            assert_secret_absent(&said.body, &secret);
            let control = world.gateway(environment(&secret, false));
            assert_eq!(tunnel(&control).exchange(GET).text(), secret, "{coding}");
            let audit = gateway.final_audit();
            let error = audit[0]["error"].as_str().unwrap_or_default();
            assert!(error.contains("content coding"), "{error}");
        }
    });
}

#[test]
fn a_part_of_a_body_is_not_sent_at_all() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        for head in ["206 Partial Content", "200 OK\r\nContent-Range: bytes 0-1/80"] {
            let _origin = world.https(NAME).respond(answer(head, &secret[..20])).start();
            let gateway = world.gateway(environment(&secret, true));
            let said = tunnel(&gateway).exchange(GET);
            assert_eq!(said.header("outgate-reason"), Some("origin_protocol"), "{said:?}");
            let control = world.gateway(environment(&secret, false));
            assert_eq!(tunnel(&control).exchange(GET).text(), secret[..20]);
        }
    });
}

#[test]
fn a_body_that_turns_out_unreadable_ends_there() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let mut gateway = world.gateway(environment(&secret, true));
        let text = "0123456789".repeat(10_000) + &secret;
        for coding in CODINGS {
            let whole = compress(coding, text.as_bytes());
            let short = whole[..whole.len() - 2].to_vec();
            let followed = [&whole[..], b"and more"].concat();
            for body in [short, followed, text.clone().into_bytes()] {
                let head = format!("200 OK\r\nContent-Encoding: {coding}");
                let _origin = world.https(NAME).respond(answer(&head, &body)).start();
                match asked(&gateway) {
                    Err(ReadFault::Truncated { body } | ReadFault::Reset { body }) => {
                        assert_secret_absent(&body, &secret);
                    }
                    // It showed before the head was on its way.
                    Err(ReadFault::Closed) => {}
                    other => panic!("{coding}: it came as {other:?}"),
                }
                let client = gateway.http2(NAME).connect();
                let mut http2 = client.open_get("/");
                assert!(http2.head().is_err() || http2.rest().is_err(), "{coding}: it came whole");
            }
        }
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 18);
        for line in audit {
            let error = line["error"].as_str().unwrap_or_default();
            assert!(error.contains("body"), "{line}");
        }
    });
}

#[test]
fn what_may_be_the_beginning_of_a_value_is_dropped_with_a_broken_answer() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        for end in [20, 39, 40] {
            let body =
                format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbefore {}", &secret[..end]);
            let _origin = world.https(NAME).script(scripts::reset_after(body.clone())).start();
            let gateway = world.gateway(environment(&secret, true));
            let said = asked(&gateway);
            let Err(ReadFault::Truncated { body } | ReadFault::Reset { body }) = said else {
                panic!("a broken answer came as {said:?}")
            };
            let body = String::from_utf8_lossy(&body).into_owned();
            assert!("before ".starts_with(body.trim_end_matches('*')), "{body}");
        }
    });
}

#[test]
fn a_bomb_takes_no_more_memory_than_any_answer() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let zeros = vec![0; 24 << 20];
        for coding in CODINGS {
            let bomb = compress(coding, &zeros);
            let head = format!("200 OK\r\nContent-Encoding: {coding}");
            let _origin = world.https(NAME).respond(answer(&head, &bomb)).start();
            let gateway = world.gateway(environment(&secret, true));
            let before = gateway.resident_kib();
            // One that reads nothing, and one that reads all that comes.
            let mut idle = tunnel(&gateway);
            idle.send(GET);
            let said = gateway
                .curl("https://api.example.com/")
                .max_time(120)
                .argument("--output")
                .argument("/dev/null")
                .run();
            let grown = gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{coding}: {grown} KiB for {} bytes", bomb.len());
            let passed = said.details["size_download"].as_u64().unwrap_or_default();
            let whole = said.exit_code == 0;
            // All that gzip can do is honest; a ratio beyond it is not.
            assert_eq!(whole, coding == "gzip", "{coding}: {passed} bytes came");
        }
    });
}
