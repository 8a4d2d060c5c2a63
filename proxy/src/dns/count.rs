//! How often is a question answered in which way?

use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of answers. The labels of metrics: nothing of what a client may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An address, made up or loopback.
    Address,
    /// The name behind a made-up address.
    Pointer,
    /// There is no such record.
    Empty,
    /// The network is disabled, or nobody knows whose the question is.
    Refused,
    /// It could not be read.
    Malformed,
    /// Another operation, or another version of EDNS.
    Unsupported,
    /// Every address has connections.
    Failed,
}

/// A counter for each kind.
#[derive(Default)]
pub(crate) struct Answers([AtomicU64; Kind::ALL.len()]);

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Address,
        Kind::Pointer,
        Kind::Empty,
        Kind::Refused,
        Kind::Malformed,
        Kind::Unsupported,
        Kind::Failed,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Address => "address",
            Kind::Pointer => "pointer",
            Kind::Empty => "empty",
            Kind::Refused => "refused",
            Kind::Malformed => "malformed",
            Kind::Unsupported => "unsupported",
            Kind::Failed => "failed",
        }
    }
}

impl Answers {
    pub(crate) fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Every kind and how often there was one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Kind::ALL.iter().map(|kind| (kind.as_str(), self.0[*kind as usize].load(Ordering::Relaxed)))
    }
}
