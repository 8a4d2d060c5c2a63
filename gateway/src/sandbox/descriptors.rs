//! Which descriptors does a process of the sandbox hold?

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

const FIRST_AFTER_STDIO: RawFd = 3;

/// Closes all but the standard ones and `kept`, for what outgate was given by its caller is not
/// the command's.
pub(super) fn close_inherited(kept: BorrowedFd<'_>) -> io::Result<()> {
    let kept = kept.as_raw_fd();
    if kept > FIRST_AFTER_STDIO {
        close_range(FIRST_AFTER_STDIO, kept - 1)?;
    }
    close_range(kept + 1, RawFd::MAX)
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    #[expect(unsafe_code, reason = "no safe wrapper closes descriptors that nobody owns")]
    // SAFETY: called before this process has opened anything but what is kept, so nothing that
    // has an owner is closed.
    let closed = unsafe { libc::close_range(first.cast_unsigned(), last.cast_unsigned(), 0) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What takes the place of a stream that is let go of: `/dev/null`.
pub(super) fn nowhere() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Puts `nowhere` in the place of the caller's standard streams, which are the command's alone:
/// whoever is at the other end of a pipe must see it when the command closes its own.
pub(super) fn leave_standard_streams(nowhere: &File) -> io::Result<()> {
    dup2_stdin(nowhere)?;
    dup2_stdout(nowhere)?;
    dup2_stderr(nowhere)?;
    Ok(())
}

/// The same for one who still has something to say on stderr.
pub(crate) fn leave_input_and_output() -> io::Result<()> {
    let nowhere = nowhere()?;
    dup2_stdin(&nowhere)?;
    dup2_stdout(&nowhere)?;
    Ok(())
}
