//! Which devices does the command have?
//!
//! Those that every program counts on, its own terminals, and the ones that compute. Not the
//! host's: a disk that the user may read has every hidden file on it, and the user's other
//! terminals could be written to and read from.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;

use nix::mount::MsFlags;

use super::FilesystemError;
use super::mount::{self, NO_SUID, READ_ONLY, Tree};
use super::root::on_host;

/// Character devices of the host, where it has them: the usual ones, then processors of graphics
/// cards and virtual machines.
const DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "tty", "kvm", "kfd", "dxg", "dri"];

/// There is one for each card, and some beside.
const NVIDIA: &str = "nvidia";

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Makes `/dev`.
pub(super) fn make() -> Result<(), FilesystemError> {
    let dev = Path::new("/dev");
    let made = || -> io::Result<()> {
        mount::new_memory(dev, 0o755)?;
        for entry in fs::read_dir(on_host(dev))? {
            let name = entry?.file_name();
            let known = DEVICES.iter().any(|device| name == *device);
            if known || name.to_string_lossy().starts_with(NVIDIA) {
                bring_in(&on_host(dev).join(&name), &dev.join(&name))?;
            }
        }
        for (name, target) in LINKS {
            symlink(target, dev.join(name))?;
        }
        terminals(&dev.join("pts"))?;
        mount::new_memory(&dev.join("shm"), 0o1777)?;
        message_queues(&dev.join("mqueue"))?;
        mount::restrict(dev, READ_ONLY | NO_SUID)
    };
    made().map_err(FilesystemError::at("make", dev))
}

fn bring_in(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else if kind.is_char_device() {
        File::create_new(to)?;
    } else {
        return Ok(());
    }
    Tree::copy(from)?.restrict(NO_SUID)?.attach(to)
}

/// An instance of its own (devpts(5)): the host's terminals have no name in it. The one that the
/// command was started on stays open.
fn terminals(pts: &Path) -> io::Result<()> {
    fs::create_dir(pts)?;
    let flags = MsFlags::MS_NOEXEC;
    mount::fresh("devpts", pts, flags, "newinstance,ptmxmode=0666,mode=0620")
}

/// Those of the IPC namespace, where the kernel has any (mq_overview(7)).
fn message_queues(folder: &Path) -> io::Result<()> {
    if !on_host(folder).exists() {
        return Ok(());
    }
    fs::create_dir(folder)?;
    mount::fresh("mqueue", folder, MsFlags::MS_NODEV | MsFlags::MS_NOEXEC, "")
}
