//! What do the two sides of a sandbox say to each other?

use serde::{Deserialize, Serialize};

use super::network::Capture;

/// From the gateway's process, after the plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToInside {
    /// The gateway serves: run the preparations.
    Start { foreground: bool },
    /// What they brought was looked at: run the command.
    Run,
    /// Pass a signal on to the command, or to its whole process group; before the command runs, to
    /// what prepares it.
    Signal { signal: i32, group: bool },
    /// Go on after a stop.
    Continue { foreground: bool },
    /// Supervise a command of a hook. Its three streams come along.
    Hook,
}

/// From the launcher, and then from PID 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromInside {
    /// The network is there. The sockets come along, in the order of the counts.
    Ready { capture: Capture, transparent: usize, dns_udp: usize, dns_tcp: usize },
    /// The preparations are over, and the command waits for [`ToInside::Run`].
    Prepared,
    /// The command runs.
    Started,
    /// The command was stopped by this signal.
    Stopped { signal: i32 },
    /// The command's end, with the exit code that outgate takes on.
    Ended { code: u8 },
    /// The command can't be run: 126 or 127, as `env` has it.
    NotRun { code: u8, message: String },
    /// There is no sandbox.
    Failed { message: String },
}
