//! How is a file read that someone hostile may have put there? Below its root, through no link,
//! only if it is a regular file of at most 1 MiB, and without waiting for it.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use super::{Folder, Owner, Root};
use crate::compile::MAX_FILE_BYTES;

/// Within each folder that is looked at.
const FILE: &str = ".agents/hooks.json";

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// Where one file may be.
#[derive(Debug)]
pub(super) enum Place {
    /// Named by the operator, who may use links.
    Operator(PathBuf),
    /// In a folder of a sandbox.
    Sandbox(Folder),
}

/// What was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// A text.
    Text(String),
    /// Something that is not read, and why. Quotes nothing of it.
    Refused(String),
}

impl Place {
    /// For a person. Sandbox files are named as inside.
    pub(super) fn name(&self) -> String {
        match self {
            Place::Operator(path) => path.display().to_string().escape_debug().to_string(),
            Place::Sandbox(folder) => format!("{}/{FILE}", folder.inside.escape_debug()),
        }
    }

    /// Who writes it.
    pub(super) fn owner(&self) -> Owner {
        match self {
            Place::Operator(_) => Owner::Operator,
            Place::Sandbox(_) => Owner::Sandbox,
        }
    }

    pub(super) fn read(&self) -> Found {
        for _ in 0..TRIES {
            match self.open().map_err(refusal).and_then(read_regular) {
                Ok(Some(text)) => return Found::Text(text),
                Ok(None) => {}
                Err(found) => return found,
            }
        }
        Found::Refused("it changes while it is read".to_owned())
    }

    /// Non-blocking: a FIFO without a writer would be waited for.
    fn open(&self) -> nix::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let opened = match self {
            Place::Operator(path) => open(path, flags, Mode::empty()),
            Place::Sandbox(folder) => {
                let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
                let how = OpenHow::new().flags(flags).resolve(resolve);
                let path = folder.below.join(FILE);
                match &folder.root {
                    Root::Open(root) => openat2(root.as_fd(), &path, how),
                    Root::At(root) => openat2(open_folder(root)?.as_fd(), &path, how),
                }
            }
        };
        opened.map(File::from)
    }
}

/// Opens a folder to look below it.
pub(super) fn open_folder(path: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat2(AT_FDCWD, path, OpenHow::new().flags(flags))
}

/// `None` if it changed meanwhile.
fn read_regular(mut file: File) -> Result<Option<String>, Found> {
    let refused = |error: io::Error| Found::Refused(error.to_string());
    let before = file.metadata().map_err(refused)?;
    if !before.is_file() {
        return Err(Found::Refused("not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let most = MAX_FILE_BYTES as u64 + 1;
    file.by_ref().take(most).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Found::Refused(format!("larger than {MAX_FILE_BYTES} bytes")));
    }
    let after = file.metadata().map_err(refused)?;
    if stamp(&before) != stamp(&after) || after.size() != bytes.len() as u64 {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| Found::Refused("not UTF-8".to_owned()))
}

fn stamp(metadata: &Metadata) -> (u64, i64, i64, i64, i64) {
    let (changed, modified) = (metadata.ctime_nsec(), metadata.mtime_nsec());
    (metadata.size(), metadata.ctime(), changed, metadata.mtime(), modified)
}

fn refusal(error: Errno) -> Found {
    match error {
        Errno::ENOENT | Errno::ENOTDIR => Found::Absent,
        Errno::ELOOP => Found::Refused("a symbolic link is on the way to it".to_owned()),
        Errno::EXDEV => Found::Refused("it lies outside the sandbox's root".to_owned()),
        other => Found::Refused(format!("can't be opened: {}", other.desc())),
    }
}
