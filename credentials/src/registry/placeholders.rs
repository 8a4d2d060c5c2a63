//! How does an environment get its placeholders, the same ones after every restart?

use outgate_policy::{CredentialId, EnvironmentId};

use super::{Credentials, Hub};
use crate::credential::Kind;
use crate::live::Live;
use crate::placeholder::Tag;
use crate::store::{Collection, CredentialStore, Expected, StoreError, all};

/// When no credential was created.
const CREATED_NEVER: u64 = 0;

/// Why a variable has no placeholder.
#[derive(Debug, thiserror::Error)]
pub enum PlaceholderError {
    /// There is no such credential.
    #[error(
        "the credential {0} is not stored: `outgate credentials create {0} --type environment_variable`"
    )]
    Missing(CredentialId),
    /// It goes on an entry's requests.
    #[error("the credential {0} is no environment_variable; name it in an entry of the allowlist")]
    NotAVariable(CredentialId),
    /// Without random bytes there is no placeholder.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// It could not be made durable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A placeholder as its record says it.
pub(super) struct Placed {
    pub(super) environment: EnvironmentId,
    pub(super) credential: CredentialId,
    pub(super) tag: Tag,
    pub(super) credential_created: u64,
}

impl Placed {
    pub(super) fn read(key: &str, bytes: &[u8]) -> Option<Placed> {
        // Neither id has a slash in it.
        let (environment, credential) = key.split_once('/')?;
        let (tag, created) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Placed {
            environment: EnvironmentId::parse(environment).ok()?,
            credential: CredentialId::parse(credential).ok()?,
            tag: Tag::parse(tag.as_bytes())?,
            credential_created: created.parse().ok()?,
        })
    }
}

impl Credentials {
    /// What a variable of `environment` holds in place of the credential's value. Made at the first
    /// time of asking; may block on the store then.
    pub fn placeholder(
        &self,
        environment: &EnvironmentId,
        id: &CredentialId,
    ) -> Result<String, PlaceholderError> {
        let known = || {
            let live = self.live(id).ok_or_else(|| PlaceholderError::Missing(id.clone()))?;
            let Kind::EnvironmentVariable(variable) = &live.credential.kind else {
                return Err(PlaceholderError::NotAVariable(id.clone()));
            };
            let table = self.0.table.load();
            let tag = table.tags.get(&(environment.clone(), id.clone()));
            Ok((tag.map(|tag| tag.placeholder(&variable.prefix)), live))
        };
        if let (Some(placeholder), _) = known()? {
            return Ok(placeholder);
        }
        let _changing = self.0.lock();
        match known()? {
            (Some(placeholder), _) => return Ok(placeholder),
            (None, live) => self.0.place(environment, &live)?,
        }
        let (placeholder, _) = known()?;
        placeholder.ok_or_else(|| PlaceholderError::Missing(id.clone()))
    }

    /// Removes the placeholders of an environment that is no more.
    pub fn forget_environment(&self, environment: &EnvironmentId) -> Result<(), StoreError> {
        let _changing = self.0.lock();
        remove(&*self.0.store, |placed| placed.environment == *environment)?;
        self.0.reload()
    }
}

impl Hub {
    /// Stores a placeholder if there is none; another process on the same store may have made it.
    fn place(
        self: &std::sync::Arc<Hub>,
        environment: &EnvironmentId,
        live: &Live,
    ) -> Result<(), PlaceholderError> {
        let key = format!("{environment}/{}", live.id());
        let record = self.store.get(Collection::Placeholders, &key)?;
        let placed = record.as_ref().and_then(|record| Placed::read(&key, &record.value));
        if placed.is_none_or(|placed| placed.credential_created != live.created) {
            let tag = Tag::issue().ok_or(PlaceholderError::NoRandomness)?;
            let value = format!("{} {}", tag.digits(), live.created);
            let expected =
                record.map_or(Expected::Absent, |record| Expected::Version(record.version));
            match self.store.put(Collection::Placeholders, &key, value.as_bytes(), expected) {
                // Another process was faster: its placeholder is in use already.
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.reload()?)
    }
}

/// Removes every placeholder that `is` says.
pub(super) fn remove(
    store: &dyn CredentialStore,
    is: impl Fn(&Placed) -> bool,
) -> Result<(), StoreError> {
    for (key, record) in all(store, Collection::Placeholders)? {
        if Placed::read(&key, &record.value).is_none_or(|placed| is(&placed)) {
            store.delete(Collection::Placeholders, &key, Expected::Version(record.version))?;
        }
    }
    Ok(())
}

/// Leaves of the placeholders of a credential that is gone only that there were some, so that they
/// are still looked for in bodies.
pub(super) fn void(store: &dyn CredentialStore, id: &CredentialId) -> Result<(), StoreError> {
    for (key, record) in all(store, Collection::Placeholders)? {
        if let Some(placed) = Placed::read(&key, &record.value)
            && placed.credential == *id
        {
            let value = format!("{} {CREATED_NEVER}", placed.tag.digits());
            let expected = Expected::Version(record.version);
            store.put(Collection::Placeholders, &key, value.as_bytes(), expected)?;
        }
    }
    Ok(())
}
