//! What does the command see of the host's files?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The root that is made for a sandbox.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct FilesystemPlan {}

/// Why there is no root for the sandbox.
#[derive(Debug, Error)]
pub(crate) enum FilesystemError {
    #[error("{path}: {error}")]
    Mount { path: PathBuf, error: io::Error },
}

/// Makes it, in the namespaces that PID 1 is in.
pub(super) fn build(_plan: &FilesystemPlan) -> Result<(), FilesystemError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        .map_err(|error| failed(Path::new("/proc"), error))
}

/// Takes away the right to write below `path`.
pub(super) fn make_read_only(path: &Path) -> Result<(), FilesystemError> {
    let path = fs::canonicalize(path)
        .map_err(|error| FilesystemError::Mount { path: path.to_owned(), error })?;
    let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(&path), &path, None::<&str>, bind, None::<&str>)
        .and_then(|()| {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            mount(None::<&str>, &path, None::<&str>, flags, None::<&str>)
        })
        .map_err(|error| failed(&path, error))
}

fn failed(path: &Path, error: Errno) -> FilesystemError {
    FilesystemError::Mount { path: path.to_owned(), error: error.into() }
}
