//! What is in force for one environment, right now?
//!
//! A [`Snapshot`] is one generation of policy and address rules, immutable. An [`Environment`]
//! holds the current one and everything that must not be shared between environments: TLS
//! sessions, upstream connections, the names behind its DNS answers, the count of its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use outgate_certs::{CertsError, ClientTls, OriginRoots};
use outgate_policy::{AddressRules, Denial, EnvironmentId, Policy, Reason};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::budget::Budget;
use crate::exchange::sign::ROOM_UNIT;
use crate::limits::Limits;
use crate::names::Names;
use crate::upstream::{OriginClient, Pool, Profiles};

/// The protocols that clients are offered by ALPN.
const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// One generation of what may leave an environment.
pub struct Snapshot {
    /// Which requests may leave.
    pub policy: Arc<Policy>,
    /// Which addresses may be dialled.
    pub addresses: AddressRules,
    /// How the origins of some entries are met.
    pub profiles: Arc<Profiles>,
}

/// One sandbox's identity, its snapshot in force, and what belongs to it alone.
pub struct Environment {
    id: EnvironmentId,
    snapshot: ArcSwap<Snapshot>,
    changes: watch::Sender<()>,
    connections: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Seconds since 1970, 0 for never.
    last_used: AtomicU64,
    places: usize,
    pub(crate) client_tls: ClientTls,
    common: OriginClient,
    pub(crate) pool: Pool,
    /// What its DNS has given addresses out for.
    pub(crate) names: Names,
    /// Bytes of bodies that may still be held back to look for placeholders in them.
    pub(crate) body_room: Arc<Semaphore>,
    /// Ways to origins that may still be looked for at the same time.
    pub(crate) connecting: Semaphore,
    /// Bytes of windows that compressed answers may still take to be scrubbed.
    pub(crate) windows: Arc<Semaphore>,
    /// Handshakes completed only to say why a name is refused.
    pub(crate) refused_handshakes: Budget,
    /// Room for bodies that are hashed before they are sent, in units of [`ROOM_UNIT`].
    pub(crate) hashed_bodies: Arc<Semaphore>,
}

impl Environment {
    /// An environment with `snapshot` in force.
    pub fn new(
        id: &EnvironmentId,
        snapshot: Snapshot,
        roots: &OriginRoots,
        limits: &Limits,
    ) -> Result<Environment, CertsError> {
        Ok(Environment {
            id: id.clone(),
            snapshot: ArcSwap::from_pointee(snapshot),
            changes: watch::Sender::new(()),
            connections: Arc::new(Semaphore::new(limits.connections)),
            streams: Arc::new(Semaphore::new(
                limits.environment_streams.min(Semaphore::MAX_PERMITS),
            )),
            last_used: AtomicU64::new(0),
            places: limits.connections,
            client_tls: ClientTls::new(ALPN)?,
            common: OriginClient::common(roots)?,
            pool: Pool::new(limits),
            names: Names::new(limits.names),
            body_room: Arc::new(Semaphore::new(
                limits.body_buffers_bytes.min(Semaphore::MAX_PERMITS),
            )),
            connecting: Semaphore::new(limits.connecting.min(Semaphore::MAX_PERMITS)),
            windows: Arc::new(Semaphore::new(
                limits.decompression_bytes.min(Semaphore::MAX_PERMITS),
            )),
            refused_handshakes: Budget::new(limits.refused_handshakes_per_second),
            hashed_bodies: Arc::new(Semaphore::new(room_for_bodies(limits))),
        })
    }

    /// Its name in files, answers and audit lines.
    pub fn id(&self) -> &EnvironmentId {
        &self.id
    }

    /// What is in force now. A request asks once and keeps the answer.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Puts another generation in force: the next request is judged by it, and what was upgraded
    /// is judged again.
    pub fn replace(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
        self.changes.send_replace(());
        self.pool.open();
    }

    /// The environment is no more: nothing leaves, and what it held is closed. The next
    /// [`Environment::replace`] brings it back.
    pub fn retire(&self, addresses: AddressRules) {
        let (policy, profiles) = (Arc::new(Policy::deny_all()), Arc::default());
        self.replace(Snapshot { policy, addresses, profiles });
        self.pool.shut();
    }

    /// What meets the origins of `entry` under `snapshot`.
    pub(crate) fn origin_client<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        entry: usize,
    ) -> &'a OriginClient {
        snapshot.profiles.of(entry).unwrap_or(&self.common)
    }

    /// How many connections of its clients are open now.
    pub fn open_connections(&self) -> usize {
        self.places - self.connections.available_permits()
    }

    /// When a client connected last.
    pub fn last_used(&self) -> Option<SystemTime> {
        let seconds = self.last_used.load(Ordering::Relaxed);
        (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// Tells of every [`Environment::replace`] from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// A place for one more client connection, if there is one.
    pub(crate) fn connection(&self) -> Option<OwnedSemaphorePermit> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_used.store(since.as_secs(), Ordering::Relaxed);
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// The same, or what the client is told.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Denial> {
        self.connection().ok_or_else(|| {
            Denial::new(
                Reason::TooManyConnections,
                "this environment has as many connections as it may: close some, or raise \
                 limits.connections",
            )
        })
    }

    /// A place for one more HTTP/2 stream of its clients, or what the client is told.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Denial> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            Denial::new(
                Reason::TooManyConnections,
                "this environment has as many HTTP/2 streams as it may: end some, or raise \
                 limits.environment_streams",
            )
        })
    }
}

/// At least one of the largest fits, or it would wait for ever.
fn room_for_bodies(limits: &Limits) -> usize {
    limits.hashed_bodies.max(limits.hashed_body).div_ceil(ROOM_UNIT).min(Semaphore::MAX_PERMITS)
}
