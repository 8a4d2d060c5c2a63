//! When does a connection end, and what of its streams?

use std::thread;
use std::time::Instant;

use outgate_tests::http2::reason;
use outgate_tests::prelude::*;

use crate::{NAME, OTHER, Step, open_environment, open_gateway};

/// A connection that pings kept open would live longer than this, and one that they don't is gone
/// by then on the busiest machine.
const AT_LAST: Duration = Duration::from_secs(20);

#[test]
fn an_idle_connection_is_closed_in_order_whatever_it_pings() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).start();
        let mut gateway = world
            .gateway_builder()
            .environment(&open_environment())
            .configuration("[limits]\nidle_tunnel = \"1s\"\n")
            .start();
        let mut used = gateway.http2(NAME).connect();
        assert_eq!(used.get("/").status, 200);
        let mut unused = gateway.frames(NAME);
        let started = Instant::now();
        while used.ping().is_ok() && started.elapsed() < AT_LAST {
            thread::sleep(Duration::from_millis(50));
        }
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(900) && took < AT_LAST, "{took:?}");
        let ended = used.ended(AT_LAST).expect("it has ended");
        assert!(ended.is_ok(), "GOAWAY without an error: {ended:?}");
        assert_eq!(unused.ending(), Some(0), "GOAWAY, no error");
        let audit = gateway.final_audit();
        let kinds: Vec<_> = audit.iter().map(|line| line["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("request"), Some("tunnel")]);
    });
}

#[test]
fn a_silent_stream_outlives_an_idle_tunnel_and_answers_pings() {
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
                stream.send("late");
                stream.finish();
            })
            .start();
        let gateway = world
            .gateway_builder()
            .environment(&open_environment())
            // A stream may be silent for as long as an answer may take, and 5 s more.
            .configuration("[limits]\nidle_tunnel = \"1s\"\nidle_keep_alive = \"1s\"\n")
            .start();
        let mut client = gateway.http2(NAME).connect();
        let mut silent = client.open_get("/");
        assert_eq!(silent.head().expect("an answer").status, 200);
        assert_eq!(silent.data().expect("open").as_deref(), Some(&b"begun"[..]));
        for _ in 0..40 {
            client.ping().expect("the connection lives");
            thread::sleep(Duration::from_millis(100));
        }
        step.reach(1);
        assert_eq!(silent.rest().expect("it ends in order").0, b"late");
    });
}

#[test]
fn a_connection_none_of_whose_streams_moves_is_cut_in_the_end() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.respond(200, &[]);
                stream.send(vec![b'x'; 1 << 20]);
                stream.wait_reset();
            })
            .start();
        let mut gateway = world
            .gateway_builder()
            .environment(&open_environment())
            .configuration("[limits]\nidle_tunnel = \"1s\"\nresponse_head = \"1s\"\n")
            .start();
        // No window is ever opened: 6 s, seen up to as late again, and 5 s to end.
        let client = gateway.http2(NAME).settings(|settings| {
            settings.initial_window_size(1000);
        });
        let mut client = client.connect();
        let mut starved = client.open_get("/");
        assert_eq!(starved.head().expect("an answer").status, 200);
        let ended = client.ended(Duration::from_secs(25));
        assert!(ended.is_some(), "it is still there");
        assert!(starved.rest().is_err());
        assert!(wait_until(Duration::from_secs(5), || origin.requests()[0].reset.is_some()));
        assert_eq!(gateway.final_audit().len(), 1);
    });
}

#[test]
fn a_policy_that_changes_counts_on_the_next_stream() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let secret = canary(32);
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/one").status, 200);
        let with = json!({"domain": NAME, "transform": {"X-Key": secret}});
        let mut environment = json!({"network": {"allowlist": [with]}});
        gateway.set_environment(&environment);
        gateway.reload();
        let injected = || {
            client.get("/two");
            origin.requests().last().is_some_and(|request| request.header("x-key") == Some(&secret))
        };
        assert!(wait_until(Duration::from_secs(1), injected), "the old policy is still in force");
        environment["network"]["allowlist"] = json!([{"domain": OTHER}]);
        gateway.set_environment(&environment);
        gateway.reload();
        let mut last = None;
        let refused = wait_until(Duration::from_secs(1), || {
            let answer = client.get("/three");
            last = answer.reason().map(str::to_owned);
            answer.status == 403
        });
        assert!(refused, "the old policy is still in force");
        assert_eq!(last.as_deref(), Some("domain_not_allowed"));
    });
}

#[test]
fn an_origin_that_never_answers_is_a_504_on_its_stream_alone() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| match stream.request().path.as_str() {
                "/never" => {
                    stream.wait_reset();
                }
                _ => stream.echo(),
            })
            .start();
        let mut gateway = world
            .gateway_builder()
            .environment(&open_environment())
            .configuration("[limits]\nresponse_head = \"1s\"\n")
            .start();
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/").status, 200);
        let never = client.open_get("/never");
        assert_eq!(client.get("/").status, 200);
        let answer = never.answer().expect("an answer");
        assert_eq!((answer.status, answer.reason()), (504, Some("origin_timeout")));
        assert_eq!(client.get("/").status, 200);
        let reset = || origin.requests().iter().any(|request| request.reset.is_some());
        assert!(wait_until(Duration::from_secs(5), reset), "the origin still works for nobody");
        assert_eq!(origin.connections(), 1);
        assert_eq!(gateway.final_audit().len(), 4);
    });
}

#[test]
fn a_client_that_vanishes_is_seen_on_all_its_streams() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.respond(200, &[]);
                stream.send("begun");
                stream.wait_reset();
            })
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut open: Vec<_> = (0..5).map(|_| client.open_get("/")).collect();
        for exchange in &mut open {
            assert_eq!(exchange.head().expect("an answer").status, 200);
        }
        drop((open, client));
        let reset = || origin.requests().iter().filter(|request| request.reset.is_some()).count();
        assert!(wait_until(Duration::from_secs(5), || reset() == 5), "{:#?}", origin.requests());
        assert_eq!(gateway.wait_audit(5).len(), 5);
        assert_eq!(gateway.final_audit().len(), 5);
    });
}

#[test]
fn a_connection_of_another_origin_is_no_reason_to_hang() {
    isolated(|| {
        let world = world!();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let answer = client.get("/");
        assert_eq!((answer.status, answer.reason()), (502, Some("origin_connect")));
        let _origin = world.http2(NAME).start();
        let outcome = client.try_ask(client.request("GET", "/"), "");
        assert_eq!(outcome.as_ref().map(|answer| answer.status).ok(), Some(200));
        assert_eq!(reason(&outcome), None);
    });
}
