//! Do real servers read exactly the one request that was judged?
//!
//! Two parsers that read the same bytes in two ways are how a request is smuggled. So the same odd
//! requests go through the gateway to servers as people run them: each must read what the gateway
//! has an audit line for, no more and no less, or the gateway must have refused it.

#[path = "differential/bodies.rs"]
mod bodies;
#[path = "differential/cases.rs"]
mod cases;
#[path = "differential/heads.rs"]
mod heads;
#[path = "differential/mutations.rs"]
mod mutations;
#[path = "differential/readings.rs"]
mod readings;
#[path = "differential/scene.rs"]
mod scene;
#[path = "differential/servers.rs"]
mod servers;
#[path = "differential/streams.rs"]
mod streams;

use std::panic::{AssertUnwindSafe, catch_unwind};

use outgate_tests::network::isolated_for;
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;

use self::mutations::Mutations;
use self::scene::{Scene, Tally};
use self::servers::Server;

/// A minute beside others on a busy machine.
const DEADLINE: Duration = Duration::from_secs(180);

/// Random requests, to every server by both ways.
const MUTATIONS: usize = 200;

fn with_servers(test: impl FnOnce(Scene)) {
    // Before the clock runs.
    servers::build("/dev/null".as_ref());
    isolated_for(DEADLINE, || test(Scene::new()));
}

#[test]
fn every_server_reads_what_nobody_can_mistake() {
    with_servers(|scene| {
        let plain = cases::plain();
        scene.send(&plain);
        let tally = scene.check();
        let others = (tally.refused, tally.cut, tally.left, tally.denied);
        assert_eq!(others, (0, 0, 0, 0), "{tally:?}");
        // By both ways, and as many ends.
        let all = 4 * plain.len();
        assert!(tally.read.values().all(|read| *read == all), "{tally:?}");
    });
}

/// What the others are worth.
#[test]
fn a_request_that_nobody_judged_is_noticed() {
    with_servers(|mut scene| {
        scene.send(&cases::plain());
        Server::ALL.iter().for_each(|server| scene.stray(*server));
        let audit = scene.drain();
        for server in Server::ALL {
            let compare = |port| {
                let compare = || scene.compare(&audit, server, port, &mut Tally::default());
                // nginx writes it down a moment after its answer.
                let fails = || catch_unwind(AssertUnwindSafe(compare)).is_err();
                wait_until(SOON, || fails() == (port == 80))
            };
            assert!(compare(80), "{server:?} read what nobody judged, and nobody noticed");
            assert!(compare(443), "{server:?}: the control");
        }
    });
}

#[test]
fn every_server_reads_of_what_is_odd_what_was_judged() {
    with_servers(|scene| {
        let odd = cases::all();
        scene.send(&odd);
        let tally = scene.check();
        eprintln!("{} requests: {tally:#?}", odd.len());
        assert!(tally.read.values().all(|read| *read > odd.len() / 2), "{tally:?}");
    });
}

#[test]
fn every_server_reads_of_odd_streams_of_http2_what_was_judged() {
    with_servers(|scene| {
        let odd = streams::all();
        scene.send_streams(&odd);
        let tally = scene.check();
        eprintln!("{} streams: {tally:#?}", odd.len());
        assert!(tally.read.values().all(|read| *read > odd.len() / 2), "{tally:?}");
    });
}

/// With the seed of a run that failed in `OUTGATE_SEED`, that run again.
#[test]
fn every_server_reads_of_what_chance_makes_what_was_judged() {
    with_servers(|scene| {
        let seed = std::env::var("OUTGATE_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let seed = seed.unwrap_or_else(|| u64::from_ne_bytes(random()));
        eprintln!("OUTGATE_SEED={seed}");
        let mut mutations = Mutations::of(seed);
        let bases = [cases::all(), vec![cases::plain(); 60].concat()].concat();
        let chance: Vec<_> = (0..MUTATIONS).map(|_| mutations.next(&bases)).collect();
        scene.send(&chance);
        let tally = scene.check();
        eprintln!("{tally:#?}");
        assert!(tally.read.values().all(|read| *read > MUTATIONS / 4), "{tally:?}");
    });
}

fn random() -> [u8; 8] {
    canary(8).into_bytes().try_into().expect("eight letters")
}
