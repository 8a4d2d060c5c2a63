//! Which credentials are there right now, and what does a request get of them?
//!
//! [`Credentials`] is what the data path asks. It reads a table that is swapped whole when a
//! credential changes, never the store: a request that needs none costs nothing, one that needs one
//! takes a look-up.

mod bodies;
mod change;
mod placeholders;
mod record;
mod refusal;
mod rotation;
mod sources;
mod table;
mod trust;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use outgate_policy::{CredentialId, Denial};
use smallvec::SmallVec;
use tokio::sync::watch;
use zeroize::Zeroizing;

pub use self::bodies::Replacement;
pub use self::change::{Asker, ChangeError, Summary};
pub use self::placeholders::PlaceholderError;
use self::refusal::{Refused, Why};
pub use self::sources::Unreadable;
use self::table::Table;
pub use self::trust::{Asking, Substituted};
use crate::credential::TokenUrl;
use crate::live::{Live, Material};
use crate::oauth2::{Answering, TokenTransport, Turn};
use crate::query;
use crate::secret::Secret;
use crate::sigv4::Signer;
use crate::source::Files;
use crate::store::{CredentialStore, StoreError, Version};

/// What another process changes is in force within this: well within the second that SPEC 2 gives.
const GLANCE: Duration = Duration::from_millis(300);

/// Every stored credential, ready to be used; cheap to clone.
#[derive(Clone)]
pub struct Credentials(Arc<Hub>);

/// What a request was sent with: enough to see later whether it still holds.
pub type Used = SmallVec<[(CredentialId, Version); 1]>;

/// What one credential puts on a request.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The credential, as it is now.
    pub used: (CredentialId, Version),
    /// Where its value goes.
    pub carrier: Carrier,
}

/// Where a value goes.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// Into this header, and no other value beside it; with the secret alone, where it is only the
    /// end of what is put there.
    Header(HeaderName, HeaderValue, Option<Secret>),
    /// Into the query.
    Query(Parameter),
    /// Into a signature over the whole request.
    Signature(Signer),
}

/// One parameter of a query, with its value.
#[derive(Clone, Debug)]
pub struct Parameter {
    name: Arc<str>,
    pair: Secret,
}

struct Hub {
    store: Arc<dyn CredentialStore>,
    table: ArcSwap<Table>,
    changes: watch::Sender<()>,
    /// Held by who changes something, over reading, writing and the new table.
    changing: Mutex<()>,
    /// Who calls a token endpoint, by credential: a change makes another minter, and both may be
    /// at it.
    turns: Mutex<HashMap<CredentialId, Turn>>,
    endpoint: Arc<Endpoint>,
    files: Arc<Files>,
}

/// The way to token endpoints, known once the gateway has one.
#[derive(Default)]
struct Endpoint(OnceLock<Arc<dyn TokenTransport>>);

impl TokenTransport for Endpoint {
    fn post<'a>(&'a self, url: &'a TokenUrl, form: Zeroizing<String>) -> Answering<'a> {
        match self.0.get() {
            Some(transport) => transport.post(url, form),
            None => Box::pin(std::future::ready(Err("there is no network here".to_owned()))),
        }
    }
}

impl Credentials {
    /// Everything that `store` holds.
    pub fn open(store: Arc<dyn CredentialStore>) -> Result<Credentials, StoreError> {
        let hub = Arc::new(Hub {
            store,
            table: ArcSwap::default(),
            changes: watch::Sender::new(()),
            changing: Mutex::new(()),
            turns: Mutex::default(),
            endpoint: Arc::default(),
            files: Arc::default(),
        });
        hub.reload()?;
        Ok(Credentials(hub))
    }

    /// Names the way to token endpoints; the first one stays.
    pub fn connect(&self, transport: Arc<dyn TokenTransport>) {
        if self.0.endpoint.0.set(transport).is_err() {
            tracing::error!("the way to token endpoints was named twice");
        }
    }

    /// The store, for records of other kinds.
    pub fn store(&self) -> &Arc<dyn CredentialStore> {
        &self.0.store
    }

    /// Tells of every change from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Takes over what others change in the store, for as long as it is polled.
    pub async fn follow(&self) {
        let mut told = self.0.store.watch();
        let mut known = None;
        loop {
            let hub = Arc::clone(&self.0);
            let look = tokio::task::spawn_blocking(move || hub.catch_up(known));
            match look.await {
                Ok(Ok(newest)) => known = Some(newest),
                Ok(Err(error)) => {
                    tracing::error!(%error, "credentials can't be read; those known stay in force");
                }
                Err(error) => {
                    tracing::error!(%error, "a look at the store failed; the next one follows");
                }
            }
            // Of another process's changes nobody tells.
            drop(tokio::time::timeout(GLANCE, told.changed()).await);
        }
    }

    /// Whether every one of these is still what it was.
    pub fn are_current(&self, used: &[(CredentialId, Version)]) -> bool {
        let table = self.0.table.load();
        used.iter()
            .all(|(id, version)| table.live.get(id).is_some_and(|live| live.version == *version))
    }

    /// The header that a credential sets, for a check at load; `None` if it is not stored.
    pub fn header_of(&self, id: &CredentialId) -> Option<Option<HeaderName>> {
        let table = self.0.table.load();
        table.live.get(id).map(|live| live.credential.header().cloned())
    }

    /// Whether a credential is of a kind that entries can't name; `None` if it is not stored.
    pub fn is_variable(&self, id: &CredentialId) -> Option<bool> {
        self.0.table.load().live.get(id).map(|live| live.credential.is_variable())
    }

    /// What the credentials of an entry put on a request, in their order.
    pub async fn apply(&self, ids: &[CredentialId]) -> Result<SmallVec<[Applied; 1]>, Denial> {
        let mut applied = SmallVec::new();
        for id in ids {
            let live = self.live(id).ok_or_else(|| Refused(id, Why::Missing).denial())?;
            let carrier = match self.material(&live).await? {
                Material::Header(name, value, bare) => Carrier::Header(name, value, bare),
                Material::Query(name, pair) => Carrier::Query(Parameter { name, pair }),
                Material::Signer(signer) => Carrier::Signature(signer),
                Material::Value(_) => return Err(Refused(id, Why::Variable).denial()),
            };
            applied.push(Applied { used: (id.clone(), live.version), carrier });
        }
        Ok(applied)
    }

    /// An origin answered 401 to a request with these headers. Whether another try may fare better.
    pub async fn refused(&self, applied: &[Applied]) -> bool {
        let mut worth_it = false;
        for Applied { used: (id, version), carrier } in applied {
            let live = self.live(id).filter(|live| live.version == *version);
            if let (Carrier::Header(_, value, _), Some(live)) = (carrier, live) {
                worth_it |= live.refused(value).await;
            }
        }
        worth_it
    }

    async fn material(&self, live: &Live) -> Result<Material, Denial> {
        live.material().await.map_err(|error| {
            let denial = Refused(live.id(), Why::from(&error)).denial();
            tracing::debug!(credential = %live.id(), %error, "a credential can't be used");
            denial
        })
    }

    fn live(&self, id: &CredentialId) -> Option<Arc<Live>> {
        self.0.table.load().live.get(id).cloned()
    }
}

impl Parameter {
    /// Whether both are the same parameter, whatever their values.
    pub fn is_named_as(&self, other: &Parameter) -> bool {
        self.name == other.name
    }

    /// Its name, decoded.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// `name=value`, escaped.
    pub(crate) fn pair(&self) -> &Secret {
        &self.pair
    }

    /// `target` without the client's parameters of this name.
    pub fn unset(&self, target: &PathAndQuery) -> PathAndQuery {
        query::without(target, &self.name)
    }

    /// `target` with this parameter in place of the client's.
    pub fn set(&self, target: &PathAndQuery) -> PathAndQuery {
        query::with(target, &self.name, self.pair.reveal())
    }
}

impl Hub {
    /// Puts in force what is newer than `known`, and says what is known now.
    fn catch_up(self: &Arc<Hub>, known: Option<Version>) -> Result<Version, StoreError> {
        let newest = self.store.newest()?;
        if known != Some(newest) {
            let _changing = self.lock();
            self.reload()?;
        }
        Ok(newest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
