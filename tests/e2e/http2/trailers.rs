//! Can what comes behind a body say what only a head may?

use std::thread;

use outgate_tests::http2::RawAnswer;
use outgate_tests::prelude::*;

use crate::{NAME, OTHER, open_gateway};

/// A request whose trailers are this block; what came back, if its connection still lived.
fn behind_a_body(gateway: &Gateway, name: &str, flags: u8, block: &[u8]) -> Option<RawAnswer> {
    let mut client = gateway.frames(name);
    let post = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", name),
        (":path", "/"),
        ("trailer", "x-sum"),
    ];
    client.send(frames::open_headers(1, &post));
    client.send(frames::data(1, b"hello", false));
    // The origin has the head by then.
    thread::sleep(Duration::from_millis(100));
    client.send(frames::frame(frames::HEADERS, flags, 1, block));
    if flags & frames::END_STREAM == 0 {
        client.send(frames::data(1, b"more", true));
    }
    client.try_answer(1)
}

/// The codec drops them (RFC 9113 §8.1 would have the stream reset): nobody hears of them.
#[test]
fn pseudo_fields_in_them_go_nowhere() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let gateway = open_gateway(&world);
        let ends = frames::END_HEADERS | frames::END_STREAM;
        let blocks: [&[(&str, &str)]; 3] = [
            &[(":path", "/evil"), ("x-sum", "1")],
            &[(":status", "200"), ("x-sum", "1")],
            &[
                (":method", "PUT"),
                (":scheme", "http"),
                (":authority", "evil.example.test"),
                (":path", "/evil"),
                ("x-sum", "1"),
            ],
        ];
        for block in blocks {
            for name in [NAME, OTHER] {
                let answer = behind_a_body(&gateway, name, ends, &frames::header_block(block));
                assert_eq!(answer.expect("an answer").status(), 200, "{name} {block:?}");
            }
        }
        let due = [("x-sum".to_owned(), "1".to_owned())];
        for request in newer.requests() {
            assert_eq!((request.path.as_str(), &request.trailers[..]), ("/", &due[..]));
        }
        for request in older.requests() {
            assert_eq!((request.target.as_str(), request.text().as_str()), ("/", "hello"));
            assert_eq!(request.trailers.len(), 1, "{request:?}");
        }
        assert_eq!((newer.requests().len(), older.requests().len()), (3, 3));
    });
}

#[test]
fn malformed_ones_end_their_request_unfinished() {
    isolated(|| {
        let world = world!();
        let origin = world.https(OTHER).start();
        let gateway = open_gateway(&world);
        let ends = frames::END_HEADERS | frames::END_STREAM;
        let blocks: [(u8, &[(&str, &str)]); 7] = [
            (ends, &[("x-sum", "1"), (":path", "/evil")]),
            (ends, &[("transfer-encoding", "chunked"), ("x-sum", "1")]),
            (ends, &[("connection", "x-sum"), ("x-sum", "1")]),
            (ends, &[("X-Sum", "1")]),
            (ends, &[("x-sum", "1\r\nevil: 1")]),
            (ends, &[(":evil", "1")]),
            // What ends no stream is no trailer.
            (frames::END_HEADERS, &[("x-sum", "1")]),
        ];
        for (flags, block) in blocks {
            let fields = frames::header_block(block);
            let answer = behind_a_body(&gateway, OTHER, flags, &fields);
            let ended = answer.is_none_or(|answer| answer.reset == Some(frames::PROTOCOL_ERROR));
            assert!(ended, "{block:?}");
            assert!(origin.wait_closed(), "{block:?}");
        }
        assert!(origin.requests().is_empty(), "{:?}", origin.requests());
        let fields = frames::header_block(&[("x-sum", "1")]);
        let control = behind_a_body(&gateway, OTHER, ends, &fields);
        assert_eq!(control.expect("an answer").status(), 200);
    });
}
