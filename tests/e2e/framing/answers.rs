//! Is an origin's answer one answer, or none?

use outgate_tests::prelude::*;

use crate::answered_by;

const REQUEST: &str = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// An origin that answers the request for `/NUMBER` with the answer of that number.
fn numbered(answers: Vec<Vec<u8>>) -> impl Fn() -> Box<origin::Script> {
    move || {
        let answers = answers.clone();
        Box::new(move |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                let number: usize = request.target[1..].parse().expect("tests ask for a number");
                if !connection.send(&answers[number]) {
                    return;
                }
            }
        })
    }
}

fn request(method: &str, number: usize) -> String {
    format!("{method} @/{number} HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
}

#[test]
fn answers_502_for_heads_that_parsers_read_in_different_ways() {
    isolated(|| {
        let world = world!();
        let length = "Content-Length: 5\r\n";
        let heads: Vec<Vec<u8>> = [
            "Content-Length : 5\r\n".to_owned(),
            format!("{length}: 5\r\n"),
            format!("{length}X\r\n"),
            format!("{length}X\0Y: 1\r\n"),
            format!("{length}X: a\0b\r\n"),
            format!("{length}X: a\rb\r\n"),
            format!("{length}X: 1\r\n 2\r\n"),
            "Content-Length:\r\n 5\r\n".to_owned(),
            "Content-Length: +5\r\n".to_owned(),
            "Content-Length: 5x\r\n".to_owned(),
            "Content-Length: 5, 6\r\n".to_owned(),
            "Content-Length: 18446744073709551621\r\n".to_owned(),
            format!("{length}Content-Length: 6\r\n"),
            "Transfer-Encoding: gzip\r\n".to_owned(),
            "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
            "Transfer-Encoding: chunked, gzip\r\n".to_owned(),
            "Transfer-Encoding: xchunked\r\n".to_owned(),
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        ]
        .iter()
        .map(|fields| format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello").into_bytes())
        .chain(
            ["HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "SSH-2.0-x\r\n"].map(Into::into),
        )
        .collect();
        let count = heads.len();
        let both = answered_by(&world, numbered(heads));
        for number in 0..count {
            for way in Way::ALL {
                let answer = both.ask(way, request("GET", number));
                let said = (answer.status, answer.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {number}");
            }
        }
        both.audited(2 * count);
    });
}

#[test]
fn frames_each_answer_once() {
    isolated(|| {
        let world = world!();
        let chunked = "5\r\nhello\r\n0\r\n\r\n";
        let framings = [
            format!("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
            format!("Transfer-Encoding: chunked\r\nContent-Length: 300\r\n\r\n{chunked}"),
            "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
            "Connection: content-length\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        ];
        let answers = framings.iter().map(|rest| format!("HTTP/1.1 200 OK\r\n{rest}").into());
        let both = answered_by(&world, numbered(answers.collect()));
        for number in 0..framings.len() {
            for way in Way::ALL {
                // The strict parser takes one framing only.
                let mut client = both.sent(way, request("GET", number));
                assert_eq!(client.read_response().text(), "hello", "{way} {number}");
                client.send(way.write(request("GET", 3)));
                assert_eq!(client.read_response().text(), "hello", "{way}: out of step");
            }
        }
        both.audited(4 * framings.len());
    });
}

#[test]
fn sends_no_body_where_none_belongs_and_keeps_in_step() {
    isolated(|| {
        let world = world!();
        let answers: Vec<Vec<u8>> = [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 1000\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ]
        .map(Into::into)
        .into();
        let both = answered_by(&world, numbered(answers));
        for (method, number) in
            [("HEAD", 0), ("HEAD", 1), ("GET", 2), ("GET", 3), ("GET", 4), ("HEAD", 4)]
        {
            for way in Way::ALL {
                let mut client = both.sent(way, request(method, number));
                let answer = client.try_read_response(method);
                let answer = answer.unwrap_or_else(|fault| panic!("{way} {number}: {fault}"));
                assert!(answer.body.is_empty(), "{way} {number}");
                if number == 4 {
                    let kept = (method == "HEAD").then_some("1000");
                    assert_eq!(answer.header("content-length"), kept, "{way} {method}");
                    assert_eq!(answer.header("etag"), Some("\"1\""), "{way}");
                }
                if number == 1 {
                    assert_eq!(answer.header("content-length"), Some("1000"), "{way} {number}");
                }
                client.send(way.write(request("GET", 5)));
                assert_eq!(client.read_response().text(), "ok", "{way} {number}: out of step");
            }
        }
        both.audited(2 * 2 * 6);
    });
}

#[test]
fn never_takes_what_follows_an_answer_for_the_next_one() {
    isolated(|| {
        let world = world!();
        let planted = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted";
        let answers: Vec<Vec<u8>> = [
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{planted}", planted.len()),
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n{planted}"),
            format!("HTTP/1.1 204 No Content\r\n\r\n{planted}"),
            format!("HTTP/1.1 304 Not Modified\r\n\r\n{planted}"),
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue".to_owned(),
        ]
        .map(Into::into)
        .into();
        let both = answered_by(&world, numbered(answers));
        for (method, number) in [("HEAD", 0), ("GET", 1), ("GET", 2), ("GET", 3)] {
            for way in Way::ALL {
                let mut client = both.sent(way, request(method, number));
                client.try_read_response(method).expect("the first answer is whole");
                client.send(way.write(request("GET", 4)));
                assert_eq!(client.read_response().text(), "true", "{way} {method} {number}");
            }
        }
        both.audited(2 * 2 * 4);
    });
}

#[test]
fn passes_an_answer_behind_a_few_interim_ones() {
    isolated(|| {
        let world = world!();
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
        let unasked = "HTTP/1.1 100 Continue\r\n\r\n";
        let last = String::from_utf8(scripts::ok("last")).expect("text");
        let response = format!("{early}{unasked}{early}{last}");
        let both = answered_by(&world, move || scripts::respond(response.clone()));
        for way in Way::ALL {
            let mut client = both.client(way);
            for _ in 0..2 {
                client.send(way.write(REQUEST));
                assert_eq!(client.read_response().text(), "last", "{way}");
            }
        }
        both.audited(4);
    });
}

#[test]
fn ends_a_flood_of_interim_answers() {
    isolated(|| {
        let world = world!();
        for status in ["103 Early Hints", "100 Continue", "199 X"] {
            let interim = format!("HTTP/1.1 {status}\r\n\r\n");
            let both = answered_by(&world, move || {
                let interim = interim.clone();
                Box::new(move |connection: &mut Connection| {
                    connection.request();
                    for _ in 0..100_000 {
                        if !connection.send(&interim) {
                            return;
                        }
                        connection.pause(Duration::from_millis(1));
                    }
                })
            });
            for way in Way::ALL {
                let answer = both.ask(way, REQUEST);
                let said = (answer.status, answer.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {status}");
                assert!(both.origin(way).wait_closed(), "{way} {status}");
            }
            both.audited(2);
        }
    });
}

#[test]
fn bounds_the_head_of_an_answer() {
    isolated(|| {
        let world = world!();
        let many: String = (0..101).map(|number| format!("X-{number}: 1\r\n")).collect();
        let answers: Vec<Vec<u8>> = [
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{many}\r\n"),
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "x".repeat(192 << 10)),
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "x".repeat(16 << 10)),
        ]
        .map(Into::into)
        .into();
        let both = answered_by(&world, numbered(answers));
        for way in Way::ALL {
            let statuses: Vec<u16> =
                (0..3).map(|number| both.ask(way, request("GET", number)).status).collect();
            assert_eq!(statuses, [502, 502, 200], "{way}");
        }
        both.audited(6);
    });
}
