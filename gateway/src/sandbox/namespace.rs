//! How does a process without any right come to be alone?
//!
//! A user namespace gives it every capability over the others that are made with it
//! (user_namespaces(7)). Only a process with one thread may enter one.

use std::fs;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use thiserror::Error;

/// Why there are no namespaces.
#[derive(Debug, Error)]
pub(crate) enum NamespaceError {
    #[error("{what} ({error}): {next_step}")]
    Missing { what: &'static str, error: Errno, next_step: &'static str },
    #[error(
        "{file} can't be written ({error}): a security module may forbid it, see \
             kernel.apparmor_restrict_unprivileged_userns"
    )]
    Map { file: &'static str, error: io::Error },
    #[error(
        "mounts can't be made private ({0}): a security module may forbid it, see \
             kernel.apparmor_restrict_unprivileged_userns"
    )]
    Mounts(Errno),
}

/// What may shut namespaces: a switch, the value that does it, what that means, the way out.
const SWITCHES: [(&str, &str, &str, &str); 7] = [
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are switched off",
        "allow them with `sysctl -w kernel.unprivileged_userns_clone=1`",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces",
        "allow them with `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "no user namespace may be made",
        "allow them with `sysctl -w user.max_user_namespaces=10000`",
    ),
    (
        "/proc/sys/user/max_net_namespaces",
        "0",
        "no network namespace may be made",
        "allow them with `sysctl -w user.max_net_namespaces=10000`",
    ),
    (
        "/proc/sys/user/max_mnt_namespaces",
        "0",
        "no mount namespace may be made",
        "allow them with `sysctl -w user.max_mnt_namespaces=10000`",
    ),
    (
        "/proc/sys/user/max_pid_namespaces",
        "0",
        "no PID namespace may be made",
        "allow them with `sysctl -w user.max_pid_namespaces=10000`",
    ),
    (
        "/proc/sys/user/max_ipc_namespaces",
        "0",
        "no IPC namespace may be made",
        "allow them with `sysctl -w user.max_ipc_namespaces=10000`",
    ),
];

/// Enters user, mount, network and IPC namespaces of its own; the next child is PID 1 of a new PID
/// namespace. User and group stay what they were, the only ones that there are inside.
pub(super) fn enter() -> Result<(), NamespaceError> {
    let (user, group) = (geteuid(), getegid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWPID;
    unshare(all).map_err(|error| missing(error, |file| fs::read_to_string(file).ok()))?;
    // Without this an ordinary user may not write the group map.
    map("/proc/self/setgroups", "deny")?;
    map("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    map("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&Path>, "/", None::<&Path>, private, None::<&Path>).map_err(NamespaceError::Mounts)
}

fn map(file: &'static str, text: &str) -> Result<(), NamespaceError> {
    fs::write(file, text).map_err(|error| NamespaceError::Map { file, error })
}

fn missing(error: Errno, read: impl Fn(&str) -> Option<String>) -> NamespaceError {
    let shut = SWITCHES
        .iter()
        .find(|(file, value, ..)| read(file).is_some_and(|now| now.trim() == *value));
    let (what, next_step) = match (shut, error) {
        (Some((_, _, what, next_step)), _) => (*what, *next_step),
        (None, Errno::ENOSPC) => (
            "there are as many namespaces as there may be",
            "allow more with `sysctl -w user.max_user_namespaces=100000`",
        ),
        (None, _) => (
            "the kernel refuses new namespaces",
            "in a container, start it with `--security-opt seccomp=unconfined`",
        ),
    };
    NamespaceError::Missing { what, error, next_step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_switch_and_the_command_that_opens_it() {
        for (shut, value, what, command) in SWITCHES {
            let read = |file: &str| {
                Some(if file == shut { format!("{value}\n") } else { "77\n".to_owned() })
            };
            let told = missing(Errno::EPERM, read).to_string();
            assert_eq!(told, format!("{what} (EPERM: Operation not permitted): {command}"));
        }
    }

    #[test]
    fn says_something_where_no_switch_is_shut() {
        let told = missing(Errno::EPERM, |_| None).to_string();
        assert!(told.contains("--security-opt seccomp=unconfined"), "{told}");
        assert!(missing(Errno::ENOSPC, |_| None).to_string().contains("max_user_namespaces"));
    }
}
