//! How much of the machine may one command have? Bounds that a gate never meets and a fork bomb
//! does at once. They are per process; cgroups are not assumed to be there.

use std::io;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use super::process;

/// Processes and threads beyond those that are there already: the kernel counts those of the
/// user, so that a fixed number would let the sandbox use it up and every hook fail.
const MORE_TASKS: rlim_t = 512;

/// Data of one process. Interpreters take some ten MiB, and reserve address space, which this
/// doesn't count.
const DATA: rlim_t = 1 << 30;

/// One file.
const FILE_SIZE: rlim_t = 256 << 20;

/// Open files of one process: the usual limit, not the gateway's raised one.
const OPEN_FILES: rlim_t = 1024;

/// What is set in the child.
#[derive(Copy, Clone)]
pub(super) struct Limits([(Resource, rlim_t); 5]);

/// The limits for a command that starts now.
pub(super) fn read() -> io::Result<Limits> {
    let tasks = process::tasks() + MORE_TASKS;
    let wanted = [
        (Resource::RLIMIT_NPROC, tasks),
        (Resource::RLIMIT_DATA, DATA),
        (Resource::RLIMIT_FSIZE, FILE_SIZE),
        (Resource::RLIMIT_NOFILE, OPEN_FILES),
        (Resource::RLIMIT_CORE, 0),
    ];
    let mut limits = wanted;
    for (resource, limit) in &mut limits {
        let (_, hard) = getrlimit(*resource)?;
        *limit = hard.min(*limit);
    }
    Ok(Limits(limits))
}

impl Limits {
    /// Sets them for this process and what it starts.
    pub(super) fn apply(self) -> io::Result<()> {
        for (resource, limit) in self.0 {
            setrlimit(resource, limit, limit)?;
        }
        Ok(())
    }
}
