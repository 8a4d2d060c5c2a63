//! How is the command followed from its start to its end?

use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::Notify;

use super::signals::Signals;
use crate::app;
use crate::console::complain;
use crate::failure::Failure;
use crate::sandbox::{Event, Launched, Running, SandboxError};

/// Starts the command and follows it to its end; the exit code that outgate takes on.
pub(super) async fn attend(
    sandbox: Launched,
    gateway: &app::Running,
    mut signals: Signals,
) -> Result<u8, Failure> {
    let mut command = Attended {
        sandbox: sandbox.start().await.map_err(Failure::start)?,
        reloading: gateway.reloading(),
        started: false,
    };
    let code = command.until_ended(&mut signals).await;
    command.sandbox.end().await;
    code
}

struct Attended {
    sandbox: Running,
    reloading: Arc<Notify>,
    started: bool,
}

impl Attended {
    async fn until_ended(&mut self, signals: &mut Signals) -> Result<u8, Failure> {
        loop {
            let ended = tokio::select! {
                event = self.sandbox.event() => self.follow(event).await,
                signal = signals.next() => self.pass_on(signal).await,
            };
            if let Some(code) = ended.map_err(Failure::start)? {
                return Ok(code);
            }
        }
    }

    async fn follow(
        &mut self,
        event: Result<Event, SandboxError>,
    ) -> Result<Option<u8>, SandboxError> {
        match event? {
            Event::Started => self.started = true,
            Event::Stopped(signal) => self.sandbox.follow_stop(signal).await?,
            Event::Ended(code) => return Ok(Some(code)),
            Event::NotRun(code, message) => {
                complain(format_args!("outgate: {message}"));
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    /// The exit code, where there is no command yet that the signal could end.
    async fn pass_on(&mut self, signal: Signal) -> Result<Option<u8>, SandboxError> {
        match signal {
            // Of a terminal that is gone the command hears as it would without us; another one is
            // for the gateway.
            Signal::SIGHUP if !self.sandbox.lost_terminal() => self.reloading.notify_one(),
            Signal::SIGWINCH | Signal::SIGTSTP if !self.started => {}
            signal if !self.started => return Ok(Some(128 | (signal as i32).to_le_bytes()[0])),
            signal => self.sandbox.signal(signal).await?,
        }
        Ok(None)
    }
}
