//! Who knows the management key?

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::{constant_time, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outgate_files::ReadError;
use zeroize::Zeroizing;

/// Bits enough that guessing is hopeless.
const KEY_BYTES: usize = 32;

/// A key of the operator's own has to be hard to guess too.
const LEAST_CHARACTERS: usize = 32;
/// And to fit into a header.
const LONGEST: usize = 16 << 10;

/// The secret that `x-goog-api-key` has to repeat. It can't be printed.
pub(crate) struct ManagementKey(Zeroizing<String>);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("management key {}: {error}", path.display())]
    Io { path: PathBuf, error: ReadError },
    #[error("management key {path} can be read by others (mode {mode:o}): chmod 600 {path}")]
    Open { path: String, mode: u32 },
    #[error("management key {} is not {LEAST_CHARACTERS} or more visible ASCII characters: delete it, and a new one is made", .0.display())]
    Weak(PathBuf),
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl ManagementKey {
    /// Reads `management.key` of the state folder, made at first start with mode 0600.
    pub(crate) fn load_or_create(state_dir: &Path) -> Result<ManagementKey, KeyError> {
        let path = state_dir.join("management.key");
        if !path.try_exists().map_err(failed_at(&path))? {
            create(&path)?;
        }
        load(&path)
    }

    /// Whether `given` is the key, in a time that tells nothing about it.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(self.0.as_bytes(), given).is_ok()
    }
}

fn load(path: &Path) -> Result<ManagementKey, KeyError> {
    let failed = failed_at(path);
    let (file, metadata) = outgate_files::open(path).map_err(failed)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Open { path: path.display().to_string(), mode });
    }
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    let text = outgate_files::contents(file, length, LONGEST).map_err(failed)?;
    let weak = || KeyError::Weak(path.to_owned());
    let key = std::str::from_utf8(&text).map_err(|_| weak())?.trim_ascii();
    if key.len() < LEAST_CHARACTERS || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(weak());
    }
    Ok(ManagementKey(Zeroizing::new(key.to_owned())))
}

fn failed_at<E: Into<ReadError>>(path: &Path) -> impl Fn(E) -> KeyError + Copy {
    move |error| KeyError::Io { path: path.to_owned(), error: error.into() }
}

/// Writes the whole key or nothing; of two gateways that start together, one writes and both read.
fn create(path: &Path) -> Result<(), KeyError> {
    let failed = failed_at(path);
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    rand::fill(bytes.as_mut()).map_err(|_| KeyError::NoRandomness)?;
    let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_ref()));
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(folder: &Path) -> String {
        fs::read_to_string(folder.join("management.key")).unwrap()
    }

    #[test]
    fn is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made = ManagementKey::load_or_create(folder.path()).unwrap();
        let first = text(folder.path());
        let mode = fs::metadata(folder.path().join("management.key")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(first.len(), 43, "32 bytes in base64url");
        assert!(made.is(first.as_bytes()));
        assert!(ManagementKey::load_or_create(folder.path()).unwrap().is(first.as_bytes()));
        assert_eq!(text(folder.path()), first);
    }

    #[test]
    fn differs_from_folder_to_folder() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = ManagementKey::load_or_create(one.path()).unwrap();
        ManagementKey::load_or_create(two.path()).unwrap();
        assert!(!key.is(text(two.path()).as_bytes()));
    }

    #[test]
    fn is_not_anything_close_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let key = ManagementKey::load_or_create(folder.path()).unwrap();
        let text = text(folder.path());
        for close in ["", &text[1..], &format!("{text}="), &text.to_lowercase()] {
            assert!(!key.is(close.as_bytes()), "{close}");
        }
    }

    #[test]
    fn refuses_a_file_that_others_can_read_or_guess() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("management.key");
        fs::write(&path, "a".repeat(40)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let load = || ManagementKey::load_or_create(folder.path()).err();
        assert!(matches!(load(), Some(KeyError::Open { mode: 0o640, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(load().is_none());
        for weak in ["", "short", "thirty-two characters but blanks in"] {
            fs::write(&path, weak).unwrap();
            assert!(matches!(load(), Some(KeyError::Weak(_))), "{weak}");
        }
    }
}
