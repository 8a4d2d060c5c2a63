//! Can clients still come in?
//!
//! Where descriptors or memory run out, accepting fails until some are free; the loops that accept
//! say so here each time they try, and a probe wants to know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A failure counts for as long as a loop takes to try again, and once more.
const COUNTS: Duration = Duration::from_secs(1);

/// When accepting failed last.
pub(crate) struct Accepting {
    began: Instant,
    /// Milliseconds after `began`, plus one; 0 before the first failure.
    failed: AtomicU64,
}

impl Accepting {
    pub(crate) fn new() -> Accepting {
        Accepting { began: Instant::now(), failed: AtomicU64::new(0) }
    }

    /// A connection could not be accepted.
    pub(crate) fn failed(&self) {
        self.failed.store(self.now(), Ordering::Relaxed);
    }

    /// None could be a moment ago.
    pub(crate) fn is_failing(&self) -> bool {
        let failed = self.failed.load(Ordering::Relaxed);
        failed != 0 && u128::from(self.now().saturating_sub(failed)) < COUNTS.as_millis()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).map_or(u64::MAX, |passed| passed + 1)
    }
}
