//! Does each piece arrive when it was sent, and not when there are more?

use outgate_tests::prelude::*;

use crate::{REQUEST, Step, answered_by};

/// Reads until `text` has come.
fn read_until(client: &mut RawClient, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        match client.read_some() {
            Ok(bytes) if !bytes.is_empty() => seen += &String::from_utf8_lossy(&bytes),
            end => panic!("{text:?} was due, {seen:?} came, then {end:?}"),
        }
    }
}

#[test]
fn passes_each_line_of_a_slow_answer_before_the_next_is_sent() {
    isolated(|| {
        let world = world!();
        for kind in ["application/x-ndjson", "text/event-stream", "application/json-seq"] {
            let step = Step::default();
            let seen = step.clone();
            let both = answered_by(&world, || {
                let seen = seen.clone();
                Box::new(move |connection: &mut Connection| {
                    connection.request();
                    connection.send(format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
                    ));
                    for number in 1..=5 {
                        connection.send(format!("9\r\n{{\"n\":{number}}}\r\n\r\n"));
                        assert!(seen.wait(number), "line {number} was held back");
                    }
                    connection.send("0\r\n\r\n");
                })
            });
            for way in Way::ALL {
                step.reach(0);
                let mut client = both.sent(way, REQUEST);
                for number in 1..=5 {
                    read_until(&mut client, &format!("{{\"n\":{number}}}"));
                    step.reach(number);
                }
                read_until(&mut client, "0\r\n\r\n");
            }
            both.audited(2);
        }
    });
}

#[test]
fn passes_the_head_of_an_answer_before_its_body_comes() {
    isolated(|| {
        let step = Step::default();
        let seen = step.clone();
        let both = answered_by(&world!(), || {
            let seen = seen.clone();
            Box::new(move |connection: &mut Connection| {
                connection.request();
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
                assert!(seen.wait(1), "the head was held back");
                connection.send("ok");
            })
        });
        for way in Way::ALL {
            step.reach(0);
            let mut client = both.sent(way, REQUEST);
            read_until(&mut client, "\r\n\r\n");
            step.reach(1);
            read_until(&mut client, "ok");
        }
    });
}

#[test]
fn passes_a_body_that_ends_with_its_connection_at_once_and_keeps_the_clients() {
    isolated(|| {
        let step = Step::default();
        let seen = step.clone();
        let both = answered_by(&world!(), || {
            let seen = seen.clone();
            Box::new(move |connection: &mut Connection| {
                connection.request();
                connection.send("HTTP/1.1 200 OK\r\n\r\n0123456789");
                assert!(seen.wait(1), "the bytes were held back");
            })
        });
        for way in Way::ALL {
            let mut client = both.client(way);
            for _ in 0..2 {
                step.reach(0);
                client.send(way.write(REQUEST));
                read_until(&mut client, "0123456789");
                step.reach(1);
                read_until(&mut client, "0\r\n\r\n");
            }
            assert_eq!(both.origin(way).connections(), 2, "{way}");
        }
        both.audited(4);
    });
}

#[test]
fn takes_an_answer_in_http_1_0() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            scripts::respond_and_close("HTTP/1.0 200 OK\r\nX-Old: 1\r\n\r\nold body")
        });
        for way in Way::ALL {
            let mut client = both.client(way);
            for _ in 0..2 {
                client.send(way.write(REQUEST));
                let answer = client.read_response();
                assert_eq!((answer.status, answer.text().as_str()), (200, "old body"), "{way}");
            }
        }
    });
}

#[test]
fn a_transfer_may_take_longer_than_any_wait_for_a_head() {
    isolated(|| {
        let world = world!();
        let body = [b'x'; 30];
        let _origin = world
            .https("api.example.com")
            .script(scripts::slow(scripts::ok(body), 10, Duration::from_millis(500)))
            .start();
        let gateway = world
            .gateway_builder()
            .environment(&json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}))
            .configuration("[limits]\nresponse_head = \"2s\"\nrequest_head = \"1s\"\n")
            .start();
        let answer = gateway.curl("https://api.example.com/").run();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &body[..]), "{answer:?}");
    });
}

#[test]
fn a_client_that_leaves_ends_the_origins_work_too() {
    isolated(|| {
        let both = answered_by(&world!(), || scripts::big(1 << 30));
        for way in Way::ALL {
            let mut client = both.sent(way, REQUEST);
            client.read_some().expect("it begins");
            drop(client);
            assert!(both.origin(way).wait_closed(), "{way}: the origin goes on for nobody");
        }
        let audit = both.audited(2);
        assert!(audit.iter().all(|line| line["error"].is_string()), "{audit:#?}");
    });
}
