//! Which streams were refused before anyone was asked to answer them?
//!
//! A head that is malformed or too large is answered by the codec alone, with RST_STREAM or 431, and
//! the service never hears of it. But every refusal has an audit line. So frames are looked at below
//! the codec: of the heads that came, those that the service was not called for were refused.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use outgate_policy::{Denial, Reason};

use super::frames::{Frame, HEADERS, RST_STREAM};

/// The client may say it again: nothing was judged.
const REFUSED_STREAM: u32 = 7;
/// Heads between two reckonings: far more than the codec takes at once.
const MOST: usize = 4096;

/// Shared by a connection's frames and its service.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    newest: u32,
    /// Streams opened since the last reckoning, and those of them that the codec has reset: for
    /// their head, or for what came right behind it.
    opened: Vec<u32>,
    reset: usize,
    served: usize,
    /// The codec can't write, and may hold heads back until it can.
    blocked: bool,
    in_head: bool,
    heads: usize,
    malformed: usize,
    too_large: usize,
}

impl Ledger {
    /// The service was called for a stream.
    pub(super) fn served(&self) {
        self.entries().served += 1;
    }

    /// Why a stream was refused, once one was. To be polled after the codec, by the same task: it
    /// has handed over by then whatever it took.
    pub(super) async fn refused(&self) -> Denial {
        poll_fn(|_| self.next_refused().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Why a stream was refused, if one was.
    pub(super) fn next_refused(&self) -> Option<Denial> {
        let mut entries = self.entries();
        entries.reckon();
        if entries.too_large > 0 {
            entries.too_large -= 1;
            return Some(Denial::new(Reason::HeadTooLarge, "the header list is too large"));
        }
        entries.malformed = entries.malformed.checked_sub(1)?;
        Some(Denial::new(Reason::MalformedRequest, "the head breaks RFC 9113 §8"))
    }

    /// Why a head is cut off, once one has begun and not ended within `limit`. Looks only when its
    /// timer fires, so it may be late by as much again.
    pub(super) async fn late_head(&self, limit: Duration) -> Denial {
        loop {
            let before = self.open_head();
            tokio::time::sleep(limit).await;
            if before.is_some() && before == self.open_head() {
                let message = format!("the request head was not complete within {limit:?}");
                return Denial::new(Reason::RequestTimeout, message);
            }
        }
    }

    /// The client has sent all of a frame.
    pub(super) fn came(&self, frame: Frame) {
        self.entries().came(frame);
    }

    /// The codec has sent all of a frame.
    pub(super) fn went(&self, frame: Frame) {
        self.entries().went(frame);
    }

    /// Whether the client has begun a head and not ended it.
    pub(super) fn is_in_head(&self, in_head: bool) {
        self.entries().in_head = in_head;
    }

    /// Whether the codec would write and can't.
    pub(super) fn is_blocked(&self, blocked: bool) {
        self.entries().blocked = blocked;
    }

    fn open_head(&self) -> Option<usize> {
        let entries = self.entries();
        entries.in_head.then_some(entries.heads)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn came(&mut self, frame: Frame) {
        self.heads += usize::from(frame.ends_head);
        // Not trailers.
        if frame.ends_head && frame.stream > self.newest && self.opened.len() < MOST {
            self.newest = frame.stream;
            self.opened.push(frame.stream);
        }
    }

    fn went(&mut self, frame: Frame) {
        let Some(at) = self.opened.iter().position(|opened| *opened == frame.stream) else {
            return;
        };
        match (frame.kind, frame.error) {
            (RST_STREAM, Some(REFUSED_STREAM)) => drop(self.opened.swap_remove(at)),
            (RST_STREAM, _) => self.reset += 1,
            // Before the service was called, the only answer there is: 431.
            (HEADERS, _) => {
                self.opened.swap_remove(at);
                self.too_large += 1;
            }
            _ => {}
        }
    }

    fn reckon(&mut self) {
        if !self.blocked {
            let refused = self.opened.len().saturating_sub(self.served);
            self.malformed += refused.min(self.reset);
            self.opened.clear();
            (self.reset, self.served) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_refusals_from_answers() {
        let ledger = Ledger::default();
        let of = |kind, stream, error| Frame { kind, ends_head: kind == HEADERS, stream, error };
        {
            let mut entries = ledger.entries();
            [1, 3, 5, 7, 9, 9].iter().for_each(|stream| entries.came(of(HEADERS, *stream, None)));
            // The head was malformed; what came behind it was; too large; one too many.
            entries.went(of(RST_STREAM, 1, Some(1)));
            entries.went(of(RST_STREAM, 3, Some(1)));
            entries.went(of(HEADERS, 5, None));
            entries.went(of(RST_STREAM, 5, Some(1)));
            entries.went(of(RST_STREAM, 7, Some(REFUSED_STREAM)));
            entries.blocked = true;
        }
        assert_eq!(ledger.next_refused().map(|denial| denial.reason), Some(Reason::HeadTooLarge));
        assert!(ledger.next_refused().is_none(), "more may still be handed over");
        ledger.served();
        ledger.served();
        ledger.entries().blocked = false;
        let malformed = ledger.next_refused().map(|denial| denial.reason);
        assert_eq!(malformed, Some(Reason::MalformedRequest));
        assert!(ledger.next_refused().is_none());
    }
}
