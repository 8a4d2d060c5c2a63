//! How is the store of credentials opened?

use std::path::Path;
use std::sync::Arc;

use outgate_credentials::{Credentials, KeyError, LocalStore, StoreKey};

use crate::config::StoreKeySource;
use crate::failure::Failure;

/// Opens the store of a state folder, made at first start.
pub(crate) fn open(state_dir: &Path, key: &StoreKeySource) -> Result<Credentials, Failure> {
    let path = state_dir.join("credentials.redb");
    let key = read_key(key, state_dir, &path).map_err(Failure::start)?;
    let store = LocalStore::open(&path, &key).map_err(Failure::start)?;
    Credentials::open(Arc::new(store)).map_err(Failure::start)
}

fn read_key(source: &StoreKeySource, state_dir: &Path, store: &Path) -> Result<StoreKey, KeyError> {
    match source {
        StoreKeySource::File(path) => StoreKey::read(path),
        StoreKeySource::Variable(text) => StoreKey::parse(text.as_str(), "$OUTGATE_STORE_KEY"),
        StoreKeySource::StateFolder => {
            StoreKey::read_or_create(&state_dir.join("store.key"), store)
        }
    }
}
