//! Which leaves are at hand, and who signs one that isn't?

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use lru::LruCache;
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;

use crate::leaf::{Leaf, LeafIssuer, LeafName};
use crate::{Authority, CertsError};

/// The leaves of this process: issued when first asked for, kept by last use, renewed when half
/// their life is over.
///
/// The cache's lock is held for a look-up only. Whoever needs a leaf that isn't there signs it
/// under that name's own lock, so a thousand connections to one new name cost one signature and
/// hold up nobody else.
pub struct Leaves {
    issuer: LeafIssuer,
    cache: Mutex<LruCache<LeafName, Arc<Place>>>,
}

/// Where the leaf of one name is, or will be.
type Place = Mutex<Option<Leaf>>;

impl Leaves {
    /// Makes the one key pair that all leaves of this process share. At most `capacity` leaves
    /// (at least one) are kept, about 2 KiB each.
    ///
    /// # Errors
    /// The crypto library could not make a key.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Result<Self, CertsError> {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            issuer: LeafIssuer::new(authority)?,
            cache: Mutex::new(LruCache::sparse(capacity)),
        })
    }

    /// The leaf for a name or address, with its chain up to the CA.
    ///
    /// Short enough to call from async code: a look-up, or one P-256 signature.
    ///
    /// # Errors
    /// The name is neither a DNS name nor an address, or the crypto library failed. A failure is
    /// not kept.
    pub fn leaf(&self, name: &ServerName<'_>) -> Result<Arc<CertifiedKey>, CertsError> {
        self.leaf_at(name, SystemTime::now())
    }

    fn leaf_at(
        &self,
        name: &ServerName<'_>,
        now: SystemTime,
    ) -> Result<Arc<CertifiedKey>, CertsError> {
        let name = LeafName::try_from(name)?;
        let place = self.place(&name);
        let mut held = lock(&place);
        if let Some(leaf) = held.as_ref().filter(|leaf| leaf.is_fresh(now)) {
            return Ok(Arc::clone(&leaf.certified));
        }
        let leaf = self.issuer.issue(&name, now)?;
        let certified = Arc::clone(&leaf.certified);
        *held = Some(leaf);
        Ok(certified)
    }

    fn place(&self, name: &LeafName) -> Arc<Place> {
        let mut cache = lock(&self.cache);
        Arc::clone(cache.get_or_insert_ref(name, Arc::default))
    }
}

/// Nothing under these locks is ever half-written, so a panic elsewhere doesn't spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn leaves(capacity: usize) -> Leaves {
        let state = tempfile::tempdir().expect("a folder");
        let authority = Authority::open_or_create(state.path()).expect("a CA");
        Leaves::new(Arc::new(authority), capacity).expect("leaves")
    }

    fn name(text: &str) -> ServerName<'static> {
        ServerName::try_from(text.to_owned()).expect("a name")
    }

    #[test]
    fn one_name_is_signed_once_however_it_is_written() {
        let leaves = leaves(8);
        let first = leaves.leaf(&name("ok.example.test")).expect("a leaf");
        for text in ["ok.example.test", "OK.Example.Test", "ok.example.test."] {
            let again = leaves.leaf(&name(text)).expect("a leaf");
            assert!(Arc::ptr_eq(&first, &again), "{text}");
        }
        let other = leaves.leaf(&name("other.example.test")).expect("a leaf");
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&first.key, &other.key), "one key for all");
    }

    #[test]
    fn many_at_once_cost_one_signature() {
        let leaves = leaves(8);
        for round in 0..8 {
            let name = name(&format!("n{round}.example.test"));
            let barrier = Barrier::new(64);
            let ask = || {
                barrier.wait();
                leaves.leaf(&name).expect("a leaf")
            };
            let seen: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            assert!(seen.iter().all(|leaf| Arc::ptr_eq(leaf, &seen[0])));
        }
    }

    #[test]
    fn signing_one_name_holds_up_no_other() {
        let leaves = leaves(8);
        let place = leaves.place(&LeafName::Dns("slow.example.test".into()));
        let _signing = lock(&place);
        leaves.leaf(&name("other.example.test")).expect("a leaf");
    }

    #[test]
    fn endless_names_take_bounded_room() {
        let leaves = leaves(100);
        let kept = leaves.leaf(&name("kept.example.test")).expect("a leaf");
        for index in 0..50_000 {
            leaves.leaf(&name(&format!("n{index}.example.test"))).expect("a leaf");
            if index % 50 == 0 {
                let again = leaves.leaf(&name("kept.example.test")).expect("a leaf");
                assert!(Arc::ptr_eq(&kept, &again), "what is used stays");
            }
        }
        assert_eq!(lock(&leaves.cache).len(), 100);
    }

    #[test]
    fn a_capacity_of_nothing_keeps_one() {
        let leaves = leaves(0);
        leaves.leaf(&name("ok.example.test")).expect("a leaf");
        assert_eq!(lock(&leaves.cache).len(), 1);
    }

    #[test]
    fn a_leaf_is_renewed_when_half_its_life_is_over() {
        let leaves = leaves(8);
        let name = name("ok.example.test");
        let now = SystemTime::now();
        let at = |time| leaves.leaf_at(&name, time).expect("a leaf");
        let first = at(now);
        assert!(Arc::ptr_eq(&first, &at(now + 3 * DAY)));
        let second = at(now + 4 * DAY);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &at(now + 5 * DAY)));
        assert!(!Arc::ptr_eq(&second, &at(now)), "a clock that was put right must not break names");
    }
}
