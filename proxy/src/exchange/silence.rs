//! For how long has a client that sends a body said nothing?
//!
//! What is asked of others for its sake, such as a source of secrets that takes its time, is no
//! silence of the client's. It has deadlines of its own.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The client has paused for too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Silent;

/// What `poll` gives, unless the client is silent for `pause`. It says too whether it is somebody
/// else that it waits for.
pub(super) async fn unless_silent<T>(
    pause: Duration,
    mut poll: impl FnMut(&mut Context<'_>) -> (Poll<T>, bool),
) -> Result<T, Silent> {
    let mut silence = pin!(sleep(pause));
    let mut is_excused = false;
    poll_fn(|cx| match poll(cx) {
        (Poll::Ready(given), _) => Poll::Ready(Ok(given)),
        (Poll::Pending, true) => {
            is_excused = true;
            Poll::Pending
        }
        (Poll::Pending, false) => {
            if std::mem::take(&mut is_excused) {
                silence.as_mut().reset(Instant::now() + pause);
            }
            silence.as_mut().poll(cx).map(|()| Err(Silent))
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn only_the_clients_own_silence_counts() {
        let begun = Instant::now();
        let never = unless_silent(PAUSE, |_| (Poll::<()>::Pending, false)).await;
        assert_eq!((never, begun.elapsed()), (Err(Silent), PAUSE));

        let begun = Instant::now();
        let mut asking = pin!(sleep(PAUSE * 10));
        let given = unless_silent(PAUSE, |cx| match asking.as_mut().poll(cx) {
            Poll::Ready(()) => (Poll::Ready(7), false),
            Poll::Pending => (Poll::Pending, true),
        });
        assert_eq!((given.await, begun.elapsed()), (Ok(7), PAUSE * 10));

        let begun = Instant::now();
        let mut asking = pin!(sleep(PAUSE * 10));
        let after = unless_silent(PAUSE, |cx| {
            let is_asking = !asking.is_elapsed() && asking.as_mut().poll(cx).is_pending();
            (Poll::<()>::Pending, is_asking)
        });
        assert_eq!((after.await, begun.elapsed()), (Err(Silent), PAUSE * 11));
    }
}
