//! Is one request in always one request out, and never two?
//!
//! What hyper accepts knowingly is listed in `docs/http.md`; here each line of it is shown to send
//! up exactly one request, read by a strict parser of the tests' own.

#[path = "framing/answers.rs"]
mod answers;
#[path = "framing/bodies.rs"]
mod bodies;
#[path = "framing/chunks.rs"]
mod chunks;
#[path = "framing/heads.rs"]
mod heads;
#[path = "framing/odd_answers.rs"]
mod odd_answers;
#[path = "framing/sequences.rs"]
mod sequences;
#[path = "framing/switching.rs"]
mod switching;
#[path = "framing/truncation.rs"]
mod truncation;
#[path = "framing/upgrades.rs"]
mod upgrades;

use outgate_tests::prelude::*;

fn both_ways() -> BothWays {
    answered_by(&world!(), scripts::echo)
}

/// A gateway that allows `api.example.com`, whose origins do what `script` makes.
fn answered_by(world: &World, script: impl Fn() -> Box<origin::Script>) -> BothWays {
    let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
    BothWays::start(world, environment, script)
}

/// The targets of all requests that the origin at the end of `way` received.
fn targets(both: &BothWays, way: Way) -> Vec<String> {
    both.origin(way).requests().into_iter().map(|request| request.target).collect()
}
