//! Where is what was brought for an environment, and what of it is there already?
//!
//! ```text
//! STATE/environments/ID/root           for the sandbox, which may write into it
//!                       sources.json   what was brought there; a sandbox can't reach it
//!                       unfinished     a clone under way
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use outgate_policy::{EnvironmentId, Source, Target};

use crate::state_dir::ENVIRONMENTS;

const ROOT: &str = "root";
const RECORD: &str = "sources.json";
const UNFINISHED: &str = "unfinished";

/// The folder of one environment.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// Targets, and of what was brought there, the fingerprint.
    brought: BTreeMap<String, String>,
}

/// Why there is no folder for sources.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub(super) struct StoreError {
    path: PathBuf,
    error: io::Error,
}

impl Store {
    /// Makes what is missing of it.
    pub(super) fn open(state_dir: &Path, id: &EnvironmentId) -> Result<Store, StoreError> {
        let folder = state_dir.join(ENVIRONMENTS).join(id.to_string());
        let failed = |path: PathBuf| move |error| StoreError { path, error };
        let mut make = DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(folder.join(ROOT)).map_err(failed(folder.join(ROOT)))?;
        let record = folder.join(RECORD);
        let brought = match fs::read(&record) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| failed(record)(io::Error::new(ErrorKind::InvalidData, error)))?,
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(record)(error)),
        };
        let store = Store { folder, brought };
        store.clear().map_err(failed(store.unfinished()))?;
        Ok(store)
    }

    /// What appears at the sandbox's `/`.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.join(ROOT)
    }

    /// Whether exactly this was brought.
    pub(super) fn has(&self, source: &Source) -> bool {
        self.brought.get(&source.target().to_string()) == Some(&fingerprint(source))
    }

    /// Whether anything was brought to this place.
    pub(super) fn knows(&self, target: &Target) -> bool {
        self.brought.contains_key(&target.to_string())
    }

    /// Notes that this is there now.
    pub(super) fn note(&mut self, source: &Source) -> Result<(), StoreError> {
        self.brought.insert(source.target().to_string(), fingerprint(source));
        let (path, new) = (self.folder.join(RECORD), self.folder.join("sources.json.new"));
        let text = serde_json::to_vec(&self.brought).expect("texts only");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        });
        written.map_err(|error| StoreError { path, error })
    }

    /// An empty folder for what is under way.
    pub(super) fn begin(&self) -> io::Result<PathBuf> {
        self.clear()?;
        DirBuilder::new().mode(0o700).create(self.unfinished())?;
        Ok(self.unfinished())
    }

    /// Removes what is unfinished.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.unfinished()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn unfinished(&self) -> PathBuf {
        self.folder.join(UNFINISHED)
    }
}

/// Tells any two sources apart that bring different things; says nothing of what they bring.
fn fingerprint(source: &Source) -> String {
    let parts: [&[u8]; 3] = match source {
        Source::Inline { content, .. } => [b"inline", content, b""],
        Source::Repository { url, .. } => [b"repository", url.as_bytes(), b""],
        Source::Gcs { bucket, prefix, .. } => [b"gcs", bucket.as_bytes(), prefix.as_bytes()],
    };
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&part.len().to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn id() -> EnvironmentId {
        EnvironmentId::parse("one").unwrap()
    }

    fn source(text: &str, content: &str) -> Source {
        let target = Target::parse(text).unwrap();
        Source::Inline { target, content: content.into(), read_only: false }
    }

    #[test]
    fn is_for_its_owner_alone() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path(), &id()).unwrap();
        for folder in ["environments", "environments/one", "environments/one/root"] {
            let mode = fs::metadata(state.path().join(folder)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{folder}");
        }
        assert_eq!(store.root(), state.path().join("environments/one/root"));
    }

    #[test]
    fn remembers_over_a_restart_what_was_brought_and_not_what_it_was() {
        let state = tempfile::tempdir().unwrap();
        let mut store = Store::open(state.path(), &id()).unwrap();
        let first = source("w/a", "hunter2");
        assert!(!store.has(&first) && !store.knows(first.target()));
        store.note(&first).unwrap();
        let again = Store::open(state.path(), &id()).unwrap();
        assert!(again.has(&first));
        for other in [source("w/a", "hunter3"), source("w/b", "hunter2")] {
            assert!(!again.has(&other), "{other:?}");
        }
        assert!(again.knows(first.target()));
        let record = fs::read_to_string(state.path().join("environments/one/sources.json"));
        assert!(!record.unwrap().contains("hunter2"));
    }

    #[test]
    fn tells_kinds_and_halves_apart() {
        let gcs = |bucket: &str, prefix: &str| Source::Gcs {
            target: Target::parse("w").unwrap(),
            bucket: bucket.into(),
            prefix: prefix.into(),
            read_only: false,
        };
        assert_ne!(fingerprint(&gcs("ab", "c")), fingerprint(&gcs("a", "bc")));
        assert_ne!(fingerprint(&gcs("ab", "")), fingerprint(&source("w", "ab")));
    }

    #[test]
    fn nothing_unfinished_outlives_a_restart() {
        let state = tempfile::tempdir().unwrap();
        let unfinished = Store::open(state.path(), &id()).unwrap().begin().unwrap();
        fs::write(unfinished.join("half"), "x").unwrap();
        Store::open(state.path(), &id()).unwrap();
        assert!(!unfinished.exists());
    }

    #[test]
    fn a_record_that_makes_no_sense_is_told_of() {
        let state = tempfile::tempdir().unwrap();
        drop(Store::open(state.path(), &id()).unwrap());
        fs::write(state.path().join("environments/one/sources.json"), "{").unwrap();
        let told = Store::open(state.path(), &id()).unwrap_err().to_string();
        assert!(told.contains("sources.json"), "{told}");
    }
}
