//! How is the store of credentials opened?

use std::path::Path;
use std::sync::Arc;

use outgate_credentials::{Credentials, KeyError, LocalStore, StoreKey, Unreadable};

use crate::config::StoreKeySource;
use crate::failure::Failure;

/// In the state folder.
const STORE: &str = "credentials.redb";

/// Opens the store of a state folder, made at first start.
pub(crate) fn open(state_dir: &Path, key: &StoreKeySource) -> Result<Credentials, Failure> {
    let path = state_dir.join(STORE);
    let key = read_key(key, state_dir, &path).map_err(Failure::start)?;
    let store = LocalStore::open(&path, &key).map_err(Failure::start)?;
    Credentials::open(Arc::new(store)).map_err(Failure::start)
}

/// The same, where a store is there already: nothing is made.
pub(crate) fn open_if_there(
    state_dir: &Path,
    key: &StoreKeySource,
) -> Result<Option<Credentials>, Failure> {
    let path = state_dir.join(STORE);
    let exists = path.try_exists();
    match exists.map_err(|error| Failure::start(format_args!("{}: {error}", path.display())))? {
        true => open(state_dir, key).map(Some),
        false => Ok(None),
    }
}

/// Says which credentials can't be read, what comes of it and how to mend it: one line each. How long
/// it lasts where a file is gone is said by `lasts`.
pub(crate) fn warn_of_unreadable(credentials: &Credentials, lasts: impl Fn(&Path) -> &'static str) {
    for Unreadable { id, file, why } in credentials.unreadable() {
        let lasts = file.as_deref().map_or("until outgate is started with it", &lasts);
        tracing::warn!(
            "the credential {id}: {why}; requests that need it are refused \
             (credential_unavailable) {lasts}; or give it another value: `outgate credentials \
             update {id}`"
        );
    }
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
