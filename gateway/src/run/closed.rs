//! What is in force where no environment was named? Nothing is allowed.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::failure::Failure;

/// An environment file that allows nothing.
pub(super) struct Closed {
    folder: TempDir,
}

impl Closed {
    /// Writes it, and says so.
    pub(super) fn write() -> Result<Closed, Failure> {
        tracing::warn!("no environment: nothing can be reached; give --environment FILE");
        let folder = tempfile::Builder::new().prefix("outgate-").tempdir();
        let closed = Closed { folder: folder.map_err(Failure::start)? };
        fs::write(closed.path(), r#"{"network": {"allowlist": []}}"#).map_err(Failure::start)?;
        Ok(closed)
    }

    /// Where it is; its name is the environment's.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("closed.json")
    }
}
