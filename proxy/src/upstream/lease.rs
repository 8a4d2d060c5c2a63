//! Who uses an upstream connection, and when is it closed?
//!
//! An [`Exclusive`] connection carries one exchange at a time; dropped in the middle of one, it is
//! closed with it. A [`Shared`] one carries many; dropping a lease gives its room back, and it is
//! closed when the pool and the last lease have let it go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::task::AbortHandle;

use super::frame::Framing;
use super::pool::Origin;
use super::reach::Peer;
use super::settings::Settings;
use crate::exchange::body::RequestBody;
use crate::exchange::expect::Release;
use crate::exchange::interim::Interim;

/// The right to send one request.
pub(crate) enum Lease {
    Exclusive(Exclusive, Origin),
    Shared(SharedLease),
}

/// A connection for one exchange at a time.
pub(crate) struct Exclusive {
    sender: http1::SendRequest<RequestBody>,
    task: Option<AbortHandle>,
    peer: Peer,
}

/// A connection for many exchanges at once.
pub(crate) struct Shared {
    sender: http2::SendRequest<RequestBody>,
    task: AbortHandle,
    peer: Peer,
    settings: Settings,
    leases: AtomicUsize,
    used: Mutex<Instant>,
}

/// Room for one exchange on a shared connection.
pub(crate) struct SharedLease {
    connection: Arc<Shared>,
    /// Where there are several: which is the last one.
    holders: Option<Arc<()>>,
}

/// Why a request got no answer on a connection.
pub(super) enum SendError {
    /// What comes back with it was not sent.
    Broken(Box<TrySendError<Request<RequestBody>>>),
    /// The origin sends interim answers without end.
    Flood,
}

impl From<TrySendError<Request<RequestBody>>> for SendError {
    fn from(error: TrySendError<Request<RequestBody>>) -> SendError {
        SendError::Broken(Box::new(error))
    }
}

impl Lease {
    /// Where it leads.
    pub(crate) fn peer(&self) -> Peer {
        match self {
            Lease::Exclusive(connection, _) => connection.peer,
            Lease::Shared(lease) => lease.connection.peer,
        }
    }

    /// Frames `request` for what the connection speaks, and sends it.
    pub(super) async fn send(
        &mut self,
        framing: &Framing,
        request: Request<RequestBody>,
        release: Option<&Release>,
    ) -> Result<Response<Incoming>, SendError> {
        match self {
            Lease::Exclusive(connection, _) => {
                let mut request = framing.for_http1(request);
                let interim = Interim::watch(&mut request, release);
                tokio::select! {
                    sent = connection.sender.try_send_request(request) => Ok(sent?),
                    () = interim.flooded() => Err(SendError::Flood),
                }
            }
            Lease::Shared(lease) => {
                let mut sender = lease.connection.sender.clone();
                let mut request = framing.for_http2(request);
                request.body_mut().occupies(lease);
                Ok(sender.try_send_request(request).await?)
            }
        }
    }

    /// The connection was upgraded: its task ends by itself once it has handed the socket over.
    /// The lease is kept for as long as the other protocol is spoken.
    pub(crate) fn upgraded(&mut self) {
        if let Lease::Exclusive(connection, _) = self {
            connection.task = None;
        }
    }
}

impl Exclusive {
    pub(super) fn new(
        sender: http1::SendRequest<RequestBody>,
        task: AbortHandle,
        peer: Peer,
    ) -> Exclusive {
        Exclusive { sender, task: Some(task), peer }
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether it will take a request: its task may have to note the end of the last one first.
    pub(super) async fn is_alive(&mut self) -> bool {
        !self.is_closed() && (self.sender.is_ready() || self.sender.ready().await.is_ok())
    }
}

impl Drop for Exclusive {
    /// Without a sender nobody can use the connection again; its task must not outlive it in the
    /// middle of a body.
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    pub(super) fn new(
        sender: http2::SendRequest<RequestBody>,
        task: AbortHandle,
        peer: Peer,
        settings: Settings,
    ) -> Shared {
        let used = Mutex::new(Instant::now());
        Shared { sender, task, peer, settings, leases: AtomicUsize::new(0), used }
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether one more exchange fits, by our bound and by the origin's.
    pub(super) fn has_room(&self, most: usize) -> bool {
        let leases = self.leases.load(Ordering::Relaxed);
        leases < most && leases < self.settings.streams()
    }

    /// Since when nobody has used it, if nobody does.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.leases.load(Ordering::Relaxed) == 0).then_some(used)
    }

    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        Lease::Shared(SharedLease::of(self))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SharedLease {
    fn of(connection: &Arc<Shared>) -> SharedLease {
        connection.leases.fetch_add(1, Ordering::Relaxed);
        SharedLease { connection: Arc::clone(connection), holders: None }
    }

    /// The same place for another holder: the last one gives its room back.
    pub(crate) fn share(&mut self) -> SharedLease {
        let holders = Some(Arc::clone(self.holders.get_or_insert_default()));
        SharedLease { connection: Arc::clone(&self.connection), holders }
    }

    /// Whether the origin takes WebSockets here; one that does not say so within `wait` does not.
    pub(super) async fn takes_websockets(&self, wait: Duration) -> bool {
        self.connection.settings.takes_websockets(wait).await
    }
}

impl Drop for SharedLease {
    fn drop(&mut self) {
        let is_last = |holders| Arc::into_inner(holders).is_some();
        if self.holders.take().is_none_or(is_last) {
            self.connection.leases.fetch_sub(1, Ordering::Relaxed);
        }
        let now = Instant::now();
        *self.connection.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}
