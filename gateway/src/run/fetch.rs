//! How do sources that only the gateway can fetch come in before the command starts?

use nix::sys::signal::Signal;
use outgate_proxy::Purpose;

use super::signals::Signals;
use crate::app;
use crate::failure::Failure;
use crate::sources::{self, Asker, Fetch};

/// How the fetching ended.
pub(super) enum Fetched {
    All,
    /// A person, or what outgate was started by, wants it to end: with this exit code.
    Interrupted(u8),
}

/// Fetches all of them through the running gateway, under its one environment's rules.
pub(super) async fn fetch(
    fetches: Vec<Fetch>,
    gateway: &app::Running,
    signals: &mut Signals,
) -> Result<Fetched, Failure> {
    let environments = gateway.environments();
    let environment = environments.iter().next();
    let environment = environment.ok_or_else(|| Failure::start("the environment is gone"))?;
    let egress = gateway.egress(Purpose::Source);
    let fetching = sources::fetch(fetches, Asker { egress: &egress, environment });
    tokio::select! {
        fetched = fetching => fetched.map(|()| Fetched::All).map_err(Failure::start),
        signal = interruption(signals) => Ok(Fetched::Interrupted(exit_code(signal))),
    }
}

/// The next signal that asks for an end.
async fn interruption(signals: &mut Signals) -> Signal {
    loop {
        let signal = signals.next().await;
        // There is no command yet that could be told of another one.
        if [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM].contains(&signal) {
            return signal;
        }
    }
}

/// As a shell tells of an end by a signal.
fn exit_code(signal: Signal) -> u8 {
    128 + u8::try_from(signal as i32).expect("numbers of signals are small")
}
