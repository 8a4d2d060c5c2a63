//! Who has the terminal: the command, or whoever started outgate?
//!
//! The command has a process group of its own, for one that it shared with outgate it could signal
//! whole, with the caller's pipeline in it. So outgate does for it what a shell does for a job
//! (tcsetpgrp(3), "Job Control" of the GNU C library's manual).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The controlling terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    device: File,
}

impl Terminal {
    /// The one that this process has, if it has any.
    pub(super) fn open() -> Option<Terminal> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        options.open("/dev/tty").ok().map(|device| Terminal { device })
    }

    /// Whether this process's group reads what is typed.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.device) == Ok(getpgrp())
    }

    /// Whether it was hung up since.
    pub(super) fn is_gone(&self) -> bool {
        tcgetpgrp(&self.device).is_err()
    }

    /// Lets this group read what is typed. SIGTTOU must be blocked or ignored, for one who asks
    /// from the background.
    pub(super) fn give(&self, group: Pid) {
        // It is gone, or its owner took it: then it is no longer ours to give.
        let _ = tcsetpgrp(&self.device, group);
    }

    /// Lets this process's own group read what is typed.
    pub(super) fn take(&self) {
        self.give(getpgrp());
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Keeps this process running when it writes to a terminal that the command has (`stty tostop`),
/// and lets it take the terminal back.
pub(super) fn ignore_background_stops() -> io::Result<()> {
    act_on(Signal::SIGTTOU, SigHandler::SigIgn)?;
    Ok(())
}

/// Stops this process as if it had never cared for `signal`; returns when it was continued, or at
/// once where the kernel lets nobody stop (an orphaned process group).
pub(super) fn stop(signal: Signal) -> io::Result<()> {
    if signal == Signal::SIGSTOP {
        return Ok(raise(signal)?);
    }
    let before = act_on(signal, SigHandler::SigDfl)?;
    let stopped = raise(signal);
    act_on(signal, before)?;
    Ok(stopped?)
}

fn act_on(signal: Signal, handler: SigHandler) -> Result<SigHandler, Errno> {
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    #[expect(unsafe_code, reason = "nix leaves it to the caller what a handler does")]
    // SAFETY: the handler is none, or the one that was there before.
    let before = unsafe { sigaction(signal, &action) }?;
    Ok(before.handler())
}
