//! Has the prober a right, or a way to one?

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{Gid, Uid, getgid, getuid, setgid, setgroups, setuid};

use super::attempt::in_child;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Capabilities, in every set; what `execve` may give; other users.
pub(super) fn any(brief: &Brief, finding: &mut Finding) {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return finding.open("/proc/self/status can't be read");
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        match field(&status, set) {
            Some(none) if none.bytes().all(|digit| digit == b'0') => {}
            Some(some) => finding.open(format_args!("{set} is {some}")),
            None => finding.open(format_args!("{set} is not told")),
        }
    }
    let no_new = field(&status, "NoNewPrivs") == Some("1");
    if !no_new {
        finding.open("no_new_privs is not set");
    }
    if let Some(path) = brief.set_id.as_ref().filter(|path| !no_new && counts(path)) {
        finding.open(format_args!("{} would run as its owner", path.display()));
    }
    if field(&status, "Seccomp") != Some("2") {
        finding.open("there is no filter on system calls");
    }
    in_child(finding, "another user can be become", becomes_another);
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let of = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    status.lines().find_map(of).map(str::trim)
}

/// Whether the set-user-ID bit of a program means something where it lies.
fn counts(program: &Path) -> bool {
    let set = fs::metadata(program).is_ok_and(|it| it.permissions().mode() & 0o4000 != 0);
    set && statvfs(program).is_ok_and(|it| !it.flags().contains(FsFlags::ST_NOSUID))
}

fn becomes_another() -> bool {
    let (user, group) = (getuid(), getgid());
    let users = [0, 1, 1000, 65534].into_iter().map(Uid::from_raw).filter(|it| *it != user);
    let groups = [0, 1, 1000, 65534].into_iter().map(Gid::from_raw).filter(|it| *it != group);
    setgroups(&[]).is_ok()
        || groups.into_iter().any(|group| setgid(group).is_ok())
        || users.into_iter().any(|user| setuid(user).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_of_the_status() {
        let status = "Name:\tx\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n";
        assert_eq!(field(status, "CapEff"), Some("0000000000000000"));
        assert_eq!(field(status, "NoNewPrivs"), Some("1"));
        assert_eq!(field(status, "Cap"), None);
    }
}
