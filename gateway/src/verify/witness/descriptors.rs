//! What would a sandbox inherit that nobody meant to give it?

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::io::{FdFlags, fcntl_setfd};

/// One right behind the standard streams, one far above them: whoever closes a range may end it too
/// early.
const HIGH: i32 = 900;

/// Descriptors that every program inherits from this process.
pub(super) struct Inheritable {
    _low: File,
    _high: OwnedFd,
}

impl Inheritable {
    pub(super) fn open(canary: &str) -> io::Result<Inheritable> {
        let mut low = tempfile::tempfile()?;
        low.write_all(canary.as_bytes())?;
        low.rewind()?;
        let high = rustix::io::fcntl_dupfd_cloexec(&low, HIGH)?;
        fcntl_setfd(&low, FdFlags::empty())?;
        fcntl_setfd(&high, FdFlags::empty())?;
        Ok(Inheritable { _low: low, _high: high })
    }
}
