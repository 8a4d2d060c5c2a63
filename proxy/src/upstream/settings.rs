//! What has an HTTP/2 origin said that it takes?
//!
//! hyper tells nobody when SETTINGS come. They are the first that an origin sends (RFC 9113 §3.4), so
//! they are looked for after each turn of the task that reads, until they are there. Whatever they
//! say is asked for anew each time, for it may change.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::sync::watch;

/// How many streams the codec believes in until it has heard; no SETTINGS can say so many.
pub(super) const UNHEARD: usize = usize::MAX - 1;
/// Streams that an origin gets until then: a second one could be refused.
const UNHEARD_STREAMS: usize = 1;

/// The settings of one connection, which runs its tasks by this.
#[derive(Clone, Default)]
pub(super) struct Settings(Arc<Inner>);

#[derive(Default)]
struct Inner {
    ask: OnceLock<Box<Ask>>,
    heard: watch::Sender<bool>,
    /// The first task of a connection is the one that reads.
    is_read: AtomicBool,
}

type Ask = dyn Fn() -> Said + Send + Sync;

/// What they say now.
#[derive(Clone, Copy)]
pub(super) struct Said {
    /// Streams at a time, or [`UNHEARD`].
    pub(super) streams: usize,
    /// WebSockets (RFC 8441 §3).
    pub(super) websockets: bool,
}

impl Said {
    /// By a connection that has ended.
    pub(super) const NOTHING: Said = Said { streams: 0, websockets: false };
}

impl Settings {
    /// Where they are to be asked for.
    pub(super) fn are_said_by(&self, ask: impl Fn() -> Said + Send + Sync + 'static) {
        // Set once: a connection is made once.
        drop(self.0.ask.set(Box::new(ask)));
        // What came before this was heard by nobody.
        self.look();
    }

    /// How many streams the origin takes at a time.
    pub(super) fn streams(&self) -> usize {
        match self.said().streams {
            UNHEARD => UNHEARD_STREAMS,
            streams => streams,
        }
    }

    /// Whether the origin takes WebSockets; one that does not say so within `wait` does not.
    pub(super) async fn takes_websockets(&self, wait: Duration) -> bool {
        let mut heard = self.0.heard.subscribe();
        drop(tokio::time::timeout(wait, heard.wait_for(|heard| *heard)).await);
        self.said().websockets
    }

    fn said(&self) -> Said {
        let unheard = Said { streams: UNHEARD, websockets: false };
        self.0.ask.get().map_or(unheard, |ask| ask())
    }

    /// Whether they are there; tells whoever waits for it.
    fn look(&self) -> bool {
        let heard = self.said().streams != UNHEARD;
        if heard {
            self.0.heard.send_replace(true);
        }
        heard
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Settings {
    fn execute(&self, task: F) {
        if self.0.is_read.swap(true, Ordering::Relaxed) {
            tokio::spawn(task);
            return;
        }
        let settings = self.clone();
        tokio::spawn(async move {
            let (mut task, mut heard) = (pin!(task), false);
            poll_fn(|cx| {
                let polled = task.as_mut().poll(cx);
                heard = heard || settings.look();
                polled
            })
            .await;
            // Who waits still will hear no more.
            settings.0.heard.send_replace(true);
        });
    }
}
