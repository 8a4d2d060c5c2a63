//! Does a connection that breaks the protocol end at once, with one line that says so?

use outgate_tests::prelude::*;

use crate::scene::{GET, NAME, Scene};

/// What breaks a connection, by RFC 9113.
fn faults() -> Vec<(&'static str, Vec<u8>)> {
    let headers = |stream| frames::headers(stream, &GET);
    let upper = [&GET[..], &[("X-Upper", "1")]].concat();
    vec![
        ("DATA on stream 0", frames::data(0, b"x", true)),
        ("HEADERS on stream 0", headers(0)),
        ("HEADERS on an even stream", headers(2)),
        ("DATA on a stream that never was", frames::data(7, b"x", true)),
        ("RST_STREAM on a stream that never was", frames::reset(9, 8)),
        ("a stream that comes too late", [headers(5), headers(3)].concat()),
        ("a window too large", frames::window_update(0, 0x7fff_ffff)),
        ("no window", frames::window_update(0, 0)),
        ("a frame too large", frames::frame(frames::DATA, 0, 1, &[0; 20_000])),
        ("a PING too short", frames::frame(frames::PING, 0, 0, b"short")),
        ("SETTINGS cut short", frames::frame(frames::SETTINGS, 0, 0, b"short")),
        ("SETTINGS on a stream", frames::frame(frames::SETTINGS, 0, 1, &[])),
        ("a window setting too large", frames::settings(&[(4, 0x8000_0000)])),
        ("CONTINUATION without HEADERS", frames::continuation(1, b"")),
        (
            "another frame inside a head",
            [frames::frame(frames::HEADERS, 0, 1, &[]), frames::ping(1)].concat(),
        ),
        ("PUSH_PROMISE of a client", frames::frame(5, 4, 1, &[0, 0, 0, 2])),
        ("a block that is no HPACK", frames::frame(frames::HEADERS, 5, 1, &[0xff; 20])),
        ("an index of nothing", frames::frame(frames::HEADERS, 5, 1, &[0xfe])),
        ("padding longer than its frame", frames::frame(frames::HEADERS, 13, 1, &[200, 0, 0])),
        ("a name in upper case", frames::headers(1, &upper)),
    ]
}

#[test]
fn a_fault_of_the_connection_ends_it_with_one_line() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        for (shown, fault) in faults() {
            let mut client = scene.attacker();
            client.send(fault);
            let error = client.ending();
            assert!(error.is_some_and(|error| error != 0), "{shown}: {error:?}");
        }
        let mut control = scene.attacker();
        control.send(frames::headers(1, &GET));
        assert_eq!(control.answer(1).status(), 200);
        drop(control);
        // One of them had a whole request before its fault.
        let requests = origin.requests().len();
        let audit = scene.audit();
        let denied = audit.iter().filter(|line| line["verdict"] == "deny").count();
        assert_eq!(denied, faults().len(), "{audit:#?}");
        assert!(audit.len() <= denied + 2 && requests <= 2, "{audit:#?}");
    });
}

#[test]
fn a_preface_that_is_none_is_no_http2() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let starts: [&[u8]; 4] = [
            b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
            &[0; 64],
            b"SSH-2.0-OpenSSH_9.6\r\n and more to read",
        ];
        for start in starts {
            let tunnel = scene.gateway.client().connect_tunnel("api.example.com:443");
            let mut client = tunnel.tls(&Hello::to(NAME).alpn(&["h2"]));
            client.send(start);
            // Its SETTINGS come first, then GOAWAY; no answer of HTTP/1.1 ever.
            let said = client.read_to_end().unwrap_or_else(|fault| match fault {
                ReadFault::Truncated { body } | ReadFault::Reset { body } => body,
                fault => panic!("{}: {fault}", start.escape_ascii()),
            });
            assert!(!said.windows(5).any(|part| part == b"HTTP/"), "{}", said.escape_ascii());
        }
        assert_eq!(origin.connections(), 0);
        let audit = scene.audit();
        assert_eq!(audit.len(), starts.len(), "{audit:#?}");
        assert!(audit.iter().all(|line| line["reason"] == "malformed_request"), "{audit:#?}");
    });
}

#[test]
fn connect_with_a_length_is_refused_with_one_line() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let mut client = scene.attacker();
        let connect = [
            (":method", "CONNECT"),
            (":authority", "evil.example.test:443"),
            ("content-length", "4"),
        ];
        client.send(frames::open_headers(1, &connect));
        let answer = client.try_answer(1);
        let refused = answer.is_none_or(|answer| answer.status() >= 400 || answer.reset.is_some());
        assert!(refused);
        assert_eq!(origin.connections(), 0);
        drop(client);
        assert_eq!(scene.audit().len(), 1);
    });
}
