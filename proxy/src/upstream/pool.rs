//! Is there a connection that this request may use?
//!
//! One pool per environment, so that no environment ever meets another's connection; one list per
//! origin, so that no name meets another's. HTTP/1.1 connections are used by one exchange at a
//! time and rest here in between; HTTP/2 connections are shared while they have room. The address
//! a connection leads to is judged again by today's rules before each use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outgate_policy::{AddressRules, Destination, Scheme};

use super::lease::{Exclusive, Lease, Shared};
use super::profile::ProfileId;
use super::proxy::Trail;
use crate::limits::Limits;

/// The upstream connections of one environment.
pub(crate) struct Pool {
    connections: Mutex<Connections>,
    most: usize,
    longest: Duration,
    streams: usize,
}

/// What a connection was made for, and by what protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) destination: Destination,
    pub(crate) offer: Offer,
    /// How its TLS was verified. Whether it leads through the upstream proxy follows from the
    /// destination, for as long as the gateway runs.
    pub(crate) profile: ProfileId,
    /// What came to us by another way goes on over other connections.
    pub(crate) trail: Trail,
}

/// What is offered to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Offer {
    /// HTTP/1.1 alone: plain origins of HTTP/1.1 clients, and most WebSockets.
    Http1,
    /// HTTP/2 with prior knowledge: plain origins of clients that speak it so themselves.
    Http2,
    /// Both by ALPN: the origin chooses.
    Either,
}

#[derive(Default)]
struct Connections {
    by_origin: HashMap<Origin, OfOrigin>,
    /// All of them, resting and shared.
    count: usize,
    /// Nothing is kept any more.
    shut: bool,
}

#[derive(Default)]
struct OfOrigin {
    /// In order of age.
    resting: Vec<Resting>,
    shared: Vec<Arc<Shared>>,
}

struct Resting {
    connection: Exclusive,
    since: Instant,
}

enum Found {
    Resting(Resting),
    Shared(Lease),
}

impl Pool {
    pub(crate) fn new(limits: &Limits) -> Pool {
        Pool {
            connections: Mutex::default(),
            most: limits.idle_upstream,
            longest: limits.idle_keep_alive,
            streams: limits.streams,
        }
    }

    /// A connection to `origin` that is alive and whose address may still be dialled.
    pub(crate) async fn take(&self, origin: &Origin, rules: &AddressRules) -> Option<Lease> {
        loop {
            match self.find(origin, rules)? {
                Found::Shared(lease) => return Some(lease),
                Found::Resting(Resting { mut connection, since }) => {
                    if since.elapsed() < self.longest
                        && connection.peer().is_permitted(rules)
                        && connection.is_alive().await
                    {
                        return Some(Lease::Exclusive(connection, origin.clone()));
                    }
                }
            }
        }
    }

    /// Lets others use a fresh HTTP/2 connection too.
    pub(crate) fn share(&self, connection: Shared, origin: &Origin) -> Lease {
        let connection = Arc::new(connection);
        let lease = connection.lease();
        let mut connections = self.lock();
        if !connections.shut {
            connections.make_room(self.most);
            connections.count += 1;
            connections.by_origin.entry(origin.clone()).or_default().shared.push(connection);
        }
        lease
    }

    /// Takes a connection back whose exchange is over.
    pub(crate) fn give_back(&self, lease: Lease) {
        let Lease::Exclusive(connection, origin) = lease else { return };
        if connection.is_closed() {
            return;
        }
        let mut connections = self.lock();
        connections.make_room(self.most);
        if connections.count < self.most && !connections.shut {
            connections.count += 1;
            let resting = Resting { connection, since: Instant::now() };
            connections.by_origin.entry(origin).or_default().resting.push(resting);
        }
    }

    /// Closes what was unused for too long, and of what many used at once what is over the bound.
    pub(crate) fn sweep(&self) {
        let longest = self.longest;
        let mut connections = self.lock();
        connections.retain(
            |resting| resting.since.elapsed() < longest && !resting.connection.is_closed(),
            |shared| {
                !shared.is_closed()
                    && shared.unused_since().is_none_or(|since| since.elapsed() < longest)
            },
        );
        let unused = connections.unused().len();
        connections.drop_oldest(unused.saturating_sub(self.most));
    }

    /// Closes what nobody uses, and from now on what is given back.
    pub(crate) fn shut(&self) {
        let mut connections = self.lock();
        connections.shut = true;
        connections.retain(|_| false, |_| false);
    }

    /// Keeps connections again.
    pub(crate) fn open(&self) {
        self.lock().shut = false;
    }

    fn find(&self, origin: &Origin, rules: &AddressRules) -> Option<Found> {
        let mut connections = self.lock();
        let Connections { by_origin, count, .. } = &mut *connections;
        let known = by_origin.get_mut(origin)?;
        known.shared.retain(|shared| {
            let closed = shared.is_closed();
            *count -= usize::from(closed);
            !closed
        });
        let usable = |shared: &&Arc<Shared>| {
            shared.has_room(self.streams) && shared.peer().is_permitted(rules)
        };
        if let Some(shared) = known.shared.iter().find(usable) {
            return Some(Found::Shared(shared.lease()));
        }
        let resting = known.resting.pop()?;
        *count -= 1;
        Some(Found::Resting(resting))
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    fn retain(
        &mut self,
        resting: impl Fn(&Resting) -> bool,
        shared: impl Fn(&Arc<Shared>) -> bool,
    ) {
        self.by_origin.retain(|_, known| {
            known.resting.retain(&resting);
            known.shared.retain(&shared);
            !(known.resting.is_empty() && known.shared.is_empty())
        });
        let kept = |known: &OfOrigin| known.resting.len() + known.shared.len();
        self.count = self.by_origin.values().map(kept).sum();
    }

    /// Where there are `most`, closes the quarter of the unused ones that was unused for longest:
    /// so a client that asks for ever new names does not make every request search them all.
    fn make_room(&mut self, most: usize) {
        if self.count >= most {
            let unused = self.unused().len();
            self.drop_oldest(unused.div_ceil(4));
        }
    }

    /// When each of those that nobody uses was used last.
    fn unused(&self) -> Vec<Instant> {
        self.by_origin.values().flat_map(OfOrigin::unused).collect()
    }

    /// Closes the `number` of those unused for longest.
    fn drop_oldest(&mut self, number: usize) {
        let mut since = self.unused();
        let Some(last) = number.checked_sub(1).filter(|last| *last < since.len()) else { return };
        let (_, &mut oldest, _) = since.select_nth_unstable(last);
        self.retain(
            |resting| resting.since > oldest,
            |shared| shared.unused_since().is_none_or(|since| since > oldest),
        );
    }
}

impl OfOrigin {
    fn unused(&self) -> impl Iterator<Item = Instant> {
        let resting = self.resting.iter().map(|resting| resting.since);
        resting.chain(self.shared.iter().filter_map(|shared| shared.unused_since()))
    }
}
