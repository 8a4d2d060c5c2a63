//! How does a command of a hook come into the sandbox?
//!
//! PID 1 forks its supervisor: it is where the command must be, without any right, and under the
//! same filter of system calls.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork};

use super::descriptors;

/// Starts a supervisor on these streams. Where it can't be, they are closed, which the gateway's
/// process sees.
pub(super) fn start(streams: Vec<OwnedFd>) {
    let Ok([control, stdout, stderr]) = <[OwnedFd; 3]>::try_from(streams) else { return };
    #[expect(unsafe_code, reason = "there is no safe fork")]
    // SAFETY: PID 1 has one thread, so that the child may do whatever it may.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        exit(supervise([control, stdout, stderr].map(File::from)));
    }
}

fn supervise([control, stdout, stderr]: [File; 3]) -> i32 {
    let placed = dup2_stdin(&control)
        .and_then(|()| dup2_stdout(&stdout))
        .and_then(|()| dup2_stderr(&stderr));
    drop((control, stdout, stderr));
    // PID 1's own channel above all; what owns it in this copy is never used, and never dropped.
    let closed = placed.is_ok() && descriptors::close_inherited(io::stderr().as_fd()).is_ok();
    // What goes wrong from here on, the gateway's process is told over the control stream.
    i32::from(!closed || outgate_hooks::supervise().is_err())
}
