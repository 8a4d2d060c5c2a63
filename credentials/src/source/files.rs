//! By which name is the file of a value read, and is it still what it was?

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use outgate_files::ReadError;
use tokio::time::timeout;

use super::{DEADLINE, Reading, SourceError};
use crate::secret::{Fit, MAX_BYTES, Secret, SecretError};

/// By which name a file is read for a value, or why it is not. Without a word from who runs commands
/// that could write there, each by its own.
#[derive(Default)]
pub(crate) struct Files(OnceLock<Box<NameFor>>);

/// Gives the name without links by which the file of this name may be read now, or why it may not.
pub(crate) type NameFor = dyn Fn(&Path) -> Result<PathBuf, String> + Send + Sync;

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Files {
    /// Settles it once; the first word stays.
    pub(crate) fn settle(&self, name_for: Box<NameFor>) {
        if self.0.set(name_for).is_err() {
            tracing::error!("how files of values are read was settled twice");
        }
    }

    /// Whether there is a file to be read, and why not.
    pub(super) fn glance(&self, path: &Path) -> Result<(), SourceError> {
        let opened = outgate_files::open(&self.name_for(path)?);
        opened.map(drop).map_err(|error| failed(path, &error))
    }

    fn name_for(&self, path: &Path) -> Result<PathBuf, SourceError> {
        let name = self.0.get().map_or_else(|| Ok(path.to_owned()), |name_for| name_for(path));
        name.map_err(|why| SourceError::File { path: path.to_owned(), why })
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What is in the file now, and which state of it that is. It may be what was read `before`.
pub(super) async fn read_file(
    files: Arc<Files>,
    path: PathBuf,
    fit: Fit,
    before: Option<Arc<Reading>>,
) -> (Option<Stamp>, Result<Secret, SourceError>) {
    // A file system that hangs must not hold up the thread that serves connections.
    let reading = tokio::task::spawn_blocking(move || {
        let path = files.name_for(&path)?;
        let now = fs::metadata(&path).map(|found| Stamp::of(&found)).ok();
        match before {
            Some(before) if now.is_some() && before.stamp == now => {
                before.outcome.clone().map(|secret| (now, secret))
            }
            _ => contents(&path, fit).map(|(stamp, secret)| (Some(stamp), secret)),
        }
    });
    match timeout(DEADLINE, reading).await {
        Ok(Ok(Ok((stamp, secret)))) => (stamp, Ok(secret)),
        Ok(Ok(Err(error))) => (None, Err(error)),
        Ok(Err(_)) | Err(_) => (None, Err(SourceError::Late)),
    }
}

/// What is in a file, and which state of it that is.
fn contents(path: &Path, fit: Fit) -> Result<(Stamp, Secret), SourceError> {
    let (file, metadata) = outgate_files::open(path).map_err(|error| failed(path, &error))?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    // The longest value with the line end that is not part of it.
    let bytes = outgate_files::contents(file, length, MAX_BYTES + 2);
    let bytes = bytes.map_err(|error| failed(path, &error))?;
    Ok((Stamp::of(&metadata), Secret::of_bytes(bytes, fit)?))
}

fn failed(path: &Path, error: &ReadError) -> SourceError {
    match error {
        ReadError::Large(_) => SecretError::Long.into(),
        other => SourceError::File { path: path.to_owned(), why: other.to_string() },
    }
}
