//! What do all the streams of one environment's connections hold together?

use std::thread;

use outgate_tests::http2::Reason;
use outgate_tests::prelude::*;

use crate::scene::{GET, NAME, Scene};

/// Streams that the environment may have, over all its connections.
const MOST: usize = 300;
const LIMIT: &str = "environment_streams = 300\n";
const CONNECTIONS: u32 = 15;
const STREAMS: u32 = 100;

/// Connections that each ask for as much as one may.
fn crowd(scene: &Scene) -> Vec<FrameClient> {
    let open = |_| {
        let mut client = scene.attacker();
        for number in 0..STREAMS {
            client.send(frames::headers(number * 2 + 1, &GET));
        }
        client
    };
    (0..CONNECTIONS).map(open).collect()
}

/// Each may take a connection to the origin: a hundred times as many as the client has.
#[test]
fn they_take_no_descriptor_from_the_others() {
    isolated(|| {
        let world = world!();
        let silent = world
            .https(NAME)
            .script(|connection| {
                connection.head();
                connection.bytes();
            })
            .start();
        let scene = Scene::limited(&world, LIMIT);
        let open = u64::try_from(scene.gateway.descriptors()).expect("a small number");
        scene.gateway.limit_descriptors(open + 2 * MOST as u64);
        let mut crowd = crowd(&scene);
        let last = crowd.last_mut().expect("there are some");
        let refused = last.answer(STREAMS * 2 - 1);
        assert_eq!((refused.status(), refused.reason()), (503, Some("too_many_connections")));
        assert!(wait_until(Duration::from_secs(20), || silent.connections() >= MOST));
        let bystander = scene.bystander();
        thread::sleep(Duration::from_secs(1));
        bystander.assert_undisturbed();
        assert_eq!(silent.connections(), MOST);

        // What ended has given its place back.
        drop(crowd);
        let mut again = scene.attacker();
        again.send(frames::headers(1, &GET));
        let is_sent = || silent.connections() > MOST;
        assert!(wait_until(Duration::from_secs(5), is_sent), "no place was given back");
        drop(again);
        let audit = scene.audit();
        let refused = audit.iter().filter(|line| line["reason"] == "too_many_connections").count();
        let asked = (CONNECTIONS * STREAMS) as usize;
        assert_eq!((refused, audit.len()), (asked - MOST, asked + 1));
    });
}

/// Downloads that their clients ask for and never read.
#[test]
fn they_hold_no_more_memory_than_their_number() {
    isolated(|| {
        let world = world!();
        let _big = world.https(NAME).script(scripts::big(1 << 30)).start();
        let scene = Scene::limited(&world, "environment_streams = 30\n");
        let before = scene.gateway.resident_kib();
        let greedy = |_| {
            let client = scene.gateway.client().connect_tunnel("api.example.com:443");
            let client = client.tls(&Hello::to(NAME).alpn(&["h2"]));
            let most = 0x7fff_ffff;
            let mut client = FrameClient::over(client, &[(frames::INITIAL_WINDOW_SIZE, most)]);
            client.send(frames::window_update(0, most - 0xffff));
            for number in 0..STREAMS {
                client.send(frames::headers(number * 2 + 1, &GET));
            }
            client
        };
        let _crowd: Vec<_> = (0..6).map(greedy).collect();
        thread::sleep(Duration::from_secs(3));
        let grown = scene.gateway.resident_kib().saturating_sub(before);
        assert!(grown < 40 << 10, "{grown} KiB");
    });
}

#[test]
fn each_answer_gives_its_place_back() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).start();
        let scene = Scene::limited(&world, "environment_streams = 1\n");
        let client = scene.gateway.http2(NAME).connect();
        for _ in 0..3 {
            assert_eq!(client.get("/").status, 200);
            let post = client.request("POST", "/");
            assert_eq!(client.ask(post, "some text").status, 200);
        }
    });
}

#[test]
fn a_websocket_keeps_its_place_until_it_ends() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(NAME).script(scripts::websocket_echo()).start();
        let scene = Scene::limited(&world, "environment_streams = 1\n");
        let client = scene.gateway.http2(NAME).connect();
        let mut websocket = client.open_websocket("/ws");
        assert_eq!(websocket.head().expect("an answer").status, 200);
        let refused = client.get("/");
        assert_eq!((refused.status, refused.reason()), (503, Some("too_many_connections")));
        websocket.send(b"\x81\x82\0\0\0\0hi");
        assert!(websocket.moves_within(Duration::from_secs(5)), "it goes on");
        websocket.reset(Reason::CANCEL);
        let is_free = || client.get("/").status != 503;
        assert!(wait_until(Duration::from_secs(5), is_free), "its place was not given back");
    });
}
