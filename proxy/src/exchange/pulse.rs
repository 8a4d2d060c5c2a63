//! Does anything still move on an HTTP/2 connection, and on each of its streams?
//!
//! Without streams it is idle; with streams none of which moves it is stalled, and ends. Where some
//! move, or are relayed as bytes with a deadline of their own, those that don't are cut one by one.
//! One timer a connection, none a stream.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use hyper::rt::Executor;

/// All the streams of one connection, which runs its tasks by this.
#[derive(Clone, Default)]
pub(crate) struct Pulses(Arc<All>);

#[derive(Default)]
struct All {
    streams: AtomicUsize,
    relays: AtomicUsize,
    beats: AtomicU64,
    each: Mutex<Each>,
}

#[derive(Default)]
struct Each {
    /// Those that may be open, and some that were.
    streams: Vec<Weak<One>>,
    /// The one whose task is run next.
    latest: Option<Pulse>,
}

/// That of one stream.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<One>);

struct One {
    all: Pulses,
    beats: AtomicU64,
    /// Its beats when they were looked at last.
    seen: AtomicU64,
    is_cut: AtomicBool,
    /// What goes on until it is cut.
    task: AtomicWaker,
    upload: AtomicWaker,
}

/// No number of beats: nobody has looked yet.
const UNSEEN: u64 = u64::MAX;

/// A stream is open until this is dropped.
pub(crate) struct Stream(Pulse);

/// A stream is relayed as bytes until this is dropped: it has a deadline of its own.
pub(crate) struct Relay(Pulses);

impl Pulses {
    /// A stream begins, whose task is run next.
    pub(crate) fn stream(&self) -> Stream {
        self.0.streams.fetch_add(1, Ordering::Relaxed);
        let pulse = Pulse(Arc::new(One {
            all: self.clone(),
            beats: AtomicU64::new(0),
            seen: AtomicU64::new(UNSEEN),
            is_cut: AtomicBool::new(false),
            task: AtomicWaker::new(),
            upload: AtomicWaker::new(),
        }));
        let mut each = self.each();
        if each.streams.len() == each.streams.capacity() {
            each.streams.retain(|stream| stream.strong_count() > 0);
        }
        each.streams.push(Arc::downgrade(&pulse.0));
        each.latest = Some(pulse.clone());
        drop(each);
        pulse.beat();
        Stream(pulse)
    }

    /// Ready once nothing has moved for `idle` without a stream, or for `stalled` with some, none of
    /// which is relayed; cuts the streams of which that is true while it is not of all. Looks only
    /// when its timer fires, so it may be late by as much again.
    pub(crate) async fn stopped(&self, idle: Duration, stalled: Duration) {
        loop {
            let seen = self.0.beats.load(Ordering::Relaxed);
            let none = self.0.streams.load(Ordering::Relaxed) == 0;
            tokio::time::sleep(if none { idle } else { stalled }).await;
            let relayed = self.0.relays.load(Ordering::Relaxed) > 0;
            if !relayed && self.0.beats.load(Ordering::Relaxed) == seen {
                return;
            }
            self.cut_stalled();
        }
    }

    fn cut_stalled(&self) {
        let open: Vec<Arc<One>> = self.each().streams.iter().filter_map(Weak::upgrade).collect();
        for stream in open {
            let beats = stream.beats.load(Ordering::Relaxed);
            if stream.seen.swap(beats, Ordering::Relaxed) == beats {
                stream.is_cut.store(true, Ordering::Release);
                stream.task.wake();
                stream.upload.wake();
            }
        }
    }

    fn beat(&self) {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.beat();
    }

    fn each(&self) -> MutexGuard<'_, Each> {
        self.0.each.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// hyper runs the task of a stream right after it has asked for its answer.
impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Pulses {
    fn execute(&self, task: F) {
        match self.each().latest.take() {
            Some(pulse) => drop(tokio::spawn(pulse.until_cut(task))),
            None => drop(tokio::spawn(task)),
        }
    }
}

impl Pulse {
    /// Something moved.
    pub(crate) fn beat(&self) {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
        self.0.all.beat();
    }

    /// The stream goes on as bytes.
    pub(crate) fn relay(&self) -> Relay {
        let all = self.0.all.clone();
        all.0.relays.fetch_add(1, Ordering::Relaxed);
        all.0.streams.fetch_add(1, Ordering::Relaxed);
        all.beat();
        Relay(all)
    }

    /// Whether nothing has moved for too long; wakes its upload then, which is polled with this.
    pub(super) fn upload_is_cut(&self, cx: &Context<'_>) -> bool {
        self.0.upload.register(cx.waker());
        self.is_cut()
    }

    /// Whether nothing has moved for too long.
    pub(super) fn is_cut(&self) -> bool {
        self.0.is_cut.load(Ordering::Acquire)
    }

    /// Drops `task` when the stream is cut: the codec then resets it.
    async fn until_cut(self, task: impl Future<Output = ()>) {
        let mut task = pin!(task);
        poll_fn(|cx| {
            self.0.task.register(cx.waker());
            match self.is_cut() {
                true => Poll::Ready(()),
                false => task.as_mut().poll(cx),
            }
        })
        .await;
    }
}

impl Stream {
    pub(crate) fn beat(&self) {
        self.0.beat();
    }

    /// The same for others.
    pub(crate) fn pulse(&self) -> Pulse {
        self.0.clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.all.ended();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.0.relays.fetch_sub(1, Ordering::Relaxed);
        self.0.ended();
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
        let pulse = Pulses::default();
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
        let pulse = Pulses::default();
        let stream = pulse.stream();
        let relay = stream.pulse().relay();
        drop(stream);
        let silent = tokio::time::timeout(STALLED * 20, pulse.stopped(IDLE, STALLED)).await;
        assert!(silent.is_err(), "a connection with a silent WebSocket was stopped");
        drop(relay);
        let begun = Instant::now();
        pulse.stopped(IDLE, STALLED).await;
        assert_eq!(begun.elapsed(), IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn one_stream_that_moves_keeps_all_alive() {
        let pulse = Pulses::default();
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

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stands_still_is_cut_beside_one_that_moves_or_is_relayed() {
        let pulse = Pulses::default();
        let (moving, standing) = (pulse.stream(), pulse.stream());
        let _relay = pulse.stream().pulse().relay();
        let begun = Instant::now();
        let cut = standing.pulse().until_cut(std::future::pending());
        tokio::pin!(cut);
        let moves = async {
            loop {
                tokio::time::sleep(STALLED / 2).await;
                moving.beat();
            }
        };
        tokio::select! {
            () = pulse.stopped(IDLE, STALLED) => panic!("a moving connection was stopped"),
            () = moves => {}
            () = &mut cut => {}
        }
        let took = begun.elapsed();
        assert!(took >= STALLED && took <= STALLED * 2, "{took:?}");
        assert!(standing.pulse().is_cut() && !moving.pulse().is_cut());
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_were_are_forgotten() {
        let pulse = Pulses::default();
        for _ in 0..10_000 {
            drop(pulse.stream());
        }
        assert!(pulse.each().streams.capacity() < 16);
    }
}
