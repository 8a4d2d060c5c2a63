//! Is what breaks off on one leg visibly broken on the other, and nothing else with it?

use outgate_tests::http2::{Reason, reason};
use outgate_tests::prelude::*;

use crate::{NAME, OTHER, open_gateway};

#[test]
fn a_stream_that_the_client_resets_is_reset_at_the_origin() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                match stream.request().path.as_str() {
                    "/warm" => return stream.respond_only(200, &[]),
                    "/answered" => {
                        stream.respond(200, &[]);
                        stream.send("begun");
                    }
                    _ => {}
                }
                assert!(stream.wait_reset().is_some(), "it goes on");
            })
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        // Now there is a connection for all that follow.
        assert_eq!(client.get("/warm").status, 200);
        let mut waiting = client.open_get("/waiting");
        let mut uploading = client.open(client.request("POST", "/uploading"));
        uploading.send("begun");
        let mut answered = client.open_get("/answered");
        assert_eq!(answered.head().expect("an answer").status, 200);
        assert_eq!(answered.data().expect("open").as_deref(), Some(&b"begun"[..]));
        assert_eq!(origin.wait_requests(4).len(), 4);
        for exchange in [&mut waiting, &mut uploading, &mut answered] {
            exchange.reset(Reason::CANCEL);
        }
        let cut = || origin.requests().iter().filter(|request| request.reset.is_some()).count();
        assert!(wait_until(Duration::from_secs(5), || cut() == 3), "{:#?}", origin.requests());
        let audit = gateway.wait_audit(4);
        assert!(audit[1..].iter().all(|line| line["error"].is_string()), "{audit:#?}");
        assert_eq!(client.get("/warm").status, 200);
        assert_eq!(origin.connections(), 1, "the connection to the origin lives on");
        assert_eq!(gateway.final_audit().len(), 5);
    });
}

#[test]
fn an_upload_that_is_broken_off_is_never_a_shorter_one() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let mut gateway = open_gateway(&world);
        for (name, length) in [(NAME, true), (NAME, false), (OTHER, true), (OTHER, false)] {
            let client = gateway.http2(name).connect();
            let mut request = client.request("POST", "/");
            if length {
                request = request.header("content-length", "100");
            }
            let mut exchange = client.open(request);
            exchange.send([b'x'; 40]);
            std::thread::sleep(Duration::from_millis(100));
            exchange.reset(Reason::CANCEL);
        }
        gateway.wait_audit(4);
        assert!(wait_until(Duration::from_secs(5), || {
            newer.requests().iter().all(|request| request.reset.is_some())
        }));
        assert_eq!(newer.requests().len(), 2);
        assert!(older.wait_closed());
        assert!(older.requests().is_empty(), "a short request was completed");
        assert!(older.raw().ends_with(b"x") || older.raw().ends_with(b"x\r\n"));
        assert_eq!(gateway.final_audit().len(), 4);
    });
}

#[test]
fn a_body_that_contradicts_its_length_is_never_completed() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let mut gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let fields = [
                (":method", "POST"),
                (":scheme", "https"),
                (":authority", name),
                (":path", "/"),
                ("content-length", "10"),
            ];
            for body in [&b"short"[..], b"much longer"] {
                let mut client = gateway.frames(name);
                client.send(frames::open_headers(1, &fields));
                client.send(frames::data(1, body, true));
                let answer = client.answer(1);
                assert!(answer.reset.is_some() || answer.status() >= 400, "{answer:?}");
            }
        }
        gateway.wait_audit(4);
        assert!(older.requests().is_empty(), "{:?}", older.requests());
        let whole = newer.requests().into_iter().filter(|request| request.reset.is_none());
        assert_eq!(whole.count(), 0, "{:#?}", newer.requests());
        assert_eq!(gateway.final_audit().len(), 4);
    });
}

#[test]
fn an_answer_that_breaks_off_is_visibly_broken() {
    isolated(|| {
        let world = world!();
        let _newer = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                let length = [("content-length", "100")];
                stream.respond(200, if stream.request().path == "/length" { &length } else { &[] });
                stream.send([b'x'; 40]);
                stream.pause(Duration::from_millis(100));
                stream.reset(Reason::INTERNAL_ERROR);
            })
            .start();
        let _older = world.https(OTHER).script(scripts::truncated(100, 40)).start();
        let mut gateway = open_gateway(&world);
        for (name, path) in [(NAME, "/"), (NAME, "/length"), (OTHER, "/")] {
            let client = gateway.http2(name).connect();
            let outcome = client.try_ask(client.request("GET", path), "");
            assert!(reason(&outcome).is_some(), "{name}{path}: {outcome:?}");
            let tunnel = gateway.client().connect_tunnel(&format!("{name}:443"));
            let mut http1 = tunnel.tls(&Hello::to(name));
            http1.send(format!("GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n"));
            let outcome = http1.try_read_response("GET");
            assert!(outcome.is_err(), "{name}{path}: {outcome:?}");
        }
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 6);
        assert!(audit.iter().all(|line| line["error"].is_string()), "{audit:#?}");
    });
}

#[test]
fn an_origin_that_resets_before_it_answers_is_a_502() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| stream.reset(Reason::INTERNAL_ERROR))
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        for _ in 0..2 {
            let answer = client.ask(client.request("POST", "/"), "once");
            assert_eq!((answer.status, answer.reason()), (502, Some("origin_protocol")));
        }
        assert_eq!(origin.requests().len(), 2, "what may have been acted on is not said again");
        assert_eq!(gateway.final_audit().len(), 2);
    });
}
