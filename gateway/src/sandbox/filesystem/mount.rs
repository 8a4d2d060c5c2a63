//! How is a piece of the file system put in another place, with less than it could do before?
//!
//! Over the calls of Linux 5.2 and 5.12 (`open_tree`, `move_mount`, `mount_setattr`): a copy gets
//! its flags before anyone can reach it, and no link is followed at its ends.

use std::ffi::{CString, c_int, c_long, c_uint};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

/// Applies to everything below.
const AT_RECURSIVE: c_uint = 0x8000;

/// Programs there don't gain rights.
pub(super) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// Device nodes there can't be opened.
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
/// Nothing there is executed.
pub(super) const NO_PROGRAMS: u64 = libc::MOUNT_ATTR_NOEXEC;
/// Nothing there changes.
pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// A copy of a piece of the file system, attached nowhere yet.
pub(super) struct Tree(OwnedFd);

impl Tree {
    /// Of `path` and everything mounted below it. A link at its end is not followed.
    pub(super) fn copy(path: &Path) -> io::Result<Tree> {
        Tree::open(libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW)
    }

    /// Of an open file or folder and everything mounted below it.
    pub(super) fn of(file: &OwnedFd) -> io::Result<Tree> {
        Tree::open(file.as_raw_fd(), Path::new(""), libc::AT_EMPTY_PATH)
    }

    fn open(folder: RawFd, path: &Path, flags: c_int) -> io::Result<Tree> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = libc::OPEN_TREE_CLONE
            | AT_RECURSIVE
            | libc::O_CLOEXEC as c_uint
            | flags.cast_unsigned();
        #[expect(unsafe_code, reason = "there is no safe wrapper of open_tree(2)")]
        // SAFETY: `path` is a string that ends with a NUL, and outlives the call.
        let file = unsafe { libc::syscall(libc::SYS_open_tree, folder, path.as_ptr(), flags) };
        let file = RawFd::try_from(checked(file)?).expect("a descriptor is an int");
        #[expect(unsafe_code, reason = "a descriptor from the kernel becomes an owned one")]
        // SAFETY: the call has just made it, and nothing else knows it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        Ok(Tree(file))
    }

    /// Takes abilities away, from all of it.
    pub(super) fn restrict(self, attributes: u64) -> io::Result<Tree> {
        restrict_all(&self.0, attributes)?;
        Ok(self)
    }

    /// Puts it over what is at `target`, which must be a folder for a folder and a file for a file.
    pub(super) fn attach(self, target: &Path) -> io::Result<()> {
        let target = CString::new(target.as_os_str().as_bytes())?;
        let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
        #[expect(unsafe_code, reason = "there is no safe wrapper of move_mount(2)")]
        // SAFETY: both strings end with a NUL and outlive the call; the descriptor is ours.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.0.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                target.as_ptr(),
                flags,
            )
        };
        checked(moved).map(drop)
    }
}

/// Takes abilities away from what is mounted at `path`, and from nothing below it.
pub(super) fn restrict(path: &Path, attributes: u64) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, path, attributes, 0)
}

/// Takes abilities away from the mount that an open file or folder belongs to, and from all below.
pub(super) fn restrict_all(file: &OwnedFd, attributes: u64) -> io::Result<()> {
    set_attributes(file.as_raw_fd(), Path::new(""), attributes, AT_RECURSIVE)
}

/// Makes an open file or folder a mount of its own, where it is. Takes no [`Tree`].
pub(super) fn on_itself(file: &OwnedFd) -> io::Result<()> {
    let place = by_descriptor(file);
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(&place), &place, None::<&str>, flags, None::<&str>)?)
}

/// A path that leads to an open file or folder, whatever its name is by now.
pub(super) fn by_descriptor(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Mounts a new file system that belongs to the namespaces of this process.
pub(super) fn fresh(kind: &str, target: &Path, flags: MsFlags, options: &str) -> io::Result<()> {
    let flags = flags | MsFlags::MS_NOSUID;
    Ok(mount(Some(kind), target, Some(kind), flags, Some(options))?)
}

/// A new empty folder in memory, over the one at `target`.
pub(super) fn memory(target: &Path, mode: u32) -> io::Result<()> {
    fresh("tmpfs", target, MsFlags::MS_NODEV, &format!("mode={mode:o}"))
}

/// The same, where there is no folder yet.
pub(super) fn new_memory(target: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir(target)?;
    memory(target, mode)
}

fn set_attributes(folder: RawFd, path: &Path, attributes: u64, flags: c_uint) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let change =
        libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    #[expect(unsafe_code, reason = "there is no safe wrapper of mount_setattr(2)")]
    // SAFETY: the string ends with a NUL, the structure has the size given, both outlive the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags | libc::AT_EMPTY_PATH as c_uint,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(set).map(drop)
}

fn checked(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
