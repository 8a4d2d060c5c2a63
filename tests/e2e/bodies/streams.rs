//! What of a body that is too long, or too slow, to be held back?

use outgate_tests::http2::Reason;
use outgate_tests::prelude::*;

use super::scene::{API, JSON, Scene, chunk, chunked_head, key, post};

const NOT_TRUSTED: &str = "placeholder_not_trusted";

/// Longer than what is held back.
fn long() -> String {
    "x".repeat(3 << 20)
}

#[test]
fn a_late_placeholder_cuts_the_upload() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let scene = Scene::new(&world, &[key(&canary(40))]);
        let stranger = &scene.placeholder("KEY")[4..];
        // What is still on its way when it is cut must not be more than is read for the answer's sake.
        let body = format!("\"{}{stranger}{}\"", long(), "x".repeat(100_000));
        scene.refuses(post(JSON, &body), 403, NOT_TRUSTED);
        let whole = [chunked_head(JSON).into_bytes(), chunk(&body), b"0\r\n\r\n".to_vec()];
        scene.refuses(whole.concat(), 403, NOT_TRUSTED);
        let fields = "Content-Type: application/octet-stream\r\n";
        scene.refuses(post(fields, &body), 403, NOT_TRUSTED);
        assert!(origin.wait_closed());
        assert_eq!(origin.requests().len(), 0, "no request came to its end");
        let raw = origin.raw();
        assert!(!raw.windows(stranger.len()).any(|part| part == stranger.as_bytes()));
        assert!(!raw.ends_with(b"0\r\n\r\n"));
        for line in scene.audit(3) {
            assert_eq!((&line["verdict"], &line["reason"]), (&json!("deny"), &json!(NOT_TRUSTED)));
            assert_eq!(line["status"], 403, "{line}");
        }
    });
}

#[test]
fn a_late_placeholder_resets_the_stream_of_an_http2_origin() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(API).script(|stream| {
            stream.body();
            stream.answer(200, &[], b"yes");
        });
        let origin = origin.start();
        let scene = Scene::new(&world, &[key(&canary(40))]);
        let stranger = &scene.placeholder("KEY")[4..];
        let client = scene.gateway.http2(API).connect();
        let request = || client.request("POST", "/p").header("content-type", "application/json");
        let refused = client.ask(request(), format!("\"{}{stranger}\"", long()));
        assert_eq!((refused.status, refused.reason()), (403, Some(NOT_TRUSTED)));
        let seen = || origin.requests()[0].reset;
        assert!(wait_until(Duration::from_secs(5), || seen().is_some()), "a clean end");
        assert_ne!(seen(), Some(Reason::NO_ERROR));
        // Its neighbours go on.
        assert_eq!(client.ask(request(), "{}").status, 200);
    });
}

#[test]
fn an_answer_that_has_begun_is_cut_with_its_upload() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).script(|connection| {
            if connection.head().is_some() {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun");
                while !connection.bytes().is_empty() {}
            }
        });
        let origin = origin.start();
        let scene = Scene::new(&world, &[key(&canary(40))]);
        let stranger = &scene.placeholder("KEY")[4..];
        let mut client = scene.client();
        client.send(chunked_head(JSON));
        client.send(chunk(format!("\"{}", long())));
        let mut head = Vec::new();
        while !head.ends_with(b"begun") {
            head.extend(client.read_some().expect("the answer begins"));
        }
        client.send(chunk(stranger));
        assert!(client.is_closed());
        assert!(origin.wait_closed());
        let line = &scene.audit(1)[0];
        assert_eq!((&line["verdict"], &line["reason"]), (&json!("deny"), &json!(NOT_TRUSTED)));
        assert_eq!(line["status"], 200, "{line}");
    });
}

#[test]
fn a_stream_that_pauses_is_sent_as_it_comes() {
    isolated(|| {
        let world = world!();
        // In turns: it says a line for a line.
        let origin = world.http2(API).script(|stream| {
            stream.respond(200, &[]);
            while let Some(line) = stream.data() {
                stream.send(line);
            }
            stream.finish();
        });
        let _origin = origin.start();
        let value = canary(40);
        let limits = "[limits]\nbody_pause = \"100ms\"\n";
        let scene = Scene::with(&world, &[key(&value)], limits);
        let placeholder = scene.placeholder("KEY");
        let client = scene.gateway.http2(API).connect();
        for (kind, sent, due) in [
            ("application/x-ndjson", format!("\"{placeholder}\"\n"), format!("\"{value}\"\n")),
            ("application/grpc", "\0\0\0\0\x05hello".to_owned(), "\0\0\0\0\x05hello".to_owned()),
        ] {
            let request = client.request("POST", "/p").header("content-type", kind);
            let mut exchange = client.open(request);
            for turn in 0..3 {
                exchange.send(&sent);
                if turn == 0 {
                    assert_eq!(exchange.head().expect("an answer").status, 200);
                }
                let mut said = Vec::new();
                while said.len() < due.len() {
                    let more = exchange.data().expect("it goes on").expect("it goes on");
                    said.extend_from_slice(&more);
                }
                assert_eq!(String::from_utf8_lossy(&said), due, "{kind} {turn}");
            }
            exchange.finish();
            assert!(exchange.rest().expect("a clean end").0.is_empty());
        }
    });
}

#[test]
fn a_client_that_breaks_off_has_sent_nothing() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let mut client = scene.client();
        client.send(chunked_head(JSON));
        client.send(chunk(format!("\"{}", scene.placeholder("KEY"))));
        std::thread::sleep(Duration::from_millis(300));
        client.reset();
        let line = &scene.audit(1)[0];
        assert_eq!(line["bytes_up"], 0, "{line}");
        assert_eq!(origin.connections(), 0);
        assert_eq!(scene.client().exchange(post(JSON, "{}")).status, 200);
    });
}

#[test]
fn what_is_held_back_has_a_bound() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let limits = "[limits]\nbody_buffers_bytes = 1000\n";
        let scene = Scene::with(&world, &[key("value")], limits);
        let placeholder = scene.placeholder("KEY");
        for (length, whole) in [(900, true), (1100, false)] {
            let body = format!("\"{placeholder}{}\"", "x".repeat(length));
            assert_eq!(scene.client().exchange(post(JSON, &body)).status, 200);
            let requests = origin.requests();
            let request = requests.last().expect("it came");
            assert_eq!(request.header("content-length").is_some(), whole, "{length}");
            assert_eq!(request.text(), body.replace(&placeholder, "value"));
        }
    });
}
