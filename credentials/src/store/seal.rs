//! How is a record sealed, so that it opens only as what it was written as?
//!
//! AES-256-GCM with a random nonce (NIST SP 800-38D §8.2.2: far fewer than 2³² records are ever
//! written with one key). Collection, id and version are bound to it: a record that is moved to
//! another id, or put beside another version, does not open. An older record that is put back
//! together with its version does: who writes the file can turn it back, which no seal can tell.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

use super::{StoreKey, Version};

/// Seals and opens with one key.
pub(super) struct Sealer(LessSafeKey);

/// The bytes are not what was sealed under this name and version with this key.
#[derive(Debug)]
pub(super) struct Unopened;

/// What a record is bound to.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) collection: u8,
    pub(super) id: &'a str,
    pub(super) version: Version,
}

impl Sealer {
    pub(super) fn new(key: &StoreKey) -> Sealer {
        let key = UnboundKey::new(&AES_256_GCM, key.bytes()).expect("the key has 32 bytes");
        Sealer(LessSafeKey::new(key))
    }

    /// The nonce and the sealed value; `None` without random bytes.
    pub(super) fn seal(&self, name: Name<'_>, value: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut sealed = Zeroizing::new(value.to_vec());
        let tag = self
            .0
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.bound()),
                &mut sealed,
            )
            .ok()?;
        Some([&nonce, sealed.as_slice(), tag.as_ref()].concat())
    }

    pub(super) fn open(
        &self,
        name: Name<'_>,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(Unopened)?;
        let mut value = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self
            .0
            .open_in_place(nonce, Aad::from(name.bound()), &mut value)
            .map_err(|_| Unopened)?
            .len();
        value.truncate(length);
        Ok(value)
    }
}

impl Name<'_> {
    /// Fixed lengths first, so that no two names have the same bytes.
    fn bound(&self) -> Vec<u8> {
        let mut bound = b"outgate store 1".to_vec();
        bound.push(self.collection);
        bound.extend_from_slice(&self.version.to_be_bytes());
        bound.extend_from_slice(self.id.as_bytes());
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_under_its_own_name_version_and_key_alone() {
        let key = |byte| StoreKey::parse(&format!("{byte:02x}").repeat(32), "it").expect("a key");
        let sealer = Sealer::new(&key(1));
        let name = Name { collection: 1, id: "a", version: 7 };
        let sealed = sealer.seal(name, b"hunter2").expect("sealed");
        assert!(!sealed.windows(7).any(|window| window == b"hunter2"));
        let opened = sealer.open(name, &sealed).expect("opened");
        assert_eq!(opened.as_slice(), b"hunter2");
        for other in
            [Name { collection: 2, ..name }, Name { id: "b", ..name }, Name { version: 8, ..name }]
        {
            assert!(sealer.open(other, &sealed).is_err());
        }
        assert!(Sealer::new(&key(2)).open(name, &sealed).is_err());
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(sealer.open(name, &damaged).is_err());
            assert!(sealer.open(name, &sealed[..at]).is_err());
        }
    }
}
