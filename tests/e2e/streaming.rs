//! Do bodies flow as they come, whole and in bounded memory, over connections used with care?

#[path = "streaming/memory.rs"]
mod memory;
#[path = "streaming/paths.rs"]
mod paths;
#[path = "streaming/pool.rs"]
mod pool;
#[path = "streaming/progress.rs"]
mod progress;
#[path = "streaming/uploads.rs"]
mod uploads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outgate_tests::prelude::*;

const REQUEST: &str = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// A gateway that allows `api.example.com`, whose origins do what `script` makes.
fn answered_by(world: &World, script: impl Fn() -> Box<origin::Script>) -> BothWays {
    let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
    BothWays::start(world, environment, script)
}

/// Tells an origin how far its client is, so that neither can run ahead of the other.
#[derive(Clone, Default)]
struct Step(Arc<AtomicUsize>);

impl Step {
    fn reach(&self, step: usize) {
        self.0.store(step, Ordering::SeqCst);
    }

    /// Whether `step` was reached within 5 s.
    fn wait(&self, step: usize) -> bool {
        wait_until(Duration::from_secs(5), || self.0.load(Ordering::SeqCst) >= step)
    }
}

/// Bytes that no shift or repeat of a piece leaves the same.
fn pattern(length: usize) -> Vec<u8> {
    let mut state: u32 = 0x2545_f491;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}
