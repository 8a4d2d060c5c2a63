//! At which places is one file visible?
//!
//! A file system may be mounted many times, whole or in part. The kernel tells of each mount which
//! device it shows, from which folder on, and where (`/proc/PID/mountinfo`, proc(5)).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open_without_links;

/// File systems in which the kernel shows itself: its processes, terminals, devices, switches.
const OF_THE_KERNEL: [&str; 16] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// All mounts that this process can reach.
pub(super) struct MountTable(Vec<Mount>);

#[derive(Debug, PartialEq)]
struct Mount {
    id: u64,
    device: Vec<u8>,
    /// The folder (or file) of the file system that it shows.
    root: PathBuf,
    /// Where it shows it.
    point: PathBuf,
    /// The kind of file system.
    kind: Vec<u8>,
}

/// One file or folder, whatever it is called.
pub(super) struct Item {
    identity: (u64, u64),
    device: Vec<u8>,
    /// From the root of its file system.
    inner: PathBuf,
}

impl MountTable {
    pub(super) fn read() -> io::Result<MountTable> {
        let text = fs::read("/proc/self/mountinfo")?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mounts = lines.map(|line| Mount::parse(line).ok_or(ErrorKind::InvalidData.into()));
        mounts.collect::<io::Result<_>>().map(MountTable)
    }

    /// What `path` names, which must have no link in it.
    pub(super) fn item(&self, path: &Path) -> io::Result<Item> {
        let file = File::from(open_without_links(path)?);
        let mount = self.mount_of(&file).ok_or(ErrorKind::InvalidData)?;
        let below = path.strip_prefix(&mount.point).map_err(|_| ErrorKind::InvalidData)?;
        Ok(Item {
            identity: identity(&file.metadata()?),
            device: mount.device.clone(),
            inner: joined(&mount.root, below),
        })
    }

    /// Every path at which it can be reached, but for those below `ignored`.
    pub(super) fn places(&self, item: &Item, ignored: &Path) -> BTreeSet<PathBuf> {
        let shown = |mount: &Mount| {
            let below = item.inner.strip_prefix(&mount.root).ok()?;
            let place = joined(&mount.point, below);
            // Another mount may lie over it, or on the way.
            let found = fs::symlink_metadata(&place).ok()?;
            (identity(&found) == item.identity).then_some(place)
        };
        let same =
            |mount: &&Mount| mount.device == item.device && !mount.point.starts_with(ignored);
        self.0.iter().filter(same).filter_map(shown).collect()
    }

    /// Where parts of a folder are shown by themselves, but for those that belong to `except`.
    pub(super) fn parts(&self, folder: &Item, except: &Item, ignored: &Path) -> Vec<PathBuf> {
        let part = |mount: &&Mount| {
            mount.device == folder.device
                && mount.root != folder.inner
                && mount.root.starts_with(&folder.inner)
                && !(mount.device == except.device && mount.root.starts_with(&except.inner))
                && !mount.point.starts_with(ignored)
        };
        self.0.iter().filter(part).map(|mount| mount.point.clone()).collect()
    }

    /// Where the kernel shows itself, but for those below one of `ignored`.
    pub(super) fn of_the_kernel(&self, ignored: &[&Path]) -> Vec<PathBuf> {
        let shows = |mount: &&Mount| {
            OF_THE_KERNEL.iter().any(|kind| kind.as_bytes() == mount.kind)
                && !ignored.iter().any(|path| mount.point.starts_with(path))
        };
        self.0.iter().filter(shows).map(|mount| mount.point.clone()).collect()
    }

    pub(super) fn is_mount_point(&self, path: &Path) -> bool {
        self.0.iter().any(|mount| mount.point == path)
    }

    /// Whether a folder of the file system that has `place` can be reached under another name too.
    pub(super) fn shows_twice(&self, place: &Path, ignored: &Path) -> bool {
        let reachable = || self.0.iter().filter(|mount| !mount.point.starts_with(ignored));
        let around = reachable()
            .filter(|mount| place.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len());
        let Some(around) = around else { return true };
        reachable().any(|mount| {
            let inside = mount.root.strip_prefix(&around.root).ok();
            mount.device == around.device
                && inside.is_some_and(|below| joined(&around.point, below) != mount.point)
        })
    }

    fn mount_of(&self, file: &File) -> Option<&Mount> {
        let known = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
        let id = known.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
        let id: u64 = id.parse().ok()?;
        self.0.iter().find(|mount| mount.id == id)
    }
}

impl Mount {
    /// `36 35 98:0 /root /point options … - kind source options`
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let device = fields.nth(1)?.to_vec();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?.to_vec();
        Some(Mount { id, device, root, point, kind })
    }
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Without the slash at the end that joining nothing would leave: a file has none.
fn joined(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let octal = digits.and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_the_kernel() {
        let line = br"36 35 98:0 /a\040b /mnt/c\134d rw,noatime master:1 - ext3 /dev/root rw";
        let mount = Mount::parse(line).unwrap();
        let (root, point) = ("/a b".into(), r"/mnt/c\d".into());
        let (device, kind) = (b"98:0".to_vec(), b"ext3".to_vec());
        assert_eq!(mount, Mount { id: 36, device, root, point, kind });
        assert_eq!(Mount::parse(b"36 35 98:0 / / rw"), None);
    }

    #[test]
    fn finds_a_file_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap().join("file");
        fs::write(&path, "").unwrap();
        let table = MountTable::read().unwrap();
        let item = table.item(&path).unwrap();
        assert!(table.places(&item, Path::new("/proc")).contains(&path));
        assert!(table.places(&item, Path::new("/")).is_empty());
    }

    #[test]
    fn knows_what_shows_a_folder_a_second_time() {
        let mount = |device: &str, root: &str, point: &str| Mount {
            id: 0,
            device: device.into(),
            root: root.into(),
            point: point.into(),
            kind: b"ext4".to_vec(),
        };
        let twice = |mounts: Vec<Mount>| {
            MountTable(mounts).shows_twice(Path::new("/home/u/x"), Path::new("/old"))
        };
        let home = || mount("8:1", "/home", "/home");
        assert!(!twice(vec![home(), mount("8:1", "/var", "/var"), mount("8:2", "/home/u", "/y")]));
        assert!(!twice(vec![home(), mount("8:1", "/home", "/old/home")]));
        assert!(!twice(vec![home(), mount("8:1", "/home/u", "/home/u")]));
        assert!(twice(vec![home(), mount("8:1", "/home/u/work", "/workspace")]));
        assert!(twice(vec![home(), mount("8:1", "/home", "/srv")]));
    }
}
