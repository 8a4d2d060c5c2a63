//! What does the kernel tell the command, and what may it be told?

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use nix::mount::MsFlags;

use super::FilesystemError;
use super::mount::{self, NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, Tree};
use super::root::on_host;

/// What belongs to the whole machine. Root's sandbox has no capability, but root owns these files,
/// and a core pattern is a program that the kernel starts outside of every sandbox.
const OF_THE_MACHINE: [&str; 6] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];

/// How many mount namespaces may be made below ours (namespaces(7)).
const MOUNT_NAMESPACES: &str = "/proc/sys/user/max_mnt_namespaces";

const QUIET: MsFlags = MsFlags::MS_NODEV.union(MsFlags::MS_NOEXEC);

/// `/proc` with the processes of this PID namespace.
pub(super) fn mount_proc() -> Result<(), FilesystemError> {
    let proc = Path::new("/proc");
    fs::create_dir(proc).map_err(FilesystemError::at("make", proc))?;
    mount::fresh("proc", proc, QUIET, "").map_err(FilesystemError::Proc)
}

/// `/sys` with the interfaces of this network namespace, and the host's control groups, from which
/// runtimes learn how much memory they have. All of it can only be read.
pub(super) fn mount_sys() -> Result<(), FilesystemError> {
    let sys = Path::new("/sys");
    let host = on_host(sys);
    fs::create_dir(sys).map_err(FilesystemError::at("make", sys))?;
    match mount::fresh("sysfs", sys, QUIET | MsFlags::MS_RDONLY, "") {
        Ok(()) => {}
        // Where parts of the host's are covered, as in a container, the kernel gives no other.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return show_read_only(&host, sys);
        }
        Err(error) => return Err(FilesystemError::at("mount", sys)(error)),
    }
    let groups = Path::new("fs/cgroup");
    match sys.join(groups).exists() && host.join(groups).exists() {
        true => show_read_only(&host.join(groups), &sys.join(groups)),
        false => Ok(()),
    }
}

/// From here on nobody inside makes a mount namespace.
///
/// In one of its own, below a user namespace of its own, a process without any right in ours
/// could show a folder a second time and then move a hidden file's folder into it: what hides a
/// file hangs on the mount, not on the file (mount_namespaces(7)).
pub(super) fn forbid_mount_namespaces() -> Result<(), FilesystemError> {
    let limit = Path::new(MOUNT_NAMESPACES);
    let failed = || FilesystemError::at("write", limit);
    let mut file = OpenOptions::new().write(true).open(limit).map_err(failed())?;
    for path in OF_THE_MACHINE.map(Path::new) {
        if path.exists() {
            show_read_only(path, path)?;
        }
    }
    // Last: a copy that is attached nowhere yet counts as a namespace too.
    file.write_all(b"0").map_err(failed())
}

fn show_read_only(from: &Path, to: &Path) -> Result<(), FilesystemError> {
    let attributes = READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS;
    Tree::copy(from)
        .and_then(|tree| tree.restrict(attributes)?.attach(to))
        .map_err(FilesystemError::at("show read-only", to))
}
