//! How is the command followed from its start to its end?

use nix::sys::signal::Signal;
use tokio::sync::Notify;

use super::hooked::Wanted;
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
    mut hooks: Wanted,
) -> Result<u8, Failure> {
    let mut sandbox = sandbox.start().await.map_err(Failure::start)?;
    let code = follow(&mut sandbox, &gateway.reloading(), &mut signals, &mut hooks).await;
    sandbox.end().await;
    code.map_err(Failure::start)
}

async fn follow(
    sandbox: &mut Running,
    reloading: &Notify,
    signals: &mut Signals,
    hooks: &mut Wanted,
) -> Result<u8, SandboxError> {
    let mut started = false;
    loop {
        tokio::select! {
            event = sandbox.event() => match event? {
                Event::Prepared => {
                    // The command must not come before: it could write what is pinned.
                    hooks.settle().await;
                    sandbox.run().await?;
                }
                Event::Started => started = true,
                Event::Stopped(signal) => sandbox.follow_stop(signal).await?,
                Event::Ended(code) => return Ok(code),
                Event::NotRun(code, message) => {
                    complain(format_args!("outgate: {message}"));
                    return Ok(code);
                }
            },
            signal = signals.next() => match signal {
                // Of a terminal that is gone the command hears as it would without us; another
                // one is for the gateway.
                Signal::SIGHUP if !sandbox.lost_terminal() => reloading.notify_one(),
                signal => sandbox.signal(signal).await?,
            },
            // Without one who could ask any longer, there is nothing more to wait for here.
            Some(streams) = hooks.next(), if started => sandbox.start_hook(streams).await?,
        }
    }
}
