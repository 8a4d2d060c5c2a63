//! Which request heads say one thing to everyone?

use outgate_tests::prelude::*;

use crate::{both_ways, targets};

const HOST: &str = "Host: api.example.com\r\n";

#[test]
fn refuses_fields_that_parsers_read_in_different_ways() {
    isolated(|| {
        let both = both_ways();
        let fields: [&[u8]; 17] = [
            b"Content-Length : 5\r\n",
            b"X\t: 1\r\n",
            b": 5\r\n",
            b"Host\r\n",
            b"X\0Y: 1\r\n",
            b"X: a\0b\r\n",
            b"X: a\rb\r\n",
            b"X: a\rX-Inner: 1\r\n",
            b"X: a\x7fb\r\n",
            b"X(): 1\r\n",
            b"X Y: 1\r\n",
            b"\xc3\xa9: 1\r\n",
            b"X: 1\r\n 2\r\n",
            b"X: a\r\n\tTransfer-Encoding: chunked\r\n",
            b"Content-Length:\r\n 5\r\n",
            b"Transfer-Encoding:\r\n chunked\r\n",
            b"X: a\r\n\r: b\r\n",
        ];
        for field in fields {
            let head = [b"GET @/ HTTP/1.1\r\n", HOST.as_bytes(), field, b"\r\n"].concat();
            both.refuses_and_closes(head, 400, "malformed_request");
        }
        let firsts = [
            " Host: api.example.com\r\n",
            "\tX: 1\r\nHost: api.example.com\r\n",
            "Host: api.example.com\r\n .evil.example.test\r\n",
        ];
        for first in firsts {
            both.refuses_and_closes(
                format!("GET @/ HTTP/1.1\r\n{first}\r\n"),
                400,
                "malformed_request",
            );
        }
        both.still_works();
        both.audited(2 * (fields.len() + firsts.len()) + 2);
    });
}

#[test]
fn passes_bytes_above_ascii_in_a_value_as_they_are() {
    isolated(|| {
        let both = both_ways();
        let value = [0x80, 0xff, b'a', 0xc3, 0xa9];
        for way in Way::ALL {
            let head = [b"GET @/ HTTP/1.1\r\n", HOST.as_bytes(), b"X-Raw: ", &value, b"\r\n\r\n"];
            assert_eq!(both.ask(way, head.concat()).status, 200, "{way}");
            let raw = both.origin(way).raw();
            assert!(raw.windows(5).any(|window| window == value), "{way}: not byte for byte");
        }
    });
}

#[test]
fn refuses_any_number_of_hosts_but_one() {
    isolated(|| {
        let both = both_ways();
        let hosts = [
            (400, "malformed_request", ""),
            (400, "malformed_request", "Host: api.example.com\r\nHost: api.example.com\r\n"),
            (400, "malformed_request", "Host: api.example.com\r\nHost: evil.example.test\r\n"),
            (400, "malformed_host", "Host: api.example.com, evil.example.test\r\n"),
            (400, "malformed_host", "Host:\r\n"),
            (400, "malformed_host", "Host: api.example.com evil.example.test\r\n"),
            (400, "malformed_host", "Host: api.example.com@evil.example.test\r\n"),
            (400, "malformed_port", "Host: http://api.example.com/\r\n"),
            (421, "name_mismatch", "Host: evil.example.test\r\n"),
            (421, "name_mismatch", "Host: api.example.com:8443\r\n"),
        ];
        for (status, reason, host) in hosts {
            both.refuses(format!("GET @/ HTTP/1.1\r\n{host}\r\n"), status, reason);
        }
        // RFC 9112 5: blanks around a value are no part of it.
        for way in Way::ALL {
            let answer = both.ask(way, "GET @/ HTTP/1.1\r\nHost: \t api.example.com\t \r\n\r\n");
            assert_eq!(answer.status, 200, "{way}");
            assert_eq!(both.origin(way).requests()[0].header("host"), Some("api.example.com"));
        }
        both.audited(2 * hosts.len() + 2);
    });
}

#[test]
fn refuses_request_lines_that_parsers_read_in_different_ways() {
    isolated(|| {
        let both = both_ways();
        let lines: [&[u8]; 17] = [
            b"GET  @/ HTTP/1.1",
            b"GET\t@/ HTTP/1.1",
            b" GET @/ HTTP/1.1",
            b"GET @/ HTTP/1.10",
            b"GET @/ http/1.1",
            b"GET @/ HTTP/2.0",
            b"GET @/ HTTP/1.2",
            b"GET @/ HTTP/0.9",
            b"GET @/",
            b"GET @/a b HTTP/1.1",
            b"GET @/a\tb HTTP/1.1",
            b"G\0T @/ HTTP/1.1",
            b"G(T @/ HTTP/1.1",
            b"GET @/a\0b HTTP/1.1",
            b"GET @/a\x7fb HTTP/1.1",
            b"GET @/a\rb HTTP/1.1",
            b"GET @/ HTTP/1.1\r",
        ];
        for line in lines {
            let head = [line, b"\r\n", HOST.as_bytes(), b"\r\n"].concat();
            both.refuses_and_closes(head, 400, "malformed_request");
        }
        both.still_works();
        both.audited(2 * lines.len() + 2);
    });
}

#[test]
fn refuses_targets_and_methods_that_no_client_needs() {
    isolated(|| {
        let both = both_ways();
        let long = "M".repeat(9 << 10);
        let lines: [&[u8]; 7] = [
            b"get @/ HTTP/1.1",
            b"Trace @/ HTTP/1.1",
            b"deletE @/ HTTP/1.1",
            "GET @/ä HTTP/1.1".as_bytes(),
            "GET @/a?q=ä HTTP/1.1".as_bytes(),
            b"GET @/\xff HTTP/1.1",
            &[long.as_bytes(), b" @/ HTTP/1.1"].concat(),
        ];
        for line in lines {
            let head = [line, b"\r\n", HOST.as_bytes(), b"\r\n"].concat();
            both.refuses(head, 400, "malformed_request");
        }
        both.still_works();
        both.audited(2 * lines.len() + 2);
    });
}

#[test]
fn sends_up_one_strict_request_for_each_that_it_accepts_knowingly() {
    isolated(|| {
        let both = both_ways();
        let empty_lines = "\r\n".repeat(100);
        let accepted = [
            ("GET @/bare-lf HTTP/1.1\nHost: api.example.com\nX: 1\n\n".to_owned(), "/bare-lf"),
            ("GET @/mixed HTTP/1.1\r\nHost: api.example.com\nX: 1\r\n\n".to_owned(), "/mixed"),
            (format!("GET @/fragment#b HTTP/1.1\r\n{HOST}\r\n"), "/fragment"),
            (format!("GET @/query?a#b?c HTTP/1.1\r\n{HOST}\r\n"), "/query?a"),
            (format!("{empty_lines}GET @/empty-lines HTTP/1.1\r\n{HOST}\r\n"), "/empty-lines"),
        ];
        for (template, target) in &accepted {
            for way in Way::ALL {
                let answer = both.ask(way, template);
                assert_eq!(
                    (answer.status, &answer.json()["target"]),
                    (200, &json!(target)),
                    "{way}"
                );
            }
        }
        let wanted: Vec<&str> = accepted.iter().map(|(_, target)| *target).collect();
        for way in Way::ALL {
            assert_eq!(targets(&both, way), wanted, "{way}");
        }
        both.audited(2 * accepted.len());
    });
}

#[test]
fn an_absolute_target_without_a_path_is_sent_with_the_path_that_was_judged() {
    isolated(|| {
        let both = both_ways();
        for (after, target) in [("", "/"), ("#x", "/"), ("?", "/?"), ("?a=b", "/?a=b")] {
            let head = format!("GET https://api.example.com{after} HTTP/1.1\r\n{HOST}\r\n");
            let answer = both.ask(Way::Tunnel, head);
            assert_eq!((answer.status, &answer.json()["target"]), (200, &json!(target)), "{after}");
        }
    });
}

#[test]
fn refuses_a_head_that_is_too_big() {
    isolated(|| {
        let both = both_ways();
        let many: String = (0..101).map(|number| format!("X-{number}: 1\r\n")).collect();
        let big = "x".repeat(192 << 10);
        let heads = [
            format!("GET @/ HTTP/1.1\r\n{HOST}{many}\r\n"),
            format!("GET @/ HTTP/1.1\r\n{HOST}X: {big}\r\n\r\n"),
            format!("GET @/ HTTP/1.1\r\n{HOST}{big}: x\r\n\r\n"),
            format!("GET @/{big}{big} HTTP/1.1\r\n{HOST}\r\n"),
        ];
        for head in &heads {
            both.refuses_and_closes(head, 431, "head_too_large");
        }
        both.still_works();
        both.audited(2 * heads.len() + 2);
    });
}

#[test]
fn takes_methods_that_nobody_registered_up_to_a_length() {
    isolated(|| {
        let both = both_ways();
        let method = "M".repeat(32);
        for way in Way::ALL {
            let answer = both.ask(way, format!("{method} @/ HTTP/1.1\r\n{HOST}\r\n"));
            assert_eq!(answer.json()["method"], method.as_str(), "{way}");
        }
        both.refuses(format!("{method}M @/ HTTP/1.1\r\n{HOST}\r\n"), 400, "malformed_request");
        both.audited(4);
    });
}

#[test]
fn refuses_an_expectation_that_nobody_can_meet() {
    isolated(|| {
        let both = both_ways();
        let expectations =
            ["200-ok", "", "100-continue, x", "100-continue\r\nExpect: 100-continue"];
        for expect in expectations {
            let head = format!("GET @/ HTTP/1.1\r\n{HOST}Expect: {expect}\r\n\r\n");
            both.refuses(head, 400, "malformed_request");
        }
        both.still_works();
        both.audited(2 * expectations.len() + 2);
    });
}
