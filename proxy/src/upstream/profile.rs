//! As whom do we meet an origin, and whom do we take for it?
//!
//! Most origins of an environment are met alike. An entry's `origin` says otherwise for its own:
//! other roots, a certificate of ours, a newer TLS. Sessions and connections of one such profile
//! are no other's.

use std::collections::HashMap;
use std::sync::Arc;

use outgate_certs::{CertsError, OriginProfile, OriginRoots, OriginTls};
use outgate_policy::Scheme;

use super::pool::Offer;

/// The protocols offered by ALPN.
const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];
/// Towards origins of WebSockets.
const ALPN_HTTP1: &[&[u8]] = &[b"http/1.1"];

/// Our side of TLS with the origins of one environment under one profile.
pub(crate) struct OriginClient {
    id: ProfileId,
    either: OriginTls,
    http1: OriginTls,
}

/// Tells profiles apart: by all that their files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProfileId {
    /// What the operator's file says for everybody.
    Common,
    /// An entry's own.
    Own([u8; 32]),
}

/// The profiles that entries of one environment have for themselves.
#[derive(Default)]
pub struct Profiles(HashMap<usize, Arc<OriginClient>>);

impl OriginClient {
    /// What meets every origin whose entry says nothing else.
    pub(crate) fn common(roots: &OriginRoots) -> Result<OriginClient, CertsError> {
        Ok(OriginClient {
            id: ProfileId::Common,
            either: OriginTls::new(roots, ALPN)?,
            http1: OriginTls::new(roots, ALPN_HTTP1)?,
        })
    }

    fn own(profile: &OriginProfile, roots: &OriginRoots) -> Result<OriginClient, CertsError> {
        Ok(OriginClient {
            id: ProfileId::Own(*profile.fingerprint()),
            either: OriginTls::under(profile, roots, ALPN)?,
            http1: OriginTls::under(profile, roots, ALPN_HTTP1)?,
        })
    }

    pub(super) fn tls(&self, offer: Offer) -> &OriginTls {
        match offer {
            Offer::Http1 => &self.http1,
            Offer::Http2 | Offer::Either => &self.either,
        }
    }

    /// In clear all profiles are one.
    pub(super) fn id_for(&self, scheme: Scheme) -> ProfileId {
        match scheme {
            Scheme::Http => ProfileId::Common,
            Scheme::Https => self.id,
        }
    }
}

impl Profiles {
    /// Those of a new generation. One that says what one of `before` said is that one, with its
    /// sessions and connections. `roots` are trusted where a profile names none.
    ///
    /// # Errors
    /// There are no roots.
    pub fn new(
        own: &[(usize, OriginProfile)],
        before: &Profiles,
        roots: &OriginRoots,
    ) -> Result<Profiles, CertsError> {
        let mut known: HashMap<ProfileId, Arc<OriginClient>> =
            before.0.values().map(|client| (client.id, Arc::clone(client))).collect();
        let mut profiles = HashMap::with_capacity(own.len());
        for (entry, profile) in own {
            let id = ProfileId::Own(*profile.fingerprint());
            let client = match known.get(&id) {
                Some(client) => Arc::clone(client),
                None => {
                    let client = Arc::new(OriginClient::own(profile, roots)?);
                    known.insert(id, Arc::clone(&client));
                    client
                }
            };
            profiles.insert(*entry, client);
        }
        Ok(Profiles(profiles))
    }

    /// Tells whether two entries, or one in two generations, are met alike.
    pub(crate) fn id_of(&self, entry: usize) -> ProfileId {
        self.of(entry).map_or(ProfileId::Common, |client| client.id)
    }

    /// That of `entry`, if it has one.
    pub(crate) fn of(&self, entry: usize) -> Option<&OriginClient> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&entry).map(|client| &**client),
        }
    }
}
