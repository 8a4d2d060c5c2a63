//! May one more of these be done in this second?

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A number of actions for each second, not saved up.
pub(crate) struct Budget {
    per_second: u32,
    spent: Mutex<(Instant, u32)>,
}

impl Budget {
    pub(crate) fn new(per_second: u32) -> Budget {
        Budget { per_second, spent: Mutex::new((Instant::now(), 0)) }
    }

    /// Spends one, if one is left.
    pub(crate) fn spend(&self) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.0.elapsed() >= Duration::from_secs(1) {
            *spent = (Instant::now(), 0);
        }
        let left = spent.1 < self.per_second;
        spent.1 += u32::from(left);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_its_last_unit_and_begins_again() {
        let budget = Budget::new(2);
        assert!(budget.spend());
        assert!(budget.spend());
        assert!(!budget.spend());
        budget.spent.lock().expect("whole").0 -= Duration::from_secs(1);
        assert!(budget.spend());
    }
}
