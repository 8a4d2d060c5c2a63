//! Which name does an address of the sandbox's own DNS stand for?
//!
//! The gateway's DNS answers every name with a synthetic address, and a connection to that address
//! means the name again. A pool belongs to one environment alone: what another one's addresses
//! mean can't be asked.
//!
//! Nothing here runs out by time. A name is remembered until its place is needed for another one,
//! which is at least while it has connections; fresh addresses are given out before used ones, and
//! of those the one that was not asked for and not connected to for the longest goes first. Clients
//! keep answers longer than they were told (Java for ever), and so find what they knew.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use outgate_policy::{Host, Name, SYNTHETIC_IPV4, SYNTHETIC_IPV6};

/// Addresses never given out for a name, from the start of both ranges: those of the gateway's own
/// inside a sandbox.
const OWN: u32 = 256;
/// What 198.18.0.0/15 has after those, without its last, which is a broadcast address where the
/// range is local.
pub(crate) const MOST_NAMES: u32 = (1 << 17) - OWN - 1;

/// The names of one environment; cheap to clone.
#[derive(Clone)]
pub(crate) struct Names {
    pool: Arc<Mutex<Pool>>,
}

/// What a connection to an address means.
pub(crate) enum Meaning {
    /// The address itself: it is of no synthetic range.
    NotSynthetic,
    /// Nothing: it stands for no name, or no more. It must not be dialled.
    Unknown,
    /// This name, for as long as the hold is kept at least.
    Name(Host, Hold),
}

/// The addresses of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Synthetic {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// Keeps a name at its address; a connection has one for as long as it lives.
pub(crate) struct Hold {
    pool: Arc<Mutex<Pool>>,
    place: u32,
}

/// Every address stands for a name that has connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("every one of the {0} synthetic addresses has connections; raise limits.names")]
pub(crate) struct AllHeld(u32);

struct Pool {
    /// By place, in the order in which they were first needed; never more than `most`.
    names: Vec<Placed>,
    by_name: HashMap<Name, u32>,
    /// Places without a hold, the one used last at the front.
    idle: LruCache<u32, ()>,
    most: u32,
    /// The address of place 0, as a number in the range.
    start: u32,
}

struct Placed {
    name: Name,
    holds: usize,
}

impl Names {
    /// An empty pool for at most `most` names.
    pub(crate) fn new(most: usize) -> Names {
        // A client may still use an address of a gateway that ran before. Begun elsewhere, it
        // most likely stands for nothing, and not for another name.
        let start = RandomState::new().hash_one(OWN) % u64::from(MOST_NAMES);
        let most = u32::try_from(most).unwrap_or(MOST_NAMES).clamp(1, MOST_NAMES);
        let pool = Pool {
            names: Vec::new(),
            by_name: HashMap::new(),
            idle: LruCache::unbounded(),
            most,
            start: u32::try_from(start).expect("less than MOST_NAMES"),
        };
        Names { pool: Arc::new(Mutex::new(pool)) }
    }

    /// The addresses that stand for `name` from now on.
    pub(crate) fn address_of(&self, name: &Name) -> Result<Synthetic, AllHeld> {
        let mut pool = lock(&self.pool);
        let place = match pool.by_name.get(name).copied() {
            Some(place) => {
                pool.idle.promote(&place);
                place
            }
            None => pool.place(name)?,
        };
        Ok(Synthetic::at(pool.number(place)))
    }

    /// What a connection to `address` means. An IPv4 address inside a mapped one is that IPv4.
    pub(crate) fn name_of(&self, address: IpAddr) -> Meaning {
        let Some(number) = number_of(address.to_canonical()) else {
            return Meaning::NotSynthetic;
        };
        let mut pool = lock(&self.pool);
        let Some(place) = pool.place_of(number) else {
            return Meaning::Unknown;
        };
        let name = pool.hold(place);
        Meaning::Name(Host::Name(name), Hold { pool: Arc::clone(&self.pool), place })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.pool).release(self.place);
    }
}

impl Pool {
    /// A place for a name that has none: a fresh one, else the oldest idle one.
    fn place(&mut self, name: &Name) -> Result<u32, AllHeld> {
        let fresh = u32::try_from(self.names.len()).expect("at most MOST_NAMES");
        let place = if fresh < self.most {
            self.names.push(Placed { name: name.clone(), holds: 0 });
            fresh
        } else {
            let (oldest, ()) = self.idle.pop_lru().ok_or(AllHeld(self.most))?;
            let placed = &mut self.names[oldest as usize];
            self.by_name.remove(&placed.name);
            placed.name = name.clone();
            oldest
        };
        self.by_name.insert(name.clone(), place);
        self.idle.put(place, ());
        Ok(place)
    }

    fn hold(&mut self, place: u32) -> Name {
        self.idle.pop(&place);
        let placed = &mut self.names[place as usize];
        placed.holds += 1;
        placed.name.clone()
    }

    fn release(&mut self, place: u32) {
        let placed = &mut self.names[place as usize];
        placed.holds -= 1;
        if placed.holds == 0 {
            self.idle.put(place, ());
        }
    }

    /// The number of a place's addresses in their ranges.
    fn number(&self, place: u32) -> u32 {
        OWN + (self.start + place) % MOST_NAMES
    }

    /// The place with this number, if it stands for a name.
    fn place_of(&self, number: u32) -> Option<u32> {
        let turned = number.checked_sub(OWN).filter(|turned| *turned < MOST_NAMES)?;
        let place = (turned + MOST_NAMES - self.start) % MOST_NAMES;
        ((place as usize) < self.names.len()).then_some(place)
    }
}

impl Synthetic {
    fn at(number: u32) -> Synthetic {
        Synthetic {
            v4: Ipv4Addr::from(SYNTHETIC_IPV4.network().to_bits() + number),
            v6: Ipv6Addr::from(SYNTHETIC_IPV6.network().to_bits() + u128::from(number)),
        }
    }
}

/// The number of a synthetic address in its range; others have none.
fn number_of(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) if SYNTHETIC_IPV4.contains(&address) => {
            Some(address.to_bits() - SYNTHETIC_IPV4.network().to_bits())
        }
        IpAddr::V6(address) if SYNTHETIC_IPV6.contains(&address) => {
            let number = address.to_bits() - SYNTHETIC_IPV6.network().to_bits();
            // The /64 is far wider than what is given out of it.
            Some(u32::try_from(number).unwrap_or(u32::MAX))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// Nothing panics under the lock, so that what it guards is whole even then.
fn lock(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
