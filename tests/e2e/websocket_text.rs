//! Do values take the place of placeholders in text messages, with right frames, and nowhere else?

#[path = "websocket_text/http2.rs"]
mod http2;
#[path = "websocket_text/scene.rs"]
mod scene;

use outgate_tests::origin::Script;
use outgate_tests::prelude::*;
use serde_json::Value;

use scene::{API, KEY, Scene, closed, done, frame, origin, read, upgrade};

#[test]
fn texts_get_values_and_everything_else_passes() {
    isolated(|| {
        let world = world!();
        let origin = origin(&world, "");
        let value = format!("{}\"é", canary(300));
        let scene = Scene::new(&world, &canary(3), "");
        done(&scene.gateway, "PATCH", "credentials/key", &json!({"value": value}));
        let placeholder = scene.placeholder("KEY");
        let mut client = scene.switched();
        let hello = json!({"op": 2, "d": {"token": placeholder}}).to_string();
        let due = json!({"op": 2, "d": {"token": value}});
        client.send(frame(0x81, hello.as_bytes()));
        let (first, mask, payload) = read(&mut client);
        assert_eq!((first, serde_json::from_slice::<Value>(&payload).expect("JSON")), (0x81, due));
        client.send(frame(0x81, hello.as_bytes()));
        assert_ne!(read(&mut client).1, mask, "a mask of its own");
        // In pieces, with a ping between, and cut inside the placeholder.
        let text = format!("token {placeholder}!");
        let (one, two) = text.as_bytes().split_at(15);
        for bytes in [frame(0x01, one), frame(0x89, b"ping"), frame(0x80, two)].concat() {
            client.send([bytes]);
        }
        assert_eq!(read(&mut client), (0x89, vec![9, 8, 7, 6], b"ping".to_vec()));
        let (first, _, payload) = read(&mut client);
        assert_eq!((first, payload), (0x81, format!("token {value}!").into_bytes()));
        // Binary frames are not looked at.
        let binary = frame(0x82, placeholder.as_bytes());
        client.send(&binary);
        assert_eq!(client.read_exact(binary.len()), binary);
        client.send(frame(0x88, &[3, 232]));
        assert_eq!(read(&mut client).0, 0x88);
        drop(client);
        let request = &origin.requests()[0];
        assert_eq!(request.header("sec-websocket-extensions"), None);
        let line = scene.last_line();
        assert_eq!((&line["credentials"], &line["verdict"]), (&json!(["key"]), &json!("allow")));
        assert_secret_absent(scene.gateway.output(), &value);
    });
}

#[test]
fn what_is_not_trusted_closes_both_sides() {
    isolated(|| {
        let world = world!();
        let origin = origin(&world, "");
        let scene = Scene::new(&world, &canary(40), "");
        let unknown = format!("ghp_ogph{}", "0123456789abcdef".repeat(2));
        for text in [scene.placeholder("HEAD"), unknown, scene.placeholder("KEY")[4..].to_owned()] {
            let mut client = scene.switched();
            client.send(frame(0x81, b"hello"));
            assert_eq!(read(&mut client).2, b"hello");
            client.send(frame(0x81, format!("[\"{text}\"]").as_bytes()));
            assert_eq!(closed(&mut client), 1008);
            assert!(origin.wait_closed());
        }
        let lines = scene.gateway.wait_audit(5);
        let lines: Vec<_> = lines.iter().filter(|line| line["status"] == 101).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        for line in lines {
            assert_eq!(line["reason"], "placeholder_not_trusted", "{line}");
            assert_eq!(line["verdict"], "deny", "{line}");
        }
    });
}

#[test]
fn what_breaks_the_protocol_or_the_bound_closes_both_sides() {
    isolated(|| {
        let world = world!();
        let origin = origin(&world, "");
        let limits = "[limits]\nwebsocket_message_bytes = 70000\n";
        let scene = Scene::new(&world, &canary(40), limits);
        let mut unmasked = frame(0x81, b"x");
        unmasked[1] &= 0x7f;
        for (bytes, code) in [
            (unmasked, 1002),
            (frame(0xc1, b"x"), 1002),
            (frame(0x83, b"x"), 1002),
            (frame(0x80, b"x"), 1002),
            ([frame(0x01, b"x"), frame(0x81, b"x")].concat(), 1002),
            (frame(0x81, b"\xff"), 1007),
            (frame(0x81, &vec![b'x'; 70_001]), 1009),
        ] {
            let mut client = scene.switched();
            client.send(bytes);
            assert_eq!(closed(&mut client), code);
            assert!(origin.wait_closed());
        }
        let mut client = scene.switched();
        client.send(frame(0x81, &vec![b'x'; 70_000]));
        assert_eq!(read(&mut client).2.len(), 70_000);
    });
}

#[test]
fn unfinished_texts_of_all_clients_have_one_bound() {
    isolated(|| {
        let world = world!();
        let origin = origin(&world, "");
        let scene = Scene::new(&world, &canary(40), "[limits]\nbody_buffers_bytes = 100000\n");
        let part = vec![b'x'; 60_000];
        let (mut first, mut second) = (scene.switched(), scene.switched());
        first.send(frame(0x01, &part));
        // Behind it, so that it was read.
        first.send(frame(0x89, b"ping"));
        assert_eq!(read(&mut first).2, b"ping");
        second.send(frame(0x01, &part));
        assert_eq!(closed(&mut second), 1013);
        first.send(frame(0x80, b"y"));
        assert_eq!(read(&mut first).2, [&part[..], b"y"].concat());
        // What was sent on takes no room any more.
        let mut third = scene.switched();
        third.send(frame(0x81, &part));
        assert_eq!(read(&mut third).2, part);
        drop((first, second, third));
        assert!(origin.wait_closed());
        let lines = scene.gateway.wait_audit(5);
        let refused: Vec<_> = lines.iter().filter(|line| line["verdict"] == "deny").collect();
        assert_eq!(refused.len(), 1, "{lines:?}");
        assert_eq!(refused[0]["reason"], "too_many_connections");
    });
}

#[test]
fn a_value_that_changes_closes_what_it_was_sent_with() {
    isolated(|| {
        let world = world!();
        let _origin = origin(&world, "");
        let scene = Scene::new(&world, &canary(40), "");
        let (mut uses, mut idle) = (scene.switched(), scene.switched());
        uses.send(frame(0x81, scene.placeholder("KEY").as_bytes()));
        assert_eq!(read(&mut uses).0, 0x81);
        let new = canary(40);
        done(&scene.gateway, "PATCH", "credentials/key", &json!({"value": new}));
        assert!(uses.is_closed());
        idle.send(frame(0x81, scene.placeholder("KEY").as_bytes()));
        assert_eq!(read(&mut idle).2, new.as_bytes());
        scene.reads_text(false);
        assert!(idle.is_closed(), "it would not begin so today");
    });
}

#[test]
fn an_extension_that_nobody_asked_for_is_a_fault_of_the_origin() {
    isolated(|| {
        let world = world!();
        let _origin = origin(&world, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
        let scene = Scene::new(&world, &canary(40), "");
        let ask = || {
            let tunnel = scene.gateway.client().connect_tunnel("api.example.com:443");
            tunnel.tls(&Hello::to(API)).exchange(upgrade())
        };
        let answer = ask();
        let said = (answer.status, answer.header("outgate-reason"));
        assert_eq!(said, (502, Some("origin_protocol")));
        // Without the option nothing is looked at, or changed.
        scene.reads_text(false);
        assert_eq!(ask().status, 101);
        let mut client = scene.switched();
        let compressed = frame(0xc1, scene.placeholder("KEY").as_bytes());
        client.send(&compressed);
        assert_eq!(client.read_exact(compressed.len()), compressed);
    });
}

#[test]
fn the_last_word_comes_behind_a_whole_frame_of_the_origin_s() {
    isolated(|| {
        let world = world!();
        let script: Box<Script> = Box::new(|connection: &mut Connection| {
            if connection.request().is_none() {
                return;
            }
            connection.upgrade();
            connection.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Accept: {}\r\n\r\n",
                scripts::websocket_accept(KEY)
            ));
            connection.send(b"\x82\x0ahalf ");
            // The close frame that the client's fault brings.
            connection.bytes();
            connection.send(b"frame\x82\x05never");
        });
        let _origin = world.https(API).script(script).start();
        let scene = Scene::new(&world, &canary(40), "");
        let mut client = scene.switched();
        assert_eq!(client.read_exact(7), b"\x82\x0ahalf ");
        client.send(frame(0x83, b"x"));
        assert_eq!(client.read_exact(5), b"frame");
        assert_eq!(closed(&mut client), 1002);
    });
}
