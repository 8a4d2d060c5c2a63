//! How do the two files of the CA get onto the disk together, or not at all?
//!
//! Two files can't be renamed as one, so they are written under other names first and the rename
//! of the key is the moment that counts:
//!
//! 1. `.ca.key.new`, then `.ca.pem.new`, each flushed, then the folder
//! 2. rename `.ca.key.new` to `ca.key`, flush the folder: from here on the new pair is the CA
//! 3. rename `.ca.pem.new` to `ca.pem`, flush the folder
//!
//! A writer that died leaves `.ca.key.new` (before the moment: both are thrown away) or
//! `.ca.pem.new` alone (after it: step 3 is done for it). Writers take turns by a lock on
//! `.ca.lock`; readers need none as long as what they see fits together.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::{CertsError, pem};

const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
const NEW_CERTIFICATE: &str = ".ca.pem.new";
const NEW_KEY: &str = ".ca.key.new";
const LOCK: &str = ".ca.lock";

/// The contents of both files.
pub(crate) struct Pair {
    pub(crate) certificate: Zeroizing<Vec<u8>>,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

/// Where the CA lies in a state folder.
pub(crate) struct Store {
    folder: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    new_certificate: PathBuf,
    new_key: PathBuf,
}

/// The right to write: one holder per folder at a time, and what a dead writer left is cleared up.
pub(crate) struct Writer<'a> {
    store: &'a Store,
    /// The lock lasts as long as this file is open.
    _lock: File,
}

impl Store {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            certificate: folder.join(CERTIFICATE),
            key: folder.join(KEY),
            new_certificate: folder.join(NEW_CERTIFICATE),
            new_key: folder.join(NEW_KEY),
        }
    }

    /// Whether no writer is at work and none died here.
    pub(crate) fn is_settled(&self) -> Result<bool, CertsError> {
        Ok(!exists(&self.new_key)? && !exists(&self.new_certificate)?)
    }

    /// Both files, `None` where there is neither, an error where there is one.
    pub(crate) fn read(&self) -> Result<Option<Pair>, CertsError> {
        let half = |present: &Path, missing: &Path| CertsError::HalfPair {
            present: present.to_owned(),
            missing: missing.to_owned(),
        };
        match (exists(&self.certificate)?, exists(&self.key)?) {
            (false, false) => return Ok(None),
            (true, false) => return Err(half(&self.certificate, &self.key)),
            (false, true) => return Err(half(&self.key, &self.certificate)),
            (true, true) => {}
        }
        let certificate = pem::read(&self.certificate)?;
        let key = read_guarded_key(&self.key)?;
        Ok(Some(Pair { certificate, key }))
    }

    /// Waits for its turn, then finishes or undoes what a dead writer began.
    ///
    /// The folder is made, 0700, if it isn't there. A holder needs a few flushes of the disk, so
    /// the wait has no deadline of its own.
    pub(crate) fn write_access(&self) -> Result<Writer<'_>, CertsError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(CertsError::io("make the folder", &self.folder))?;
        let path = self.folder.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(CertsError::io("open", &path))?;
        lock.lock().map_err(CertsError::io("lock", &path))?;
        self.settle()?;
        Ok(Writer { store: self, _lock: lock })
    }

    fn settle(&self) -> Result<(), CertsError> {
        if exists(&self.new_certificate)? && !exists(&self.new_key)? {
            return self.put_in_place(&self.new_certificate, &self.certificate);
        }
        // The certificate first: alone it would look like a pair that was decided on.
        remove(&self.new_certificate)?;
        self.flush_folder()?;
        remove(&self.new_key)
    }

    fn put_in_place(&self, from: &Path, to: &Path) -> Result<(), CertsError> {
        fs::rename(from, to).map_err(CertsError::io("write", to))?;
        self.flush_folder()
    }

    fn flush_folder(&self) -> Result<(), CertsError> {
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(CertsError::io("flush", &self.folder))
    }
}

impl Writer<'_> {
    /// Both files, as no other writer can change them now.
    pub(crate) fn read(&self) -> Result<Option<Pair>, CertsError> {
        self.store.read()
    }

    /// Puts a new pair in the place of whatever was there.
    pub(crate) fn write(&self, certificate: &str, key: &str) -> Result<(), CertsError> {
        let store = self.store;
        create(&store.new_key, key.as_bytes(), 0o600)?;
        create(&store.new_certificate, certificate.as_bytes(), 0o644)?;
        store.flush_folder()?;
        store.put_in_place(&store.new_key, &store.key)?;
        store.put_in_place(&store.new_certificate, &store.certificate)
    }
}

/// A key file's bytes, unless every user of the machine could have them too.
///
/// Group access is the operator's business (`ssl-cert` on Debian, `fsGroup` in Kubernetes).
pub(crate) fn read_guarded_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, CertsError> {
    let metadata = fs::metadata(path).map_err(CertsError::io("open", path))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        return Err(CertsError::KeyExposed { path: path.to_owned(), mode });
    }
    pem::read(path)
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CertsError> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        // The umask may have taken bits away that readers of the certificate need.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(CertsError::io("write", path))
}

/// Whether there is anything of this name, a dangling link included.
fn exists(path: &Path) -> Result<bool, CertsError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CertsError::io("look at", path)(error)),
    }
}

fn remove(path: &Path) -> Result<(), CertsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(CertsError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
