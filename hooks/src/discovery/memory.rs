//! What do processes that handle one event each know of those before them? The last good texts.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One file's last good text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Remembered {
    /// There was none when hooks were pinned.
    Absent,
    /// Something that is not read when hooks were pinned, and why.
    Refused(String),
    /// This one.
    Text(String),
}

/// The last good texts by the names of their files.
#[derive(Debug, Default)]
pub(super) struct Memory {
    path: Option<PathBuf>,
    texts: BTreeMap<String, Remembered>,
    changed: bool,
}

impl Memory {
    /// What is remembered there. What can't be read is not relied on, and said.
    pub(super) fn read(path: Option<PathBuf>) -> Memory {
        let read = |path: &Path| -> io::Result<BTreeMap<String, Remembered>> {
            match fs::read(path) {
                Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
                Err(error) => Err(error),
            }
        };
        let texts = path.as_deref().map_or_else(|| Ok(BTreeMap::new()), read);
        let texts = texts.unwrap_or_else(|error| {
            tracing::warn!("earlier hooks can't be remembered: {error}");
            BTreeMap::new()
        });
        Memory { path, texts, changed: false }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Remembered> {
        self.texts.get(name)
    }

    pub(super) fn set(&mut self, name: String, text: Remembered) {
        self.changed |= self.texts.get(&name) != Some(&text);
        self.texts.insert(name, text);
    }

    /// Writes it down, if something is new.
    pub(super) fn write(&mut self) {
        if let Some(path) = &self.path
            && std::mem::take(&mut self.changed)
            && let Err(error) = replace(path, &self.texts)
        {
            tracing::warn!("the hooks can't be remembered in {}: {error}", path.display());
        }
    }
}

/// The new content or the old, whenever it is read.
fn replace(path: &Path, texts: &BTreeMap<String, Remembered>) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(&serde_json::to_vec(texts)?)?;
            file.sync_all()
        });
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // Only litter is left if this fails too.
        let _ = fs::remove_file(&beside);
    })
}
