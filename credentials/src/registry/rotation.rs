//! How does a refresh token that an endpoint gave outlive a crash?
//!
//! It is kept beside the credential, not in it: what the owner wrote stays what it is. It counts
//! for one version of the credential; what the owner writes later is stronger.

use std::sync::Weak;

use outgate_policy::CredentialId;
use zeroize::Zeroizing;

use super::Hub;
use super::record::Stored;
use crate::credential::Kind;
use crate::oauth2::Rotation;
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

impl Rotation for RotationOf {
    fn rotated(&self, used: &Secret, new: &Secret) -> Result<(), String> {
        // Without a hub the gateway is gone, and so is who would use the token.
        let Some(hub) = self.hub.upgrade() else { return Err("stopping".to_owned()) };
        hub.keep(self, used, new).map_err(|error| error.to_string())
    }
}

impl Hub {
    fn keep(
        self: &std::sync::Arc<Hub>,
        of: &RotationOf,
        used: &Secret,
        new: &Secret,
    ) -> Result<(), StoreError> {
        let _changing = self.lock();
        let Some(record) = self.store.get(Collection::Credentials, of.id.as_str())? else {
            return Ok(());
        };
        let in_force = self.rotated(&of.id, record.version)?.or_else(|| {
            match Stored::read(&record.value)?.credential(&of.id)?.kind {
                Kind::OAuth2(settings) => Some(settings.refresh_token),
                _ => None,
            }
        });
        // The owner wrote another one while the call ran: that one is stronger.
        if !in_force.is_some_and(|token| token.is(used.reveal().as_bytes())) {
            return Ok(());
        }
        let rotated = Rotated { of: record.version, token: new.clone() };
        let key = of.id.as_str();
        self.store.put(Collection::RefreshTokens, key, &rotated.write(), Expected::Anything)?;
        if record.version != of.version {
            // The owner changed something else: what is live now still has the old one.
            self.reload_with(Some(&of.id))?;
        }
        Ok(())
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
