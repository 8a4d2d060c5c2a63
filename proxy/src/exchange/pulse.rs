//! Does anything still move on an HTTP/2 connection?
//!
//! A connection is watched as a whole: while some stream moves, it lives; without streams it is
//! idle; with streams none of which moves it is stalled. One timer a connection, none a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Shared by a connection and all its streams.
#[derive(Clone, Default)]
pub(crate) struct Pulse(Arc<Inner>);

#[derive(Default)]
struct Inner {
    streams: AtomicUsize,
    relays: AtomicUsize,
    beats: AtomicU64,
}

/// A stream is open until this is dropped.
pub(crate) struct Stream(Pulse);

/// A stream is relayed as bytes until this is dropped: it has a deadline of its own.
pub(crate) struct Relay(Stream);

impl Pulse {
    /// A stream begins.
    pub(crate) fn stream(&self) -> Stream {
        self.0.streams.fetch_add(1, Ordering::Relaxed);
        self.beat();
        Stream(self.clone())
    }

    /// A stream goes on as bytes.
    pub(crate) fn relay(&self) -> Relay {
        self.0.relays.fetch_add(1, Ordering::Relaxed);
        Relay(self.stream())
    }

    /// Something moved.
    pub(crate) fn beat(&self) {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Ready once nothing has moved for `idle` without a stream, or for `stalled` with some, none of
    /// which is relayed. Looks only when its timer fires, so it may be late by as much again.
    pub(crate) async fn stopped(&self, idle: Duration, stalled: Duration) {
        loop {
            let seen = self.0.beats.load(Ordering::Relaxed);
            let none = self.0.streams.load(Ordering::Relaxed) == 0;
            tokio::time::sleep(if none { idle } else { stalled }).await;
            let relayed = self.0.relays.load(Ordering::Relaxed) > 0;
            if !relayed && self.0.beats.load(Ordering::Relaxed) == seen {
                return;
            }
        }
    }
}

impl Stream {
    pub(crate) fn beat(&self) {
        self.0.beat();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.beat();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.0.0.relays.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const IDLE: Duration = Duration::from_secs(10);
    const STALLED: Duration = Duration::from_secs(100);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_streams_is_idle_sooner_than_a_stalled_one() {
        let pulse = Pulse::default();
        let begun = Instant::now();
        pulse.stopped(IDLE, STALLED).await;
        assert_eq!(begun.elapsed(), IDLE);
        let stream = pulse.stream();
        let begun = Instant::now();
        pulse.stopped(IDLE, STALLED).await;
        assert_eq!(begun.elapsed(), STALLED);
        drop(stream);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relayed_stream_is_never_stalled_and_its_end_is_a_beginning() {
        let pulse = Pulse::default();
        let relay = pulse.relay();
        let silent = tokio::time::timeout(STALLED * 20, pulse.stopped(IDLE, STALLED)).await;
        assert!(silent.is_err(), "a connection with a silent WebSocket was stopped");
        drop(relay);
        let begun = Instant::now();
        pulse.stopped(IDLE, STALLED).await;
        assert_eq!(begun.elapsed(), IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn one_stream_that_moves_keeps_all_alive() {
        let pulse = Pulse::default();
        let stream = pulse.stream();
        let moving = async {
            loop {
                tokio::time::sleep(STALLED / 2).await;
                stream.beat();
            }
        };
        tokio::select! {
            () = moving => {}
            () = pulse.stopped(IDLE, STALLED) => panic!("a moving connection was stopped"),
            () = tokio::time::sleep(STALLED * 20) => {}
        }
    }
}
