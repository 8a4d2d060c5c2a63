//! Which processes descend from this one? Read from /proc, signalled by pidfd.

use std::collections::{HashMap, HashSet};
use std::fs;

use nix::errno::Errno;
use nix::sys::resource::rlim_t;
use nix::sys::signal::Signal;
use nix::unistd::getpid;

/// A process at the moment it was seen.
#[derive(Copy, Clone)]
pub(super) struct Process {
    pid: i32,
    parent: i32,
    threads: u64,
    /// In clock ticks since boot: with the pid it names one process for ever.
    started: u64,
}

/// Whether /proc shows this process under its own number: it may be missing, or that of another
/// PID namespace. Without it nothing could be found, so nothing is started.
pub(super) fn can_be_seen() -> bool {
    Process::read("self").is_some_and(|own| own.pid == getpid().as_raw())
}

/// All processes and threads that can be seen.
pub(super) fn tasks() -> rlim_t {
    every().map(|process| process.threads).sum()
}

/// Children, their children, and so on.
pub(super) fn descendants() -> Vec<Process> {
    let seen: Vec<Process> = every().collect();
    let parents: HashMap<i32, i32> =
        seen.iter().map(|process| (process.pid, process.parent)).collect();
    let own = getpid().as_raw();
    let mut descended = seen;
    descended.retain(|process| {
        let mut passed = HashSet::new();
        let mut parent = process.parent;
        // Read one after the other, the numbers may be of different moments: a ring is possible.
        while parent != own && passed.insert(parent) {
            match parents.get(&parent) {
                Some(next) => parent = *next,
                None => return false,
            }
        }
        parent == own
    });
    descended
}

impl Process {
    /// Sends a signal, unless the number has passed to another process by now.
    #[expect(unsafe_code, reason = "there is no safe pidfd_open")]
    pub(super) fn signal(self, signal: Signal) {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        // SAFETY: it takes numbers and makes a descriptor.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        let Some(raw) = Errno::result(opened).ok().and_then(|raw| i32::try_from(raw).ok()) else {
            return;
        };
        // SAFETY: the descriptor was made by the call above and is known to nobody else.
        let pidfd = unsafe { OwnedFd::from_raw_fd(raw) };
        let now = Process::read(&self.pid.to_string());
        if now.is_none_or(|now| now.started != self.started) {
            return;
        }
        let no_details = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a null pointer stands for "as kill(2) would"; the descriptor is open.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                pidfd.as_raw_fd(),
                signal as i32,
                no_details,
                0,
            );
        }
    }

    /// proc_pid_stat(5): the name is in brackets and may hold anything, also brackets.
    fn read(name: &str) -> Option<Process> {
        let text = fs::read(format!("/proc/{name}/stat")).ok()?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(text.split(|byte| *byte == b' ').next()?).ok()?;
        let rest = std::str::from_utf8(text.get(end + 2..)?).ok()?;
        // The third field of the line is the first of these.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Process {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

fn every() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))?;
        Process::read(name)
    })
}
