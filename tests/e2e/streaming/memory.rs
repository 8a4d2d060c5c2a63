//! Is what one side can't take yet kept in the other's hands?

use std::thread;

use outgate_tests::prelude::*;

use crate::{REQUEST, Step, answered_by, pattern};

/// Far above the buffers of one exchange, far below what is sent.
const ROOM_KIB: u64 = 16 << 10;

const BIG: usize = 192 << 20;

#[test]
fn holds_an_origin_back_that_is_faster_than_the_client() {
    isolated(|| {
        let both = answered_by(&world!(), || scripts::big(BIG));
        for way in Way::ALL {
            let before = both.gateway.resident_kib();
            let clients: Vec<RawClient> = (0..4).map(|_| both.sent(way, REQUEST)).collect();
            thread::sleep(Duration::from_secs(1));
            let grown = both.gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{way}: {grown} KiB for clients that don't read");
            drop(clients);
        }
    });
}

#[test]
fn holds_a_client_back_that_is_faster_than_the_origin() {
    isolated(|| {
        let step = Step::default();
        let go = step.clone();
        let both = answered_by(&world!(), || {
            let go = go.clone();
            Box::new(move |connection: &mut Connection| {
                connection.head();
                assert!(go.wait(1));
                let mut received = 0;
                while received < BIG {
                    match connection.bytes().len() {
                        0 => return,
                        length => received += length,
                    }
                }
                connection.send(scripts::ok(received.to_string()));
            })
        });
        for way in Way::ALL {
            step.reach(0);
            let mut client = both.client(way);
            let before = both.gateway.resident_kib();
            let upload = thread::spawn(move || {
                client.send(way.write(format!(
                    "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: {BIG}\r\n\r\n"
                )));
                let piece = vec![b'x'; 1 << 20];
                assert!((0..BIG >> 20).all(|_| client.send(&piece)), "the upload was cut");
                client.read_response().text()
            });
            thread::sleep(Duration::from_secs(1));
            let grown = both.gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{way}: {grown} KiB for an origin that doesn't read");
            assert!(!upload.is_finished(), "{way}: it swallowed the upload");
            step.reach(1);
            assert_eq!(upload.join().expect("no panic"), BIG.to_string(), "{way}");
            let grown = both.gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{way}: {grown} KiB after it");
        }
        both.audited(2);
    });
}

#[test]
fn refuses_a_head_before_its_body_and_keeps_nothing_of_it() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        let name = "x".repeat(200 << 10);
        let heads = [
            (
                431,
                format!(
                    "POST @/ HTTP/1.1\r\nHost: api.example.com\r\n{name}: 1\r\nContent-Length: 1073741824\r\n\r\n"
                ),
            ),
            (
                421,
                "POST @/ HTTP/1.1\r\nHost: evil.example.test\r\nContent-Length: 1073741824\r\n\r\n"
                    .to_owned(),
            ),
            (400, "POST @/ HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n".to_owned()),
        ];
        for (status, head) in &heads {
            for way in Way::ALL {
                let before = both.gateway.resident_kib();
                let mut client = both.sent(way, head);
                assert_eq!(client.read_response().status, *status, "{way}");
                // What still comes is thrown away, up to a bound.
                let piece = vec![b'x'; 64 << 10];
                let refused = (0..2048).any(|_| !client.send(&piece));
                assert!(refused, "{way} {status}: it reads the refused gigabyte");
                let grown = both.gateway.resident_kib().saturating_sub(before);
                assert!(grown < ROOM_KIB, "{way} {status}: {grown} KiB");
            }
        }
        both.audited(6);
    });
}

#[test]
fn passes_big_bodies_byte_for_byte() {
    isolated(|| {
        let bytes = pattern(6 << 20);
        let answer = bytes.clone();
        let both = answered_by(&world!(), || scripts::respond(scripts::ok(&answer)));
        for way in Way::ALL {
            let scheme = if way == Way::Forward { "http" } else { "https" };
            let url = format!("{scheme}://api.example.com/");
            let curl = both.gateway.curl(&url).body(bytes.clone());
            let chunked = curl.clone().header("Transfer-Encoding", "chunked");
            for curl in [curl, chunked] {
                let answer = curl.run();
                assert_eq!(answer.status, 200, "{way}");
                assert!(answer.body == bytes, "{way}: the answer changed");
            }
            let requests = both.origin(way).requests();
            assert!(requests.iter().all(|request| request.body == bytes), "{way}: it changed");
            assert_eq!(requests.len(), 2, "{way}");
        }
        let audit = both.audited(4);
        for line in audit {
            let moved = (line["bytes_up"].as_u64(), line["bytes_down"].as_u64());
            assert_eq!(moved, (Some(6 << 20), Some(6 << 20)));
        }
    });
}
