//! Does an upload reach its origin when, and only when, the origin wants it?

use std::time::Instant;

use outgate_tests::prelude::*;

use crate::{answered_by, pattern};

const EXPECT: &str = "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nExpect: 100-continue\r\n\
                      Content-Length: 5\r\n\r\n";

#[test]
fn takes_a_chunked_body_that_comes_late() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                "POST @/log HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            std::thread::sleep(Duration::from_millis(200));
            client.send("3\r\nabc\r\n0\r\n\r\n");
            assert_eq!(client.read_response().json()["body"], "abc", "{way}");
        }
    });
}

#[test]
fn passes_each_piece_of_an_upload_before_the_next_is_sent() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        for way in Way::ALL {
            let origin = both.origin(way);
            let mut client = both.sent(
                way,
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            for piece in ["one!", "two!", "six!"] {
                client.send(format!("4\r\n{piece}\r\n"));
                let arrived = || String::from_utf8_lossy(&origin.raw()).contains(piece);
                assert!(wait_until(Duration::from_secs(5), arrived), "{way}: {piece} held back");
            }
            client.send("0\r\n\r\n");
            assert_eq!(client.read_response().json()["body"], "one!two!six!", "{way}");
        }
    });
}

#[test]
fn refuses_an_upload_at_once_and_asks_for_none_of_it() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        let head = "POST http://evil.example.test/big HTTP/1.1\r\nHost: evil.example.test\r\n\
                    Expect: 100-continue\r\nContent-Length: 50000000\r\n\r\n";
        let begun = Instant::now();
        let answer = both.ask(Way::Forward, head);
        assert_eq!(answer.header("outgate-reason"), Some("domain_not_allowed"));
        assert!(answer.interim.is_empty(), "it asked for the body");
        assert!(begun.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn passes_on_the_word_of_the_origin_about_an_upload() {
    isolated(|| {
        let both = answered_by(&world!(), one_word);
        for way in Way::ALL {
            let mut client = both.sent(way, EXPECT.replace("@/", "@/refuse"));
            let answer = client.read_response();
            assert_eq!((answer.status, answer.interim.len()), (417, 0), "{way}");
            let raw = String::from_utf8_lossy(&both.origin(way).raw()).into_owned();
            assert!(!raw.contains("hello"), "{way}: the body went up");

            let mut client = both.sent(way, EXPECT.replace("@/", "@/continue"));
            read_continue(&mut client);
            client.send("hello");
            assert_eq!(client.read_response().text(), "hello", "{way}");

            // An origin that knows no 100 gets the body after a while.
            let mut client = both.sent(way, EXPECT.replace("@/", "@/silent"));
            read_continue(&mut client);
            client.send("hello");
            assert_eq!(client.read_response().text(), "hello", "{way}");
        }
        both.audited(6);
    });
}

fn read_continue(client: &mut RawClient) {
    let wanted = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(client.read_exact(wanted.len()), wanted);
}

/// Says about the upload what the target asks for.
fn one_word() -> Box<origin::Script> {
    Box::new(|connection: &mut Connection| {
        while let Some(head) = connection.head() {
            if head.start_line.contains("/refuse") {
                connection.send("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno");
                return;
            }
            if head.start_line.contains("/continue") {
                connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            if let Ok(request) = connection.body(head) {
                connection.send(scripts::ok(request.body));
            }
        }
    })
}

#[test]
fn an_upload_may_take_longer_than_the_wait_for_its_answer() {
    isolated(|| {
        let world = world!();
        let _origin = world.https("api.example.com").script(scripts::swallow()).start();
        let slow = world
            .http("api.example.com")
            .script(scripts::respond_after(Duration::from_secs(20), scripts::ok("late")))
            .start();
        let gateway = world
            .gateway_builder()
            .environment(&json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}))
            .configuration("[limits]\nresponse_head = \"1s\"\n")
            .start();
        let answer = gateway
            .curl("https://api.example.com/")
            .body(vec![b'x'; 400_000])
            .argument("--header")
            .argument("Expect:")
            .argument("--limit-rate")
            .argument("130000")
            .run();
        assert_eq!((answer.status, answer.text().as_str()), (200, "400000"), "{answer:?}");
        // The control: an origin that has everything and says nothing.
        let answer = gateway.curl("http://api.example.com/").body("x").run();
        assert_eq!((answer.status, answer.reason()), (504, Some("origin_timeout")), "{answer:?}");
        drop(slow);
    });
}

#[test]
fn carries_a_large_upload_to_an_origin_that_reads_slowly() {
    isolated(|| {
        const LENGTH: usize = 136_000;
        let both = answered_by(&world!(), || {
            Box::new(|connection: &mut Connection| {
                let head = connection.head().expect("a head");
                let mut body = Vec::new();
                while body.len() < LENGTH {
                    let bytes = connection.bytes();
                    assert!(!bytes.is_empty(), "the upload ended early");
                    body.extend(bytes);
                    connection.pause(Duration::from_millis(50));
                }
                assert_eq!(head.value("content-length"), Some("136000"));
                assert!(body == pattern(LENGTH), "not byte for byte");
                connection.send(scripts::ok("whole"));
            })
        });
        for way in Way::ALL {
            let scheme = if way == Way::Forward { "http" } else { "https" };
            let answer = both
                .gateway
                .curl(&format!("{scheme}://api.example.com/"))
                .body(pattern(LENGTH))
                .run();
            assert_eq!((answer.status, answer.text().as_str()), (200, "whole"), "{way}");
        }
    });
}

#[test]
fn an_early_answer_reaches_a_client_that_still_uploads() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            Box::new(|connection: &mut Connection| {
                connection.head();
                connection.send("HTTP/1.1 413 Too Big\r\nContent-Length: 3\r\n\r\nbig");
                connection.pause(Duration::from_millis(300));
            })
        });
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 1000000\r\n\r\nstart",
            );
            let answer = client.read_response();
            assert_eq!((answer.status, answer.text().as_str()), (413, "big"), "{way}");
        }
        both.audited(2);
    });
}
