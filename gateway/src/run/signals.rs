//! Which signals does `outgate run` catch?

use std::future::poll_fn;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::failure::Failure;

/// Those that a command may be told something with. SIGHUP is the gateway's: it reads everything
/// again.
const CAUGHT: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

/// All of them, caught.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Catches them from now on; needs a runtime.
    pub(super) fn listen() -> Result<Signals, Failure> {
        let caught = CAUGHT.map(|kind| {
            let caught = signal(SignalKind::from_raw(kind as i32)).map_err(Failure::start)?;
            Ok((kind, caught))
        });
        Ok(Signals(caught.into_iter().collect::<Result<_, _>>()?))
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (kind, caught) in &mut self.0 {
                if caught.poll_recv(context).is_ready() {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}
