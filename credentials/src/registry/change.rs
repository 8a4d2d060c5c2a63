//! How is a credential created, changed, deleted and listed? Its value never comes back.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use outgate_policy::{CredentialId, Document, Problem, Problems};

use super::record::Stored;
use super::{Credentials, Hub, placeholders};
use crate::credential::{Credential, has_field, with_field};
use crate::live::Live;
use crate::store::{Collection, Expected, Record, StoreError, Version};

/// What may be told of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: &'static str,
    /// `active`, or `revoked` if its token endpoint says so.
    pub status: &'static str,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// When its owner last changed it.
    pub updated: u64,
}

/// Why a change was not made. Quotes no value.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// What it says is wrong.
    #[error("{0}")]
    Invalid(Problems),
    /// The id is taken.
    #[error("the credential {0} exists already: update it, or delete it first")]
    Exists(CredentialId),
    /// The id is nobody's.
    #[error("there is no credential {0}")]
    Missing(CredentialId),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who asks for a change, and so what it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Somebody who may read the gateway's files anyway.
    Local,
    /// Somebody who came over the network: a value is sent, never read from this machine.
    Remote,
}

impl Credentials {
    /// Stores a new one; in force when this returns.
    pub fn create(&self, said: &Document, asker: Asker) -> Result<Summary, ChangeError> {
        let credential = check(said, None, asker)?;
        let now = now();
        let _changing = self.0.lock();
        let stored = Stored { created: now, updated: now, said: said.clone() };
        self.0.write(&credential.id, &stored, Expected::Absent).map_err(|error| match error {
            StoreError::Conflict { .. } => ChangeError::Exists(credential.id.clone()),
            other => other.into(),
        })?;
        self.found(&credential.id)
    }

    /// Changes what `said` names, or of that only what `mask` names: a field that is in the mask
    /// and not said gets its default. In force when this returns.
    pub fn update(
        &self,
        id: &CredentialId,
        said: &Document,
        mask: Option<&[&str]>,
        asker: Asker,
    ) -> Result<Summary, ChangeError> {
        let _changing = self.0.lock();
        let (record, stored) = self.0.stored(id)?;
        let base = self.0.with_rotated_token(id, &record, stored.said)?;
        let merged = merge(base, said, mask)?;
        let credential = check(&merged, Some(id), asker)?;
        // Its place in the order of changes, whatever the clock does.
        let updated = now().max(stored.updated + 1);
        let stored = Stored { created: stored.created, updated, said: merged };
        self.0.write(&credential.id, &stored, Expected::Version(record.version))?;
        self.found(id)
    }

    /// Removes one, with its placeholders. What was begun with it ends within a second.
    pub fn delete(&self, id: &CredentialId) -> Result<(), ChangeError> {
        let _changing = self.0.lock();
        let (record, _) = self.0.stored(id)?;
        let store = &self.0.store;
        store.delete(Collection::Credentials, id.as_str(), Expected::Version(record.version))?;
        match store.delete(Collection::RefreshTokens, id.as_str(), Expected::Anything) {
            Ok(()) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if self.live(id).is_some_and(|live| live.credential.goes_into_bodies()) {
            placeholders::void(&**store, id)?;
        } else {
            placeholders::remove(&**store, |placed| placed.credential == *id)?;
        }
        Ok(self.0.reload()?)
    }

    /// What may be told of one.
    pub fn get(&self, id: &CredentialId) -> Option<Summary> {
        self.found(id).ok()
    }

    /// What may be told of at most `most`, in the order of their ids, from behind `after` on.
    pub fn list(&self, after: Option<&str>, most: usize) -> Vec<Summary> {
        let table = self.0.table.load_full();
        let mut ids: Vec<_> =
            table.live.keys().filter(|id| after.is_none_or(|after| id.as_str() > after)).collect();
        ids.sort_unstable();
        ids.into_iter().take(most).filter_map(|id| self.get(id)).collect()
    }

    fn found(&self, id: &CredentialId) -> Result<Summary, ChangeError> {
        let live = self.live(id).ok_or_else(|| ChangeError::Missing(id.clone()))?;
        Ok(Summary {
            id: id.clone(),
            kind: live.credential.type_name(),
            status: if live.is_revoked() { "revoked" } else { "active" },
            created: live.created,
            updated: live.updated,
        })
    }
}

impl Hub {
    fn stored(&self, id: &CredentialId) -> Result<(Record, Stored), ChangeError> {
        let missing = || ChangeError::Missing(id.clone());
        let record = self.store.get(Collection::Credentials, id.as_str())?.ok_or_else(missing)?;
        let stored = Stored::read(&record.value).ok_or_else(missing)?;
        Ok((record, stored))
    }

    fn write(
        self: &Arc<Hub>,
        id: &CredentialId,
        stored: &Stored,
        expected: Expected,
    ) -> Result<Version, StoreError> {
        let bytes = stored.write();
        let version = self.store.put(Collection::Credentials, id.as_str(), &bytes, expected)?;
        self.reload()?;
        Ok(version)
    }

    /// What the owner said, with the refresh token that counts now: the one that was said may have
    /// been worth nothing for long.
    fn with_rotated_token(
        &self,
        id: &CredentialId,
        record: &Record,
        said: Document,
    ) -> Result<Document, StoreError> {
        Ok(match self.rotated(id, record.version)? {
            Some(token) => {
                let token = Document::String(token.reveal().to_owned());
                with_field(&said, "refresh_token", token)
            }
            None => said,
        })
    }
}

fn check(
    said: &Document,
    id: Option<&CredentialId>,
    asker: Asker,
) -> Result<Credential, ChangeError> {
    let credential = Credential::read(said, id).map_err(ChangeError::Invalid)?;
    if asker == Asker::Remote && credential.reads_this_machine() {
        return Err(invalid(
            "",
            "from_file, from_env and from_command are for the Unix socket only",
        ));
    }
    // Long values may fit by themselves and not in the form they are sent in.
    Live::check(&credential).map_err(|error| invalid("", &error.to_string()))?;
    Ok(credential)
}

fn merge(base: Document, said: &Document, mask: Option<&[&str]>) -> Result<Document, ChangeError> {
    let Document::Object(fields) = said else {
        return Err(invalid("", &format!("expected an object, found {}", said.kind())));
    };
    let named = |key: &str| mask.is_none_or(|mask| mask.contains(&key) || mask.contains(&"*"));
    let mut merged = base;
    for absent in mask.unwrap_or_default().iter().filter(|field| **field != "*") {
        if matches!(*absent, "id" | "type") {
            return Err(invalid("update_mask", "id and type never change"));
        }
        if !has_field(&merged, absent) {
            let message = format!("this type of credential has no field {absent}");
            return Err(invalid("update_mask", &message));
        }
        if let Document::Object(fields) = &mut merged {
            fields.retain(|(key, _)| key != absent);
        }
    }
    for (key, value) in fields {
        // SDKs repeat them.
        if matches!(key.as_str(), "id" | "type") {
            let same = matches!(&merged, Document::Object(all) if all.iter().any(|(known, now)| known == key && now == value));
            if !same {
                return Err(invalid(
                    key,
                    "never changes; delete the credential and create another",
                ));
            }
        } else if named(key) {
            merged = with_field(&merged, key, value.clone());
        }
    }
    Ok(merged)
}

fn invalid(path: &str, message: &str) -> ChangeError {
    let problems = vec![Problem::new(path, message)];
    ChangeError::Invalid(Problems { problems, warnings: Vec::new() })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
