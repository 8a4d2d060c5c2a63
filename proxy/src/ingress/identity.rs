//! Whose traffic is this?
//!
//! Known from the listener, else from the client's source address and interface, else from
//! `Proxy-Authorization: Basic base64(environment_id:token)`, with SOCKS from user and password;
//! never from anything else that the sandbox says.

mod clients;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, PROXY_AUTHORIZATION};
use ipnet::IpNet;
use outgate_policy::EnvironmentId;

use self::clients::Ways;
pub use self::clients::{Clients, Token};
use super::interface::Interface;
use crate::listener::Owner;
use crate::snapshot::Environment;

/// Every environment of the gateway and the ways to know their clients.
#[derive(Default)]
pub struct Environments {
    all: Vec<Known>,
    by_id: HashMap<EnvironmentId, usize>,
    ways: Ways,
    were_several: bool,
}

struct Known {
    environment: Arc<Environment>,
    token: Option<Token>,
    provable: bool,
    /// The same without a word of theirs: by address or interface.
    seen: bool,
}

/// Whose everybody is who comes in by a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Nobody's: clients are known otherwise.
    Nobody,
    /// This environment's.
    Named(EnvironmentId),
    /// The only environment's.
    Only,
    /// The only environment's, unless that one has ways of its own to know its clients: they would
    /// never be asked.
    OnlyIfUnprovable,
}

/// What the listener, the source address and the interface of a connection tell of its environment.
pub(crate) enum Provenance {
    /// Nothing.
    Unknown,
    /// It is this one.
    Known(Arc<Environment>),
    /// It is this one, once a token proves it: anybody can reach the listener.
    Unproven(Arc<Environment>),
    /// What is known is contradictory, or the listener's environment is no more.
    Nobody,
}

/// The environment could not be told, or what was said contradicts what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unidentified;

impl Environments {
    /// No environment yet. `were_several`: there was more than one at some time. Then a listener
    /// that is the only one's is nobody's: sandboxes of those that are gone may still come in.
    pub fn new(were_several: bool) -> Environments {
        Environments { were_several, ..Environments::default() }
    }

    /// Adds an environment and how its clients are known. Its id must be new.
    pub fn add(&mut self, environment: Arc<Environment>, clients: Clients) {
        let (provable, seen) = (clients.are_provable(), clients.are_seen());
        self.ways.add(&clients, &environment);
        self.by_id.insert(environment.id().clone(), self.all.len());
        self.all.push(Known { environment, token: clients.token, provable, seen });
    }

    /// Every environment, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Environment>> {
        self.all.iter().map(|known| &known.environment)
    }

    /// The environment of this id.
    pub fn get(&self, id: &EnvironmentId) -> Option<&Arc<Environment>> {
        self.known(id).map(|known| &known.environment)
    }

    /// An environment with clients that come from an address of `block`.
    pub fn overlapping(&self, block: &IpNet) -> Option<&Arc<Environment>> {
        self.ways.overlapping(block)
    }

    /// Whether clients of this environment, or without one of any, can prove whose they are, on a
    /// listener where they are `asked` for a token or not.
    pub fn are_clients_provable(&self, of: Option<&EnvironmentId>, asked: bool) -> bool {
        let provable = |known: &Known| if asked { known.provable } else { known.seen };
        match of {
            Some(id) => self.known(id).is_some_and(provable),
            None => self.all.iter().any(provable),
        }
    }

    /// What is known of a connection from `client` that came in by `listener`.
    pub(crate) fn of_connection(
        &self,
        listener: &Owner,
        client: Option<IpAddr>,
        interface: Option<Interface>,
    ) -> Provenance {
        let by_client = match client {
            Some(client) => self.ways.lead(client.to_canonical(), interface),
            None => Ok(None),
        };
        let (Ok(owner), Ok(by_client)) = (self.owner(&listener.ownership), by_client) else {
            return Provenance::Nobody;
        };
        match (owner, by_client) {
            (None, None) => Provenance::Unknown,
            (None, Some(environment)) => Provenance::Known(Arc::clone(environment)),
            (Some(owner), Some(other)) if !Arc::ptr_eq(owner, other) => Provenance::Nobody,
            (Some(owner), None) if listener.public => Provenance::Unproven(Arc::clone(owner)),
            (Some(owner), _) => Provenance::Known(Arc::clone(owner)),
        }
    }

    fn owner(&self, ownership: &Ownership) -> Result<Option<&Arc<Environment>>, Unidentified> {
        let only = match self.all.as_slice() {
            [only] if !self.were_several => Some(only),
            _ => None,
        };
        match ownership {
            Ownership::Nobody => Ok(None),
            Ownership::Named(id) => self.get(id).map(Some).ok_or(Unidentified),
            Ownership::Only => Ok(only.map(|known| &known.environment)),
            Ownership::OnlyIfUnprovable => {
                Ok(only.filter(|known| !known.provable).map(|known| &known.environment))
            }
        }
    }

    /// The environment of one request, by what is known of its connection and by its header.
    pub(crate) fn of_request(
        &self,
        connection: &Provenance,
        headers: &HeaderMap,
    ) -> Result<Arc<Environment>, Unidentified> {
        let mut claims = headers.get_all(PROXY_AUTHORIZATION).iter();
        let claim = match (claims.next(), claims.next()) {
            (None, _) => None,
            (Some(claim), None) => Some(basic(claim.as_bytes()).ok_or(Unidentified)?),
            (Some(_), Some(_)) => return Err(Unidentified),
        };
        self.of_claim(connection, claim.as_ref())
    }

    /// The same by what the client claims, if it claims anything.
    pub(crate) fn of_claim(
        &self,
        connection: &Provenance,
        claim: Option<&Claim>,
    ) -> Result<Arc<Environment>, Unidentified> {
        let Some(claim) = claim else { return connection.known().cloned().ok_or(Unidentified) };
        let Known { environment: named, token, .. } = self.claimed(claim).ok_or(Unidentified)?;
        let proven = token.as_ref().map(|token| token.matches(&claim.password));
        let agreed = match connection {
            Provenance::Unknown => proven == Some(true),
            Provenance::Known(known) => Arc::ptr_eq(known, named) && proven != Some(false),
            Provenance::Unproven(owner) => Arc::ptr_eq(owner, named) && proven == Some(true),
            Provenance::Nobody => false,
        };
        if agreed { Ok(Arc::clone(named)) } else { Err(Unidentified) }
    }

    fn claimed(&self, claim: &Claim) -> Option<&Known> {
        let user = std::str::from_utf8(&claim.user).ok()?;
        self.known(&EnvironmentId::parse(user).ok()?)
    }

    fn known(&self, id: &EnvironmentId) -> Option<&Known> {
        self.by_id.get(id).and_then(|at| self.all.get(*at))
    }
}

impl Provenance {
    /// The environment, if no more is needed to tell it.
    pub(crate) fn known(&self) -> Option<&Arc<Environment>> {
        match self {
            Provenance::Known(environment) => Some(environment),
            Provenance::Unknown | Provenance::Unproven(_) | Provenance::Nobody => None,
        }
    }
}

/// What a client says of itself: an environment's id, and the token that proves it.
pub(crate) struct Claim {
    pub(crate) user: Vec<u8>,
    pub(crate) password: Vec<u8>,
}

/// RFC 7617.
fn basic(value: &[u8]) -> Option<Claim> {
    let (scheme, encoded) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|b| *b == b':')?;
    Some(Claim { user: decoded[..colon].to_vec(), password: decoded[colon + 1..].to_vec() })
}

#[cfg(test)]
mod tests;
