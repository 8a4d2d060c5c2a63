//! How long does a test wait for what happens elsewhere?

use std::thread;
use std::time::{Duration, Instant};

/// The longest a test waits for something that should happen at once.
pub const SOON: Duration = Duration::from_secs(5);

/// Between two looks: short beside what a test takes, long beside what a look costs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Whether `condition` became true within `deadline`.
pub fn wait_until(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if started.elapsed() >= deadline {
            return false;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// The first value that `look` finds, if it finds one within `deadline`.
pub fn wait_for<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut found = None;
    wait_until(deadline, || {
        found = look();
        found.is_some()
    });
    found
}
