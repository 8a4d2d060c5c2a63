//! Does a process outside stay untouched?

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Met;
use crate::verify::ITSELF;

/// The argument that makes this program the bystander.
pub(in crate::verify) const ROLE: &str = "outgate-witness";

/// What a bystander's variable with the canary is called.
const VARIABLE: &str = "OUTGATE_VERIFY_CANARY";

/// It starts at once.
const DEADLINE_MS: u16 = 10_000;

/// A process of the same user and process group, with the canary in its memory. It may be looked
/// into by whoever sees it.
pub(super) struct Bystander(Child);

impl Bystander {
    pub(super) fn start(canary: &str) -> io::Result<Bystander> {
        let mut child = Command::new(ITSELF)
            .arg(ROLE)
            .env(VARIABLE, canary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdout = child.stdout.take().expect("it was asked for");
        let mut bystander = Bystander(child);
        let mut waiting = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut waiting, PollTimeout::from(DEADLINE_MS))? == 1;
        if ready && stdout.read(&mut [0])? == 1 {
            return Ok(bystander);
        }
        bystander.end();
        Err(io::Error::other("the witness's process did not start"))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// It tells by its exit code.
    pub(super) fn met(&mut self) -> Option<Met> {
        let untouched = self.end();
        let what = "the witness's process".to_owned();
        (!untouched).then_some(Met { probe: "signals", what })
    }

    fn end(&mut self) -> bool {
        drop(self.0.stdin.take());
        self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.end();
    }
}

/// Is the bystander: stands until its standard input ends, and fails if a signal came meanwhile.
pub(in crate::verify) fn stand() -> ExitCode {
    match wait_for_signals() {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) | Err(_) => ExitCode::FAILURE,
    }
}

fn wait_for_signals() -> io::Result<bool> {
    SigSet::all().thread_block()?;
    let signals = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK)?;
    rustix::io::write(io::stdout(), b"r")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(signals.read_signal()?.is_some())
}
