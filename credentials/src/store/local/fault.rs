//! What does a failure of the file mean: a disk that can't, a file that is in use, or damage?

use std::io;
use std::path::Path;

use redb::{DatabaseError, StorageError};

use crate::store::StoreError;

pub(super) fn refused(path: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            StoreError::InUse(path.to_owned())
        }
        DatabaseError::Storage(StorageError::Io(error))
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::StorageFull
            ) =>
        {
            io_error(path, &error)
        }
        other => unreadable(path, other.into()),
    }
}

pub(super) fn unreadable(path: &Path, error: redb::Error) -> StoreError {
    match error {
        redb::Error::Io(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            io_error(path, &error)
        }
        other => StoreError::Damaged { path: path.to_owned(), why: other.to_string() },
    }
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), why: error.to_string() }
}
