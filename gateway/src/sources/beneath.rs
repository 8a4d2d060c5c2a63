//! How is a file written below a folder that somebody else may have arranged?
//!
//! Every step is resolved by the kernel beneath the folder before it, without a link (openat2(2)):
//! there is no moment between a look and a use.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// No name of a source: those come from a file that says what they are.
const UNFINISHED: &str = ".outgate-unfinished";

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

/// A file that has no name of its own yet; dropped before it has, it is gone.
pub(super) struct Unfinished<'a> {
    folder: &'a Folder,
    file: File,
}

impl Folder {
    /// The one that everything goes below.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        Ok(Folder(openat(AT_FDCWD, path, flags, Mode::empty())?))
    }

    /// The folder at the end of these names, each made where it is missing.
    pub(super) fn make<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> io::Result<Folder> {
        let same = Folder(self.0.try_clone()?);
        names.into_iter().try_fold(same, |folder, name| folder.step(name))
    }

    pub(super) fn is_empty(&self) -> io::Result<bool> {
        // The open folder itself, wherever it is by now.
        let folder = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(fs::read_dir(folder)?.next().is_none())
    }

    /// A file of this name with this content, in the place of whatever file, link or pipe has it.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut unfinished = self.begin()?;
        unfinished.write(content)?;
        unfinished.place(name)
    }

    /// An empty file, to be written piece by piece; one at a time in a folder.
    pub(super) fn begin(&self) -> io::Result<Unfinished<'_>> {
        match unlinkat(&self.0, UNFINISHED, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Unfinished { folder: self, file: self.create(UNFINISHED)? })
    }

    /// Gives what has this name to another folder, in the place of an empty folder at most.
    pub(super) fn hand_over(&self, name: &str, to: &Folder) -> io::Result<()> {
        Ok(renameat(&self.0, name, &to.0, name)?)
    }

    fn step(self, name: &str) -> io::Result<Folder> {
        match mkdirat(&self.0, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        match openat2(&self.0, name, beneath().flags(flags)) {
            Ok(folder) => Ok(Folder(folder)),
            Err(Errno::ELOOP) => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("{name} is a link; remove it, or use another target"),
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let how = beneath().flags(flags).mode(Mode::from_bits_truncate(0o644));
        Ok(openat2(&self.0, name, how)?.into())
    }
}

impl Unfinished<'_> {
    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    /// Puts it in the place of whatever file, link or pipe has this name.
    pub(super) fn place(self, name: &str) -> io::Result<()> {
        let folder = &self.folder.0;
        Ok(renameat(folder, UNFINISHED, folder, name)?)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Under its own name it is not found here; what else is wrong is said already.
        let _ = unlinkat(&self.folder.0, UNFINISHED, UnlinkatFlags::NoRemoveDir);
    }
}

fn beneath() -> OpenHow {
    OpenHow::new().resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS)
}
