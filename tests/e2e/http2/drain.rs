//! Does a drain let what runs finish, whole?

use std::thread;
use std::time::Instant;

use outgate_tests::prelude::*;

use crate::{NAME, OTHER, Step, open_environment, open_gateway};

#[test]
fn a_drain_says_goaway_and_lets_what_runs_finish() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let go = step.clone();
        let _origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                stream.respond(200, &[]);
                stream.send("begun");
                assert!(go.wait(1));
                stream.send(", ended");
                stream.finish();
            })
            .start();
        let mut gateway = open_gateway(&world);
        let mut client = gateway.http2(NAME).connect();
        let mut running = client.open_get("/");
        assert_eq!(running.head().expect("an answer").status, 200);
        assert_eq!(running.data().expect("open").as_deref(), Some(&b"begun"[..]));
        let mut idle = gateway.http2(OTHER).connect();
        gateway.terminate();
        assert!(client.wait_go_away(), "it takes new streams while it drains");
        assert!(idle.ended(Duration::from_secs(5)).is_some(), "an idle connection outlives it");
        step.reach(1);
        assert_eq!(running.rest().expect("it ends in order").0, b", ended");
        assert!(client.ended(Duration::from_secs(5)).is_some());
        assert_eq!(gateway.wait(), 0);
        let audit = gateway.audit();
        assert_eq!(audit.len(), 2, "{audit:#?}");
        let request = audit.iter().find(|line| line["kind"] == "request").expect("a request");
        assert!(request["error"].is_null(), "{request}");
    });
}

/// HTTP/2 clients go on sending while they read: what is sent to a closed socket resets it, and
/// takes with it what the client has not read.
#[test]
fn the_last_answer_is_read_whole_by_a_client_that_still_sends() {
    isolated(|| {
        let world = world!();
        let (step, begun) = (Step::default(), Step::default());
        let (go, begins) = (step.clone(), begun.clone());
        let _origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                stream.respond(200, &[]);
                begins.reach(1);
                assert!(go.wait(1));
                stream.send(vec![b'x'; 600 << 10]);
                stream.finish();
            })
            .start();
        let mut gateway = open_gateway(&world);
        let window = [(frames::INITIAL_WINDOW_SIZE, 1 << 20)];
        let mut client = gateway.frames_with(NAME, &window);
        client.send(frames::window_update(0, 1 << 20));
        let fields =
            [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/")];
        client.send(frames::headers(1, &fields));
        assert!(begun.wait(1), "the request reaches the origin before the drain begins");
        gateway.terminate();
        // GOAWAY comes with a PING; it must be answered before the connection may end.
        while client.next_frame().expect("a frame").expect("open").kind != frames::PING {}
        step.reach(1);
        for number in 0..40 {
            client.send(frames::ping(number));
            thread::sleep(Duration::from_millis(20));
        }
        let answer = client.answer(1);
        assert_eq!((answer.body.len(), answer.reset), (600 << 10, None));
        drop(client);
        assert_eq!(gateway.wait(), 0);
    });
}

#[test]
fn a_drain_does_not_wait_for_a_client_that_never_answers() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).start();
        let mut gateway = open_gateway(&world);
        let mut client = gateway.frames(NAME);
        let fields =
            [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/")];
        client.send(frames::headers(1, &fields));
        assert_eq!(client.answer(1).status(), 200);
        let started = Instant::now();
        assert_eq!(gateway.stop(), 0);
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    });
}

#[test]
fn a_drain_cuts_what_outlasts_it_visibly() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.respond(200, &[]);
                stream.send("begun");
                stream.wait_reset();
            })
            .start();
        let mut gateway = world
            .gateway_builder()
            .environment(&open_environment())
            .configuration("[limits]\ndrain = \"1s\"\n")
            .start();
        let client = gateway.http2(NAME).connect();
        let mut running = client.open_get("/");
        assert_eq!(running.head().expect("an answer").status, 200);
        assert_eq!(running.data().expect("open").as_deref(), Some(&b"begun"[..]));
        assert_eq!(gateway.stop(), 0);
        assert!(running.rest().is_err(), "half an answer as a whole one");
        assert_eq!(gateway.audit().len(), 1);
    });
}
