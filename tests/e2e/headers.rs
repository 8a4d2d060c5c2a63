//! Does the origin get exactly the headers that it should, and the client no more than it may see?

#[path = "headers/at_load.rs"]
mod at_load;
#[path = "headers/forged.rs"]
mod forged;
#[path = "headers/hygiene.rs"]
mod hygiene;
#[path = "headers/injection.rs"]
mod injection;
#[path = "headers/plaintext.rs"]
mod plaintext;
#[path = "headers/trailers.rs"]
mod trailers;

use outgate_tests::prelude::*;

/// A gateway that sets these headers for `api.example.com`.
fn injecting(world: &World, transform: serde_json::Value) -> BothWays {
    let entry = json!({"domain": "api.example.com", "transform": transform});
    BothWays::start(world, json!({"network": {"allowlist": [entry]}}), scripts::echo)
}
