//! How is the store one file on this machine?
//!
//! redb keeps it: a change is whole and on the disk when its call returns, or it never was. What a
//! record says is sealed before redb sees it; ids and versions are not. A file that can't be read
//! whole, or not with this key, is an error at the start: an empty store in its place would look
//! like one whose credentials were all deleted.

mod fault;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{
    Builder, ConcurrencyMode, Database, ReadableDatabase, ReadableTable, StorageBackend,
    TableDefinition, WriteTransaction,
};
use tokio::sync::watch;

use self::fault::{io_error, refused, unreadable};
use super::seal::{Name, Sealer};
use super::{Collection, CredentialStore, Expected, Record, StoreError, StoreKey, Version, all};

/// Collection and id, to version and sealed value.
const RECORDS: TableDefinition<'_, (u8, &str), (u64, &[u8])> = TableDefinition::new("records");
/// The newest version, and what tells whether the key is the right one.
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const VERSION: &str = "version";
const CHECK: &str = "check";
/// No collection has it.
const CHECK_NAME: Name<'_> = Name { collection: 0, id: CHECK, version: 0 };
/// redb takes 1 GiB if nothing is said; all records together are far below this.
const CACHE_BYTES: usize = 2 << 20;

/// The store in one sealed file.
pub struct LocalStore {
    database: Database,
    sealer: Sealer,
    path: PathBuf,
    newest: watch::Sender<Version>,
}

impl LocalStore {
    /// Opens the file at `path`, made if it isn't there. Everything in it is read once, so that
    /// damage is found now.
    pub fn open(path: &Path, key: &StoreKey) -> Result<LocalStore, StoreError> {
        let exists = path.try_exists().map_err(|error| io_error(path, &error))?;
        if !exists && let Some(store) = LocalStore::create(path, key)? {
            return Ok(store);
        }
        let database = shared_builder().open(path).map_err(|error| refused(path, error))?;
        LocalStore::check(database, path, key)
    }

    /// A store that is gone with the process, sealed with a key that nobody has.
    pub fn in_memory() -> Result<LocalStore, StoreError> {
        let key = StoreKey::random().ok_or(StoreError::NoRandomness)?;
        LocalStore::over(&builder(), InMemoryBackend::new(), Path::new("memory"), &key)
    }

    /// Made under another name first: a file of the right name is a whole one. `None` if another
    /// process was faster.
    fn create(path: &Path, key: &StoreKey) -> Result<Option<LocalStore>, StoreError> {
        let failed = |error: io::Error| io_error(path, &error);
        let folder = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let backend = FileBackend::new(file.reopen().map_err(failed)?);
        let backend = backend.map_err(|error| refused(path, error))?;
        let store = LocalStore::over(&shared_builder(), backend, path, key)?;
        match file.persist_noclobber(path) {
            Err(late) if late.error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(other) => return Err(failed(other.error)),
            Ok(_) => {}
        }
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(Some(store))
    }

    /// Makes or opens the store that `backend` holds.
    fn over(
        builder: &Builder,
        backend: impl StorageBackend,
        path: &Path,
        key: &StoreKey,
    ) -> Result<LocalStore, StoreError> {
        let database =
            builder.create_with_backend(backend).map_err(|error| refused(path, error))?;
        let sealer = Sealer::new(key);
        let failed = |error: redb::Error| unreadable(path, error);
        let transaction = database.begin_write().map_err(|error| failed(error.into()))?;
        {
            let mut state = transaction.open_table(STATE).map_err(|error| failed(error.into()))?;
            transaction.open_table(RECORDS).map_err(|error| failed(error.into()))?;
            let fresh = state.get(CHECK).map_err(|error| failed(error.into()))?.is_none();
            if fresh {
                let check = sealer.seal(CHECK_NAME, b"").ok_or(StoreError::NoRandomness)?;
                state.insert(CHECK, check.as_slice()).map_err(|error| failed(error.into()))?;
            }
        }
        transaction.commit().map_err(|error| failed(error.into()))?;
        LocalStore::check(database, path, key)
    }

    fn check(database: Database, path: &Path, key: &StoreKey) -> Result<LocalStore, StoreError> {
        let store = LocalStore {
            database,
            sealer: Sealer::new(key),
            path: path.to_owned(),
            newest: watch::Sender::new(0),
        };
        let (version, check) = store.read_state().map_err(|error| unreadable(path, error))?;
        let opened = check.and_then(|check| store.sealer.open(CHECK_NAME, &check).ok());
        if opened.is_none() {
            return Err(store.damaged("this key does not open it"));
        }
        for collection in [
            Collection::Credentials,
            Collection::RefreshTokens,
            Collection::Placeholders,
            Collection::Environments,
        ] {
            all(&store, collection)?;
        }
        store.newest.send_replace(version);
        Ok(store)
    }

    fn read_state(&self) -> Result<(Version, Option<Vec<u8>>), redb::Error> {
        let transaction = self.database.begin_read()?;
        let state = transaction.open_table(STATE)?;
        let version = state.get(VERSION)?.map_or(Ok(0), |bytes| number(bytes.value()))?;
        Ok((version, state.get(CHECK)?.map(|bytes| bytes.value().to_vec())))
    }

    fn open_record(&self, name: Name<'_>, sealed: &[u8]) -> Result<Record, StoreError> {
        match self.sealer.open(name, sealed) {
            Ok(value) => Ok(Record { version: name.version, value }),
            Err(_) => Err(self.damaged(&format!("the record {} was changed", name.id))),
        }
    }

    fn damaged(&self, why: &str) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), why: why.to_owned() }
    }

    /// Changes one record: `None` removes it. The record's own version becomes the store's newest.
    fn change(
        &self,
        collection: Collection,
        id: &str,
        value: Option<&[u8]>,
        expected: Expected,
    ) -> Result<Version, StoreError> {
        let transaction = self.database.begin_write().map_err(|error| self.failed(error))?;
        let version = self.write(&transaction, collection, id, value, expected)?;
        transaction.commit().map_err(|error| self.failed(error))?;
        self.newest.send_replace(version);
        Ok(version)
    }

    fn write(
        &self,
        transaction: &WriteTransaction,
        collection: Collection,
        id: &str,
        value: Option<&[u8]>,
        expected: Expected,
    ) -> Result<Version, StoreError> {
        let key = (collection.number(), id);
        let mut records = transaction.open_table(RECORDS).map_err(|error| self.failed(error))?;
        let mut state = transaction.open_table(STATE).map_err(|error| self.failed(error))?;
        let there = records.get(key).map_err(|error| self.failed(error))?;
        let there = there.map(|record| record.value().0);
        if !expected.is(there) || (there.is_none() && value.is_none()) {
            return Err(StoreError::Conflict { id: id.to_owned() });
        }
        let newest = state.get(VERSION).map_err(|error| self.failed(error))?;
        let newest = newest.map_or(Ok(0), |bytes| number(bytes.value()));
        let version = newest.map_err(|error| self.failed(error))? + 1;
        match value {
            Some(value) => {
                let name = Name { collection: key.0, id, version };
                let sealed = self.sealer.seal(name, value).ok_or(StoreError::NoRandomness)?;
                records.insert(key, (version, sealed.as_slice()))
            }
            None => records.remove(key),
        }
        .map_err(|error| self.failed(error))?;
        state
            .insert(VERSION, version.to_be_bytes().as_slice())
            .map_err(|error| self.failed(error))?;
        Ok(version)
    }

    fn failed(&self, error: impl Into<redb::Error>) -> StoreError {
        unreadable(&self.path, error.into())
    }
}

impl CredentialStore for LocalStore {
    fn get(&self, collection: Collection, id: &str) -> Result<Option<Record>, StoreError> {
        let read = || -> Result<_, redb::Error> {
            let records = self.database.begin_read()?.open_table(RECORDS)?;
            let found = records.get((collection.number(), id))?;
            Ok(found.map(|found| (found.value().0, found.value().1.to_vec())))
        };
        let found = read().map_err(|error| self.failed(error))?;
        found
            .map(|(version, sealed)| {
                self.open_record(Name { collection: collection.number(), id, version }, &sealed)
            })
            .transpose()
    }

    fn put(
        &self,
        collection: Collection,
        id: &str,
        value: &[u8],
        expected: Expected,
    ) -> Result<Version, StoreError> {
        self.change(collection, id, Some(value), expected)
    }

    fn delete(
        &self,
        collection: Collection,
        id: &str,
        expected: Expected,
    ) -> Result<(), StoreError> {
        self.change(collection, id, None, expected).map(drop)
    }

    fn list(
        &self,
        collection: Collection,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        let number = collection.number();
        let read = || -> Result<Vec<_>, redb::Error> {
            let records = self.database.begin_read()?.open_table(RECORDS)?;
            let from = (number, after.unwrap_or_default());
            let mut found = Vec::new();
            for record in records.range(from..(number + 1, ""))? {
                let (key, value) = record?;
                let (id, (version, sealed)) = (key.value().1, value.value());
                if after != Some(id) && found.len() < most {
                    found.push((id.to_owned(), version, sealed.to_vec()));
                }
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        };
        let found = read().map_err(|error| self.failed(error))?;
        found
            .into_iter()
            .map(|(id, version, sealed)| {
                let record =
                    self.open_record(Name { collection: number, id: &id, version }, &sealed)?;
                Ok((id, record))
            })
            .collect()
    }

    fn newest(&self) -> Result<Version, StoreError> {
        let (version, _) = self.read_state().map_err(|error| self.failed(error))?;
        Ok(version)
    }

    fn watch(&self) -> watch::Receiver<Version> {
        self.newest.subscribe()
    }
}

impl Expected {
    fn is(self, there: Option<Version>) -> bool {
        match self {
            Expected::Absent => there.is_none(),
            Expected::Version(version) => there == Some(version),
            Expected::Anything => true,
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    // Without it redb panics over a file that was damaged since it was closed.
    builder.set_check_integrity_on_open(true);
    builder
}

/// Gateways of one user share a file, as many `outgate run` at a time do; redb's locks on ranges of
/// it keep their changes apart.
fn shared_builder() -> Builder {
    let mut builder = builder();
    builder.set_concurrency_mode(ConcurrencyMode::MultiWriter);
    builder
}

fn number(bytes: &[u8]) -> Result<Version, redb::Error> {
    let bytes = bytes.try_into().map_err(|_| redb::Error::Corrupted("version".to_owned()))?;
    Ok(Version::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
