//! Which key opens the store?
//!
//! The operator's own, from a file or a variable, or one made at first start in the state folder.
//! A store without its key is not opened with a new one: that would be the loss of everything.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_files::ReadError;
use zeroize::Zeroizing;

const BYTES: usize = 32;
/// The key as text, and room for blanks.
const LONGEST: usize = 4 << 10;

/// The key that seals every record. It can't be printed.
pub struct StoreKey(Zeroizing<[u8; BYTES]>);

/// Why there is no key. Quotes nothing of one.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is missing or can't be read.
    #[error("store key {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: ReadError,
    },
    /// Others could open the store.
    #[error("store key {path} can be read by others (mode {mode:o}): chmod 600 {path}")]
    Open {
        /// The file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// Neither base64 nor hex of 32 bytes.
    #[error("{0} is not {BYTES} bytes in base64 or hex; `openssl rand -base64 {BYTES}` makes one")]
    Form(String),
    /// The store is there, its key is not.
    #[error("{} is missing, and {} can't be read without it: restore it", key.display(), store.display())]
    Lost {
        /// Where the key should be.
        key: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// Without random bytes no key is made.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl StoreKey {
    /// Reads a key as text: 32 bytes in base64 or hex. `origin` names it in an error.
    pub fn parse(text: &str, origin: &str) -> Result<StoreKey, KeyError> {
        let text = text.trim_ascii();
        let bytes = Zeroizing::new(match text.len() {
            64 => hex(text),
            _ => STANDARD.decode(text).ok(),
        });
        let key = bytes.as_ref().and_then(|bytes| <[u8; BYTES]>::try_from(bytes.as_slice()).ok());
        key.map(|key| StoreKey(Zeroizing::new(key)))
            .ok_or_else(|| KeyError::Form(origin.to_owned()))
    }

    /// Reads a key file that is for its owner alone.
    pub fn read(path: &Path) -> Result<StoreKey, KeyError> {
        let failed = failed_at(path);
        let (file, metadata) = outgate_files::open(path).map_err(failed)?;
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.display().to_string(), mode });
        }
        let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        let text = outgate_files::contents(file, length, LONGEST).map_err(failed)?;
        let origin = path.display().to_string();
        match std::str::from_utf8(&text) {
            Ok(text) => StoreKey::parse(text, &origin),
            Err(_) => Err(KeyError::Form(origin)),
        }
    }

    /// The key file of a state folder, made if `store` is not there yet either.
    pub fn read_or_create(path: &Path, store: &Path) -> Result<StoreKey, KeyError> {
        let exists = |path: &Path| path.try_exists().map_err(failed_at(path));
        if !exists(path)? {
            if exists(store)? {
                return Err(KeyError::Lost { key: path.to_owned(), store: store.to_owned() });
            }
            create(path)?;
        }
        StoreKey::read(path)
    }

    pub(super) fn random() -> Option<StoreKey> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        rand::fill(bytes.as_mut()).ok()?;
        Some(StoreKey(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

fn failed_at<E: Into<ReadError>>(path: &Path) -> impl Fn(E) -> KeyError + Copy {
    move |error| KeyError::Io { path: path.to_owned(), error: error.into() }
}

/// The whole key or nothing; of two that start together, one writes and both read.
fn create(path: &Path) -> Result<(), KeyError> {
    let failed = failed_at(path);
    let key = StoreKey::random().ok_or(KeyError::NoRandomness)?;
    let text = Zeroizing::new(STANDARD.encode(key.bytes()));
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(path) {
        Err(late) if late.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(other) => Err(failed(other.error)),
        Ok(_) => File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed),
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    text.is_ascii().then_some(())?;
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn reads_base64_and_hex_of_32_bytes_and_nothing_else() {
        let base64 = STANDARD.encode([7; BYTES]);
        let hex = "07".repeat(BYTES);
        for text in [&base64, &hex, &format!("{base64}\n"), &hex.to_uppercase()] {
            let key = StoreKey::parse(text, "it").expect("a key");
            assert_eq!(key.bytes(), &[7; BYTES]);
        }
        for text in ["", "short", &"zz".repeat(BYTES), &STANDARD.encode([7; 31]), &"+".repeat(64)] {
            let error = StoreKey::parse(text, "it").err().expect("no key").to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn makes_a_key_for_its_owner_alone_and_never_a_second_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (key, store) = (folder.path().join("store.key"), folder.path().join("store"));
        let made = StoreKey::read_or_create(&key, &store).expect("made");
        assert_eq!(fs::metadata(&key).expect("there").mode() & 0o777, 0o600);
        let again = StoreKey::read_or_create(&key, &store).expect("read");
        assert_eq!(made.bytes(), again.bytes());
        fs::write(&store, "x").expect("written");
        fs::remove_file(&key).expect("removed");
        let lost = StoreKey::read_or_create(&key, &store);
        assert!(matches!(lost, Err(KeyError::Lost { .. })));
        assert!(!key.exists());
    }

    #[test]
    fn refuses_a_key_that_others_can_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.key");
        fs::write(&path, STANDARD.encode([7; BYTES])).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(matches!(StoreKey::read(&path), Err(KeyError::Open { mode: 0o640, .. })));
    }
}
