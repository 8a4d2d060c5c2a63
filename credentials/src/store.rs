//! Where are credentials kept, and how does one learn that they changed?
//!
//! [`CredentialStore`] is what the rest needs of a store: versions, changes that only succeed if
//! nobody else was faster, lists in pages, a watch. [`LocalStore`] keeps all of it in one sealed
//! file; a store that many gateways share can take its place. Calls may block for as long as a disk
//! or a network takes, so the data path makes none: it reads what [`crate::Credentials`] holds.

mod key;
mod local;
mod seal;

use std::path::PathBuf;

use tokio::sync::watch;
use zeroize::Zeroizing;

pub use self::key::{KeyError, StoreKey};
pub use self::local::LocalStore;

/// Grows with every change of a store; no two changes have the same.
pub type Version = u64;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Credentials as their owners wrote them, by id.
    Credentials,
    /// Refresh tokens that a token endpoint gave in place of the one written, by credential.
    RefreshTokens,
    /// Placeholders, by environment and credential.
    Placeholders,
    /// Environments made through the API, by id.
    Environments,
}

/// One record, as it was at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was last written.
    pub version: Version,
    /// What was written.
    pub value: Zeroizing<Vec<u8>>,
}

/// What must be there for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing yet.
    Absent,
    /// This very version.
    Version(Version),
    /// Whatever it may be.
    Anything,
}

/// Why a store did not do it. Holds no value.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else was faster, or it is not there.
    #[error("{id} has changed meanwhile")]
    Conflict {
        /// The record's id.
        id: String,
    },
    /// Another process has it for itself.
    #[error("{} is in use by another program", .0.display())]
    InUse(PathBuf),
    /// Not what was written, or written with another key.
    #[error("{} can't be read: {why}; nothing in it is used, restore the file and its key", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The disk.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Without random bytes nothing is sealed.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

/// A store of credentials and of what belongs to them.
pub trait CredentialStore: Send + Sync + 'static {
    /// One record.
    fn get(&self, collection: Collection, id: &str) -> Result<Option<Record>, StoreError>;

    /// Writes one record if what is there is as expected; durable when it returns.
    fn put(
        &self,
        collection: Collection,
        id: &str,
        value: &[u8],
        expected: Expected,
    ) -> Result<Version, StoreError>;

    /// Removes one record if it is as expected; durable when it returns.
    fn delete(
        &self,
        collection: Collection,
        id: &str,
        expected: Expected,
    ) -> Result<(), StoreError>;

    /// At most `most` records with their ids, in the order of their ids, from behind `after` on.
    fn list(
        &self,
        collection: Collection,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Record)>, StoreError>;

    /// The version of the last change, whoever made it.
    fn newest(&self) -> Result<Version, StoreError>;

    /// Tells the newest version as soon as it is known here.
    fn watch(&self) -> watch::Receiver<Version>;
}

impl Collection {
    /// Its number in keys and seals. Never changes: files have it.
    fn number(self) -> u8 {
        match self {
            Collection::Credentials => 1,
            Collection::RefreshTokens => 2,
            Collection::Placeholders => 3,
            Collection::Environments => 4,
        }
    }
}

/// Every record of a collection, page by page.
pub(crate) fn all(
    store: &dyn CredentialStore,
    collection: Collection,
) -> Result<Vec<(String, Record)>, StoreError> {
    const PAGE: usize = 256;
    let mut found: Vec<(String, Record)> = Vec::new();
    loop {
        let after = found.last().map(|(id, _)| id.clone());
        let page = store.list(collection, after.as_deref(), PAGE)?;
        let complete = page.len() < PAGE;
        found.extend(page);
        if complete {
            return Ok(found);
        }
    }
}
