//! Is what a client sends in floods bounded?

use std::sync::Mutex;
use std::thread;

use outgate_tests::prelude::*;

use crate::scene::{GET, NAME, Scene};

/// The whole program with all that it keeps of several floods.
const MOST_KIB: u64 = 96 << 10;

/// One of many frames.
type Piece = fn(u32) -> Vec<u8>;

/// Sends it all, or what is taken of it.
fn flood(client: &mut FrameClient, count: u32, piece: impl Fn(u32) -> Vec<u8>) {
    let mut batch = Vec::new();
    for number in 0..count {
        batch.extend(piece(number));
        if batch.len() > 32 << 10 || number + 1 == count {
            if !client.send(&batch) {
                return;
            }
            batch.clear();
        }
    }
}

/// CVE-2023-44487.
#[test]
fn rapid_reset_is_cut_off() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        let mut attacker = scene.attacker();
        flood(&mut attacker, 100_000, |number| {
            let stream = number * 2 + 1;
            [frames::headers(stream, &GET), frames::reset(stream, frames::CANCEL)].concat()
        });
        attacker.ending();
        scene.assert_bounded("rapid reset");
        assert!(origin.connections() <= 100, "{} dials", origin.connections());
        bystander.assert_undisturbed();
        let audit = scene.audit();
        assert!(audit.len() < 1000, "{} lines", audit.len());
        let last = audit.last().expect("at least why it was cut off");
        assert_eq!(last["reason"], "malformed_request", "{last}");
        assert!(last["error"].to_string().contains("excessive load"), "{last}");
    });
}

/// The same, but slow enough that each stream is served first: then it is just many requests.
#[test]
fn slow_resets_cost_no_more_than_requests() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| match stream.request().path.as_str() {
                "/warm" => stream.respond_only(200, &[]),
                _ => {
                    stream.wait_reset();
                }
            })
            .start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        assert_eq!(scene.gateway.http2(NAME).connect().get("/warm").status, 200);
        let mut attacker = scene.attacker();
        for number in 0..1000 {
            let stream = number * 2 + 1;
            attacker.send(frames::headers(stream, &GET));
            if number % 50 == 0 {
                attacker.send(frames::ping(u64::from(number)));
                let is_pong = |frame: &frames::Frame| {
                    frame.kind == frames::PING && frame.flags & frames::ACK != 0
                };
                while !is_pong(&attacker.next_frame().expect("alive").expect("open")) {}
            }
            attacker.send(frames::reset(stream, frames::CANCEL));
            thread::sleep(Duration::from_millis(1));
        }
        scene.assert_bounded("slow resets");
        assert!(origin.connections() <= 2, "{} dials", origin.connections());
        bystander.assert_undisturbed();
        drop(attacker);
        assert_eq!(scene.audit().len(), 1001, "each was a request");
    });
}

/// CVE-2024-27316 and its kin.
#[test]
fn endless_continuation_is_cut_off() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        let long = frames::header_block(&[("x", &"v".repeat(1000))]);
        let pieces: [&[u8]; 3] = [&long, &long[..1], b""];
        for (number, piece) in pieces.into_iter().enumerate() {
            let mut attacker = scene.attacker();
            let block = frames::header_block(&GET);
            attacker.send(frames::frame(frames::HEADERS, frames::END_STREAM, 1, &block));
            if number == 1 {
                // One literal, cut into single bytes.
                flood(&mut attacker, 10_000, |at| {
                    let at = usize::try_from(at).expect("small");
                    frames::continuation(1, &long[at % long.len()..][..1])
                });
            } else {
                flood(&mut attacker, 10_000, |_| frames::continuation(1, piece));
            }
            attacker.ending();
            scene.assert_bounded("CONTINUATION");
        }
        assert_eq!(origin.connections(), 0);
        bystander.assert_undisturbed();
        let audit = scene.audit();
        assert_eq!(audit.len(), pieces.len(), "{audit:#?}");
        assert!(audit.iter().all(|line| line["verdict"] == "deny"));
    });
}

#[test]
fn a_small_header_block_never_becomes_a_large_one() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        let mut attacker = scene.attacker();
        // RFC 7541 §6.2.1: a field of 4,000 bytes into the table, which takes one byte to repeat.
        let entry = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
        for stream in (1..200).step_by(2) {
            let block = [frames::header_block(&GET), entry.clone(), vec![0xbe; 12_000]].concat();
            let flags = frames::END_HEADERS | frames::END_STREAM;
            if !attacker.send(frames::frame(frames::HEADERS, flags, stream, &block)) {
                break;
            }
        }
        let first = attacker.try_answer(1);
        assert!(first.is_none_or(|first| first.status() == 431 || first.reset.is_some()));
        scene.assert_bounded("an HPACK bomb");
        assert_eq!(origin.connections(), 0);
        bystander.assert_undisturbed();
        drop(attacker);
        let audit = scene.audit();
        assert!(!audit.is_empty() && audit.len() <= 101, "{}", audit.len());
        assert!(audit.iter().all(|line| line["verdict"] == "deny"));
    });
}

#[test]
fn floods_of_control_frames_take_no_memory_and_nobody_elses_time() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let floods: [(&str, Piece); 6] = [
            ("PING", |number| frames::ping(u64::from(number))),
            ("SETTINGS", |number| frames::settings(&[(frames::INITIAL_WINDOW_SIZE, number)])),
            ("PRIORITY", |number| frames::priority(number * 2 + 1)),
            ("unknown", |number| frames::frame(0x77, 0, number, b"what")),
            ("WINDOW_UPDATE", |_| frames::window_update(0, 1)),
            ("empty DATA", |number| match number {
                0 => frames::open_headers(1, &[&GET[1..], &[(":method", "POST")]].concat()),
                _ => frames::data(1, b"", false),
            }),
        ];
        for (name, piece) in floods {
            let bystander = scene.bystander();
            // It never reads what comes back.
            let client = scene.gateway.client().connect_tunnel("api.example.com:443");
            let client = client.tls(&Hello::to(NAME).alpn(&["h2"]));
            let client = client.write_timeout(Duration::from_secs(2));
            let mut attacker = FrameClient::over(client, &[]);
            flood(&mut attacker, 60_000, piece);
            let memory = scene.gateway.resident_kib();
            bystander.assert_undisturbed();
            let later = scene.gateway.resident_kib();
            assert!(memory.max(later) < MOST_KIB, "{name}: {memory} {later} KiB");
        }
        let mut fresh = scene.attacker();
        fresh.send(frames::headers(1, &GET));
        assert_eq!(fresh.answer(1).status(), 200, "the attacked environment goes on too");
    });
}

#[test]
fn malformed_streams_are_counted_and_then_the_connection_is_cut() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        let mut attacker = scene.attacker();
        let malformed = [&GET[..], &[("connection", "close")]].concat();
        flood(&mut attacker, 20_000, |number| frames::headers(number * 2 + 1, &malformed));
        attacker.ending();
        scene.assert_bounded("malformed streams");
        assert_eq!(origin.connections(), 0);
        bystander.assert_undisturbed();
        let audit = scene.audit();
        // Those whose own answer the end of the connection took with it have a line in common.
        assert!((1..300).contains(&audit.len()), "{} lines", audit.len());
        assert!(audit.iter().all(|line| line["reason"] == "malformed_request"));
    });
}

#[test]
fn uploads_that_nobody_reads_stay_within_their_windows() {
    isolated(|| {
        let world = world!();
        let release = std::sync::Arc::new(Mutex::new(()));
        let held = release.lock().expect("nobody panics");
        let wait = std::sync::Arc::clone(&release);
        let _origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                drop(wait.lock());
                stream.respond_only(200, &[]);
            })
            .start();
        let scene = Scene::start(&world);
        let bystander = scene.bystander();
        let client = scene.gateway.client().connect_tunnel("api.example.com:443");
        let client = client.tls(&Hello::to(NAME).alpn(&["h2"]));
        let mut attacker = FrameClient::over(client.write_timeout(Duration::from_secs(2)), &[]);
        let post = [&GET[1..], &[(":method", "POST")]].concat();
        // Within the windows it was given, but in the smallest pieces.
        for stream in (1..40).step_by(2) {
            attacker.send(frames::open_headers(stream, &post));
            flood(&mut attacker, 2000, |_| frames::data(stream, b"x", false));
        }
        thread::sleep(Duration::from_millis(500));
        scene.assert_bounded("uploads in single bytes");
        bystander.assert_undisturbed();
        drop(held);
    });
}

#[test]
fn a_head_that_never_ends_is_cut_off_in_time() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let scene = Scene::limited(&world, "request_head = \"1s\"\n");
        let block = frames::header_block(&GET);
        let begun = frames::frame(frames::HEADERS, frames::END_STREAM, 1, &block);
        let started = std::time::Instant::now();
        for piece in [&begun[..], &begun[..20]] {
            let mut attacker = scene.attacker();
            // Within a head no other frame may come, not even an acknowledgement.
            attacker.mute();
            attacker.send(piece);
            attacker.ending();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        assert_eq!(origin.connections(), 0);
        let audit = scene.audit();
        let reasons: Vec<_> = audit.iter().map(|line| line["reason"].as_str()).collect();
        assert_eq!(reasons, [Some("request_timeout"), Some("request_timeout")]);
    });
}
