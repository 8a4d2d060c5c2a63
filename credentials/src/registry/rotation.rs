//! How does a refresh token that an endpoint gave outlive a crash?
//!
//! It is kept beside the credential, not in it: what the owner wrote stays what it is. It counts
//! for one version of the credential; what the owner writes later is stronger.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use outgate_policy::CredentialId;
use zeroize::Zeroizing;

use super::Hub;
use super::record::Stored;
use crate::credential::Kind;
use crate::oauth2::{Rotation, Turn};
use crate::secret::{Fit, Secret};
use crate::store::{Collection, Expected, StoreError, Version};

/// Stores the rotated refresh tokens of one credential.
pub(super) struct RotationOf {
    pub(super) hub: Weak<Hub>,
    pub(super) id: CredentialId,
    pub(super) version: Version,
}

/// A rotated refresh token as its record says it.
pub(super) struct Rotated {
    pub(super) of: Version,
    pub(super) token: Secret,
}

impl Rotated {
    pub(super) fn read(bytes: &[u8]) -> Option<Rotated> {
        let (of, token) = bytes.split_first_chunk()?;
        let token = Secret::parse(std::str::from_utf8(token).ok()?, Fit::Text).ok()?;
        Some(Rotated { of: Version::from_be_bytes(*of), token })
    }

    pub(super) fn write(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&self.of.to_be_bytes(), self.token.reveal().as_bytes()].concat())
    }
}

impl RotationOf {
    /// Without a hub the gateway is gone, and so is who would use the token.
    fn hub(&self) -> Result<Arc<Hub>, String> {
        self.hub.upgrade().ok_or_else(|| "the gateway is stopping".to_owned())
    }
}

impl Rotation for RotationOf {
    fn turn(&self) -> Turn {
        match self.hub() {
            Ok(hub) => Arc::clone(hub.turns().entry(self.id.clone()).or_default()),
            Err(_) => Turn::default(),
        }
    }

    fn in_force(&self) -> Result<Secret, String> {
        let (version, token) = match self.hub()?.in_force(&self.id) {
            Ok(found) => found.ok_or("the credential is gone")?,
            Err(error) => return Err(error.to_string()),
        };
        // A token that the owner wrote for another endpoint must not go to this one.
        if version != self.version {
            return Err("the credential was changed meanwhile".to_owned());
        }
        Ok(token)
    }

    fn rotated(&self, used: &Secret, new: &Secret) -> Result<(), String> {
        self.hub()?.keep(&self.id, used, new).map_err(|error| error.to_string())
    }
}

impl Hub {
    pub(super) fn turns(&self) -> MutexGuard<'_, HashMap<CredentialId, Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, id: &CredentialId, used: &Secret, new: &Secret) -> Result<(), StoreError> {
        let _changing = self.lock();
        let key = id.as_str();
        let before = self.store.get(Collection::RefreshTokens, key)?;
        let in_force = self.in_force(id)?;
        let in_force = in_force.filter(|(_, token)| token.is(used.reveal().as_bytes()));
        // The owner wrote another one while the call ran: that one is stronger.
        let Some((of, _)) = in_force else { return Ok(()) };
        let rotated = Rotated { of, token: new.clone() }.write();
        // Another process may have been faster.
        let expected = before.map_or(Expected::Absent, |before| Expected::Version(before.version));
        self.store.put(Collection::RefreshTokens, key, &rotated, expected)?;
        Ok(())
    }

    /// The refresh token of a credential as it is stored now, and the version that it counts for.
    fn in_force(&self, id: &CredentialId) -> Result<Option<(Version, Secret)>, StoreError> {
        let Some(record) = self.store.get(Collection::Credentials, id.as_str())? else {
            return Ok(None);
        };
        let written = || match Stored::read(&record.value)?.credential(id)?.kind {
            Kind::OAuth2(settings) => Some(settings.refresh_token),
            _ => None,
        };
        let token = self.rotated(id, record.version)?.or_else(written);
        Ok(token.map(|token| (record.version, token)))
    }

    /// What an endpoint gave in place of the refresh token of this version.
    pub(super) fn rotated(
        &self,
        id: &CredentialId,
        version: Version,
    ) -> Result<Option<Secret>, StoreError> {
        let record = self.store.get(Collection::RefreshTokens, id.as_str())?;
        let rotated = record.and_then(|record| Rotated::read(&record.value));
        Ok(rotated.filter(|rotated| rotated.of == version).map(|rotated| rotated.token))
    }
}
