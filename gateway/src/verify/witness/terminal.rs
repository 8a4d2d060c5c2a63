//! Was something typed into the terminal that the sandbox was started from?

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::pty::openpty;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};

use super::Met;

/// One that echoes what is typed to the end that is held here.
pub(super) struct Terminal {
    held: File,
    prober: OwnedFd,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Terminal> {
        let pair = openpty(None, None)?;
        for end in [&pair.master, &pair.slave] {
            fcntl_setfd(end, FdFlags::CLOEXEC)?;
        }
        fcntl_setfl(&pair.master, fcntl_getfl(&pair.master)? | OFlags::NONBLOCK)?;
        Ok(Terminal { held: pair.master.into(), prober: pair.slave })
    }

    pub(super) fn prober_end(&self) -> BorrowedFd<'_> {
        self.prober.as_fd()
    }

    pub(super) fn met(&mut self) -> Option<Met> {
        let typed = self.held.read(&mut [0; 64]).is_ok_and(|length| length > 0);
        let what = "the witness's terminal".to_owned();
        typed.then_some(Met { probe: "terminal-input", what })
    }
}
