//! May the body of a request with `Expect: 100-continue` be sent yet?
//!
//! RFC 9110 §10.1.1. The client holds its body back until it reads `100 Continue`, which hyper
//! sends when the body is first polled. So the body is not polled before the origin has said 100,
//! or was silent for a while; after a final answer it is never polled.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Timeout;

/// Keeps a body back.
pub(crate) enum Hold {
    Waiting(Pin<Box<Timeout<oneshot::Receiver<Word>>>>),
    /// A final answer came first. The connection is closed with the body unsent.
    Never,
}

/// The other end: whoever hears the origin.
#[derive(Clone)]
pub(crate) struct Release(Arc<Mutex<Option<oneshot::Sender<Word>>>>);

pub(crate) enum Word {
    Continue,
    Final,
}

/// A body held back for the origin's word, at most for `wait`.
pub(crate) fn hold(wait: Duration) -> (Hold, Release) {
    let (sender, receiver) = oneshot::channel();
    let waiting = Box::pin(tokio::time::timeout(wait, receiver));
    (Hold::Waiting(waiting), Release(Arc::new(Mutex::new(Some(sender)))))
}

impl Release {
    /// Only the first word counts.
    pub(crate) fn say(&self, word: Word) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The body may be gone already; then nobody needs to know.
            drop(sender.send(word));
        }
    }
}

impl Hold {
    pub(crate) fn poll_released(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Hold::Waiting(word) = self {
            match ready!(word.as_mut().poll(cx)) {
                Ok(Ok(Word::Continue)) | Err(_) => return Poll::Ready(()),
                Ok(Ok(Word::Final) | Err(_)) => *self = Hold::Never,
            }
        }
        Poll::Pending
    }
}
