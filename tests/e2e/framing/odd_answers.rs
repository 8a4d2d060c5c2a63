//! What does a client get of an answer that is written oddly?

use outgate_tests::prelude::*;

use crate::answered_by;

const GET: &str = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// By each way, an origin that says just this and then ends the connection.
fn saying(world: &World, answer: &str) -> BothWays {
    let answer = answer.chars().map(|byte| byte as u8).collect::<Vec<_>>();
    answered_by(world, move || scripts::respond_and_close(answer.clone()))
}

fn hello(head: &str) -> String {
    format!("{head}Content-Length: 5\r\n\r\nhello")
}

#[test]
fn one_that_can_be_read_in_one_way_comes_as_a_strict_one() {
    isolated(|| {
        let world = world!();
        let chunked = "Transfer-Encoding: chunked\r\n";
        let answers = [
            ("200 OK", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello".to_owned()),
            ("200 ", hello("HTTP/1.1 200\r\n")),
            ("200 ", hello("HTTP/1.1 200 \r\n")),
            ("200 ", hello("HTTP/1.1 200 \u{e9}\r\n")),
            ("200 OK", hello("\r\nHTTP/1.1 200 OK\r\n")),
            ("205 Reset", hello("HTTP/1.1 205 Reset\r\n")),
            ("200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello".to_owned()),
            ("200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 0005\r\n\r\nhello".to_owned()),
            ("200 OK", hello("HTTP/1.1 200 OK\r\nTransfer_Encoding: chunked\r\n")),
            (
                "200 OK",
                hello(
                    "HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n",
                ),
            ),
            (
                "200 OK",
                format!("HTTP/1.1 200 OK\r\n{chunked}\r\n5;a=\"b\"\r\nhello\r\n0;c\r\n\r\n"),
            ),
            ("200 OK", format!("HTTP/1.1 200 OK\r\n{chunked}\r\n5 \r\nhello\r\n000\r\n\r\n")),
            (
                "200 OK",
                format!(
                    "HTTP/1.1 200 OK\r\nConnection: close, Transfer-Encoding\r\n{chunked}\r\n\
                     5\r\nhello\r\n0\r\n\r\n"
                ),
            ),
        ];
        for (line, answer) in &answers {
            let both = saying(&world, answer);
            for way in Way::ALL {
                let got = both.ask(way, GET);
                assert_eq!(got.head.start_line, format!("HTTP/1.1 {line}"), "{way} {answer:?}");
                assert_eq!(got.text(), "hello", "{way} {answer:?}");
                // One framing, in digits that everybody reads alike.
                let length = got.header("content-length");
                assert!(length.is_none_or(|length| length == "5"), "{way} {answer:?}: {got:?}");
            }
            both.audited(2);
        }
    });
}

#[test]
fn a_status_that_nobody_registered_passes_as_it_is() {
    isolated(|| {
        let world = world!();
        for status in ["299", "600", "999"] {
            let both = saying(&world, &hello(&format!("HTTP/1.1 {status} Odd\r\n")));
            for way in Way::ALL {
                // The strict parser takes no more than the classes of RFC 9110.
                let mut client =
                    both.sent(way, GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
                let bytes = client.read_to_end().expect("it ends in order");
                let text = String::from_utf8_lossy(&bytes);
                assert!(text.starts_with(&format!("HTTP/1.1 {status} Odd\r\n")), "{way}: {text}");
                assert!(text.ends_with("\r\n\r\nhello"), "{way}: {text}");
            }
            both.audited(2);
        }
    });
}

#[test]
fn one_that_can_be_read_in_two_is_a_502() {
    isolated(|| {
        let world = world!();
        let answers = [
            hello("HTTP/1.1  200 OK\r\n"),
            hello("HTTP/1.1 099 Odd\r\n"),
            hello("HTTP/1.1 200 a\u{1}b\r\n"),
            hello("HTTP/1.1 200 a\0b\r\n"),
            hello("HTTP/1.1 200 a\rb\r\n"),
            hello("HTTP/1.1 200 OK\r\nX: a\u{1}b\r\n"),
            hello("HTTP/1.2 200 OK\r\n"),
            hello("HTTP/0.9 200 OK\r\n"),
            hello("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n"),
            hello("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n"),
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                .to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello".to_owned(),
            hello("HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n"),
            "HTTP/1.1 102 Processing\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Le".to_owned(),
            "hello".to_owned(),
        ];
        for answer in &answers {
            let both = saying(&world, answer);
            for way in Way::ALL {
                let got = both.ask(way, GET);
                let said = (got.status, got.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {answer:?}");
            }
            both.audited(2);
        }
    });
}

#[test]
fn one_without_a_body_says_no_length_that_misleads() {
    isolated(|| {
        let world = world!();
        // What a HEAD says of a body that it has not is another's: only where there is never one.
        let answers = [
            (None, hello("HTTP/1.1 204 No Content\r\n")),
            (None, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
            (None, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
            (None, "HTTP/1.1 200 OK\r\nContent-Length: 0005\r\n\r\n".to_owned()),
            (None, "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n".to_owned()),
            (Some("5"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_owned()),
        ];
        for (length, answer) in &answers {
            let both = saying(&world, answer);
            for way in Way::ALL {
                let mut client = both.sent(way, GET.replace("GET", "HEAD"));
                for _ in 0..2 {
                    let got = client.try_read_response("HEAD");
                    let got = got.unwrap_or_else(|fault| panic!("{way} {answer:?}: {fault}"));
                    assert_eq!(got.header("content-length"), *length, "{way} {answer:?}");
                    client.send(way.write(GET.replace("GET", "HEAD")));
                }
            }
        }
    });
}

#[test]
fn a_204_with_a_length_is_whole_for_clients_of_http2_too() {
    isolated(|| {
        let world = world!();
        let both = saying(&world, &hello("HTTP/1.1 204 No Content\r\n"));
        let client = both.gateway.http2("api.example.com").connect();
        for method in ["GET", "HEAD"] {
            let answer = client.ask(client.request(method, "/"), "");
            assert_eq!((answer.status, answer.header("content-length")), (204, None), "{method}");
        }
    });
}
