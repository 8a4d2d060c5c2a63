//! How does the store become the table that requests read?

use std::collections::HashMap;
use std::sync::Arc;

use outgate_policy::{CredentialId, EnvironmentId};

use super::Hub;
use super::placeholders::Placed;
use super::record::Stored;
use super::rotation::RotationOf;
use crate::live::Live;
use crate::oauth2::Means;
use crate::placeholder::Tag;
use crate::store::{Collection, Record, StoreError, all};

/// Every credential and placeholder at one moment.
#[derive(Default)]
pub(super) struct Table {
    pub(super) live: HashMap<CredentialId, Arc<Live>>,
    pub(super) placed: HashMap<Tag, (EnvironmentId, CredentialId)>,
    pub(super) tags: HashMap<(EnvironmentId, CredentialId), Tag>,
    /// Environments whose bodies are looked at, with the credentials that may go there: none, if
    /// those are gone and their placeholders may still be about.
    pub(super) bodies: HashMap<EnvironmentId, Vec<Arc<Live>>>,
}

impl Table {
    /// The credential that `tag` stands for in `environment`.
    pub(super) fn behind(&self, tag: &Tag, environment: &EnvironmentId) -> Option<&Arc<Live>> {
        let (owner, id) = self.placed.get(tag)?;
        (owner == environment).then(|| self.live.get(id)).flatten()
    }
}

impl Hub {
    /// Puts in force what the store says. Credentials that did not change keep their tokens. Where
    /// there can be two of it at once, [`Hub::lock`] is held.
    pub(super) fn reload(self: &Arc<Hub>) -> Result<(), StoreError> {
        let before = self.table.load_full();
        let mut table = Table::default();
        for (id, record) in all(&*self.store, Collection::Credentials)? {
            let Ok(id) = CredentialId::parse(&id) else { continue };
            let known = before.live.get(&id).filter(|live| live.version == record.version);
            let live = match known {
                Some(live) => Some(Arc::clone(live)),
                None => self.revive(&id, &record).map(Arc::new),
            };
            match live {
                Some(live) => drop(table.live.insert(id, live)),
                None => tracing::error!(credential = %id, "the stored credential can't be used"),
            }
        }
        for (key, record) in all(&*self.store, Collection::Placeholders)? {
            let Some(placed) = Placed::read(&key, &record.value) else { continue };
            // One of an earlier credential of the same id must not come to life again.
            let live = table.live.get(&placed.credential);
            match live.filter(|live| live.created == placed.credential_created) {
                Some(live) => {
                    if live.credential.goes_into_bodies() {
                        let all = table.bodies.entry(placed.environment.clone()).or_default();
                        all.push(Arc::clone(live));
                    }
                    let of = (placed.environment, placed.credential);
                    table.placed.insert(placed.tag, of.clone());
                    table.tags.insert(of, placed.tag);
                }
                // Left behind by a credential whose placeholders stood in bodies.
                None => drop(table.bodies.entry(placed.environment).or_default()),
            }
        }
        self.turns().retain(|id, _| table.live.contains_key(id));
        self.table.store(Arc::new(table));
        self.changes.send_replace(());
        Ok(())
    }

    fn revive(self: &Arc<Hub>, id: &CredentialId, record: &Record) -> Option<Live> {
        let stored = Stored::read(&record.value)?;
        let (created, updated) = (stored.created, stored.updated);
        let credential = stored.credential(id)?;
        let means = self.means(id, record.version);
        let mut live = Live::new(credential, record.version, means).ok()?;
        (live.created, live.updated) = (created, updated);
        Some(live)
    }

    fn means(self: &Arc<Hub>, id: &CredentialId, version: u64) -> Arc<Means> {
        let rotation = RotationOf { hub: Arc::downgrade(self), id: id.clone(), version };
        let (transport, files) = (self.endpoint.clone(), Arc::clone(&self.files));
        Arc::new(Means { transport, rotation: Arc::new(rotation), files })
    }
}
