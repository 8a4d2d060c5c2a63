//! Is what an HTTP/2 origin sends in floods, or against the protocol, bounded and seen by its client?

use outgate_tests::prelude::*;

use crate::scene::{NAME, Scene};

type Attack = fn(&mut Connection) -> bool;

/// An origin that speaks HTTP/2 until it has a request on stream 1, then attacks.
fn origin(world: &World, attack: Attack) -> Origin {
    world
        .https(NAME)
        .alpn(&["h2"])
        .script(move |connection: &mut Connection| {
            connection.send(frames::settings(&[]));
            let mut seen = connection.bytes();
            let asked = |seen: &[u8]| {
                let frames = frames::parse(seen.get(frames::PREFACE.len()..).unwrap_or_default());
                frames.iter().any(|frame| frame.kind == frames::HEADERS)
            };
            while !asked(&seen) {
                let more = connection.bytes();
                if more.is_empty() {
                    return;
                }
                seen.extend(more);
            }
            connection.send(frames::frame(frames::SETTINGS, frames::ACK, 0, &[]));
            attack(connection);
            // Whoever gives up first must be the gateway.
            while !connection.bytes().is_empty() {}
        })
        .start()
}

/// Whether all of it was taken.
fn flood(connection: &mut Connection, count: usize, piece: &[u8]) -> bool {
    let batch = piece.repeat((16 << 10) / piece.len());
    let batches = count * piece.len() / batch.len() + 1;
    (0..batches).all(|_| connection.send(&batch))
}

fn head(flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frames::frame(frames::HEADERS, flags, 1, &frames::header_block(fields))
}

/// What the client sees of an attack: a 502, or an answer that visibly breaks off.
fn is_attacked(what: &str, attack: Attack) {
    let world = world!();
    let origin = origin(&world, attack);
    let mut scene = Scene::limited(&world, "response_head = \"3s\"\n");
    let bystander = scene.bystander();
    let client = scene.gateway.http2(NAME).connect();
    match client.try_ask(client.request("POST", "/"), "once") {
        Ok(answer) => assert!(matches!(answer.status, 502 | 504), "{what}: {answer:?}"),
        Err(fault) => assert!(fault.is_reset(), "{what}: {fault}"),
    }
    scene.assert_bounded(what);
    bystander.assert_undisturbed();
    assert_eq!(origin.connections(), 1, "{what}: it was not said again");
    drop(client);
    assert!(scene.gateway.is_running());
    let audit = scene.audit();
    assert_eq!(audit.len(), 1, "{what}: {audit:#?}");
    assert!(audit[0]["error"].is_string(), "{what}: {audit:#?}");
}

#[test]
fn endless_interim_answers_are_cut_off() {
    isolated(|| {
        is_attacked("103", |connection| {
            let hints = head(frames::END_HEADERS, &[(":status", "103"), ("link", "</a>")]);
            flood(connection, 100_000, &hints)
        });
    });
}

#[test]
fn endless_continuation_is_cut_off() {
    isolated(|| {
        is_attacked("CONTINUATION", |connection| {
            connection.send(head(0, &[(":status", "200")]));
            let block = frames::header_block(&[("x", &"v".repeat(1000))]);
            flood(connection, 10_000, &frames::continuation(1, &block))
        });
    });
}

#[test]
fn a_small_header_block_never_becomes_a_large_one() {
    isolated(|| {
        is_attacked("an HPACK bomb", |connection| {
            let entry = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
            let status = frames::header_block(&[(":status", "200")]);
            let block = [status, entry, vec![0xbe; 12_000]].concat();
            connection.send(frames::frame(frames::HEADERS, 5, 1, &block))
        });
    });
}

#[test]
fn floods_of_control_frames_end_with_the_wait_for_an_answer() {
    isolated(|| {
        is_attacked("PING", |connection| flood(connection, 60_000, &frames::ping(1)));
    });
}

#[test]
fn floods_of_settings_end_with_the_wait_for_an_answer() {
    isolated(|| {
        is_attacked("SETTINGS", |connection| {
            flood(connection, 60_000, &frames::settings(&[(frames::INITIAL_WINDOW_SIZE, 7)]))
        });
    });
}

#[test]
fn a_pushed_stream_is_a_fault() {
    isolated(|| {
        is_attacked("PUSH_PROMISE", |connection| {
            let fields =
                [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/p")];
            let promise = [&[0, 0, 0, 2][..], &frames::header_block(&fields)].concat();
            connection.send(frames::frame(5, frames::END_HEADERS, 1, &promise))
        });
    });
}

#[test]
fn data_before_a_head_is_a_fault() {
    isolated(|| is_attacked("DATA", |connection| connection.send(frames::data(1, b"x", true))));
}

#[test]
fn a_head_without_a_status_is_a_fault() {
    isolated(|| {
        is_attacked("no :status", |connection| connection.send(head(5, &[("x", "1")])));
    });
}

#[test]
fn a_switch_of_protocols_is_a_fault() {
    isolated(|| {
        is_attacked("101", |connection| connection.send(head(5, &[(":status", "101")])));
    });
}

#[test]
fn a_field_of_a_connection_is_a_fault() {
    isolated(|| {
        is_attacked("connection", |connection| {
            let fields = [(":status", "200"), ("connection", "close")];
            connection.send(head(5, &fields))
        });
    });
}

#[test]
fn a_window_that_is_overrun_is_a_fault() {
    isolated(|| {
        is_attacked("DATA over the window", |connection| {
            connection.send(head(frames::END_HEADERS, &[(":status", "200")]));
            flood(connection, 4000, &frames::data(1, &[b'x'; 16_000], false))
        });
    });
}

#[test]
fn garbage_is_a_fault() {
    isolated(|| is_attacked("garbage", |connection| flood(connection, 100, &[0xff; 100])));
}
