//! What became of the placeholders in an upload?

use std::sync::{Mutex, OnceLock, PoisonError};

use outgate_credentials::{Used, Version};
use outgate_policy::{CredentialId, Denial};
use smallvec::SmallVec;

use crate::audit::Record;

/// Shared by an upload with those who wait for its answer.
#[derive(Debug)]
pub(crate) struct Findings {
    /// Whose values the request carries, those in its head too.
    used: Mutex<Used>,
    refusal: OnceLock<Denial>,
}

impl Findings {
    pub(crate) fn new(used: &Used) -> Findings {
        Findings { used: Mutex::new(used.clone()), refusal: OnceLock::new() }
    }

    pub(crate) fn uses(&self, stamp: &(CredentialId, Version)) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.contains(stamp) {
            used.push(stamp.clone());
        }
    }

    /// Whose values these are, with the versions of then.
    pub(crate) fn used(&self) -> Used {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Only the first one counts.
    pub(crate) fn refuse(&self, denial: &Denial) {
        self.refusal.get_or_init(|| denial.clone());
    }

    /// Notes whose values they are; says why it was refused, if it was.
    pub(crate) fn note(&self, record: &mut Record) -> Option<&Denial> {
        let mut ids: SmallVec<[CredentialId; 1]> = SmallVec::new();
        for (id, _) in self.used() {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if !ids.is_empty() {
            record.uses_credentials(&ids);
        }
        self.refusal.get()
    }
}
