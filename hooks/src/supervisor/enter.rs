//! How does the supervisor come into the sandbox? By the namespaces of one of its processes.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::waitpid;
use nix::unistd::{
    ForkResult, Gid, Uid, chdir, chroot, fchdir, fork, geteuid, setgroups, setresgid, setresuid,
};

use super::control::Inside;

/// Which process one is after entering.
pub(super) enum Side {
    /// The one in the sandbox's PID namespace.
    Inside,
    /// The one that waited for it, which is over.
    Outside,
}

/// Joins the namespaces, of the kinds in `kinds` and the user namespace first, as the user of the
/// process. A PID namespace is joined by children only (setns(2)), hence the fork.
#[expect(unsafe_code, reason = "there is no safe fork")]
pub(super) fn enter(inside: &Inside, kinds: &[i32]) -> io::Result<Side> {
    let pid = pid_of(inside.process.as_fd())?;
    // The groups of the gateway's root mean something on the files that the sandbox sees. In a user
    // namespace that an ordinary user made they are that user's, and can't be given up.
    let is_forbidden =
        fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text.trim() == "deny");
    if geteuid().is_root() && !is_forbidden {
        setgroups(&[])?;
    }
    let mut ids = None;
    for (kind, namespace) in kinds.iter().zip(&inside.namespaces) {
        setns(namespace, CloneFlags::from_bits_truncate(*kind))?;
        if ids.is_none() {
            // Read now: /proc says ids as the reader's user namespace has them.
            ids = Some(ids_of(pid)?);
        }
    }
    let (user, group) = ids.ok_or(Errno::EINVAL)?;
    // The root of a mount namespace is not that of every process in it: one may have called
    // chroot(2), and what lies beside its root is not the sandbox's.
    fchdir(&inside.root)?;
    chroot(".")?;
    chdir("/")?;
    // The capabilities that came with the user namespace are lost here, or given up before exec.
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    // SAFETY: this process has one thread, so that the child may do what it likes.
    match unsafe { fork() }? {
        ForkResult::Child => Ok(Side::Inside),
        ForkResult::Parent { child } => {
            while waitpid(child, None) == Err(Errno::EINTR) {}
            Ok(Side::Outside)
        }
    }
}

/// The number of the process, in this /proc (pidfd_open(2)).
fn pid_of(pidfd: BorrowedFd<'_>) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    // -1 stands for a process that has been reaped.
    pid.ok_or_else(|| Errno::ESRCH.into())
}

/// Its effective user and group.
fn ids_of(pid: u32) -> io::Result<(Uid, Gid)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let effective = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    match (effective("Uid:"), effective("Gid:")) {
        (Some(user), Some(group)) => Ok((Uid::from_raw(user), Gid::from_raw(group))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
