//! May this connection be opened, may this request be sent? The only evaluator.
//!
//! Among the entries whose domain matches, those with the most specific pattern alone decide.
//! What is injected comes from every entry that matches wholly, the more specific winning.

mod denials;
mod index;
mod injection;

use std::collections::BTreeSet;
use std::net::IpAddr;

use http::HeaderName;

use crate::address::{AddressClass, is_local_name};
use crate::destination::{Destination, Scheme};
use crate::entry::{Entry, OriginOptions, Protocol};
use crate::id::CredentialId;
use crate::path::ComparedPath;
use crate::pattern::HostPattern;
use crate::verdict::{Denial, RequestVerdict, TunnelVerdict};

use denials::Refusing;
use index::{Groups, Index};
use injection::Merged;

/// The compiled `network` of one environment. Immutable; a change is another policy.
#[derive(Debug)]
pub struct Policy {
    /// `network: "disabled"`: not even an empty list.
    disabled: bool,
    entries: Vec<Entry>,
    index: Index,
}

/// What policy needs to know of a request.
#[derive(Copy, Clone, Debug)]
pub struct Request<'a> {
    /// Where it goes.
    pub destination: &'a Destination,
    /// Whether it goes there over TLS.
    pub scheme: Scheme,
    /// The method, as sent.
    pub method: &'a str,
    /// The path as sent, without its query.
    pub path: &'a str,
}

impl Policy {
    /// The policy of an environment without `network`: every public destination on 80 and 443.
    pub fn open() -> Policy {
        Policy::of_entries(vec![Entry::plain(HostPattern::Any)])
    }

    /// The policy of an empty allowlist, and of an environment that has no valid file yet.
    pub fn deny_all() -> Policy {
        Policy::of_entries(Vec::new())
    }

    /// The policy of `network: "disabled"`.
    pub fn disabled() -> Policy {
        Policy { disabled: true, ..Policy::deny_all() }
    }

    /// `entries` in the order of the file.
    pub(crate) fn of_entries(entries: Vec<Entry>) -> Policy {
        let index = Index::new(entries.iter().map(|entry| &entry.pattern));
        Policy { disabled: false, entries, index }
    }

    /// How many entries the allowlist has.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Every port that an entry allows something on, each once.
    pub fn ports(&self) -> BTreeSet<u16> {
        let allowing = self.entries.iter().filter(|entry| !entry.deny);
        allowing.flat_map(|entry| entry.ports.listed()).copied().collect()
    }

    /// What an entry's `domain` matches.
    pub fn pattern(&self, entry: usize) -> Option<&HostPattern> {
        self.entries.get(entry).map(|entry| &entry.pattern)
    }

    /// Entries that say how their origin is met: their index, and what they say.
    pub fn origins(&self) -> impl Iterator<Item = (usize, &OriginOptions)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((index, entry.origin.as_deref()?)))
    }

    /// Whether nothing leaves at all, DNS included.
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Whether an entry other than `*` allows something there: where a value whose owner named no
    /// domains may go.
    pub fn names(&self, to: &Destination) -> bool {
        let narrower = |entry: &Entry| !entry.deny && entry.pattern != HostPattern::Any;
        self.matching(to).is_ok_and(|groups| {
            groups
                .most_specific_first()
                .any(|group| self.at_port(group, to.port).any(|(_, entry)| narrower(entry)))
        })
    }

    /// Entries that name a credential: their index, its id, and the headers set beside it.
    pub fn credentials(
        &self,
    ) -> impl Iterator<Item = (usize, &CredentialId, impl Iterator<Item = &HeaderName>)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let headers = entry.headers.iter().map(|(name, _)| name);
            entry.credential.as_ref().map(|id| (index, id, headers))
        })
    }

    /// Whether a connection may be opened at all, before anything is known of the requests that it
    /// will carry. Method and path are judged with each of those.
    pub fn judge_tunnel(&self, to: &Destination) -> Result<TunnelVerdict, Denial> {
        let groups = self.matching(to)?;
        let deciding = self.at_port(groups.deciding(), to.port);
        let denying = deciding.clone().find(|(_, entry)| entry.deny && entry.is_whole());
        if let Some((index, _)) = denying {
            return Err(Refusing(to).by_entry(index));
        }
        match deciding.clone().find(|(_, entry)| !entry.deny) {
            Some((index, entry)) => Ok(TunnelVerdict {
                entry: index,
                protocol: entry.protocol,
                tls: entry.tls,
                allow_ech: entry.allow_ech,
            }),
            None => Err(self.no_entry_at_port(&groups, to)),
        }
    }

    /// Whether a request may be sent, and what is changed on it.
    pub fn judge_request(&self, request: &Request<'_>) -> Result<RequestVerdict, Denial> {
        let to = request.destination;
        let groups = self.matching(to)?;
        let path = self.compared_path(&groups, request)?;
        let matches = |entry: &Entry| {
            entry.matches_method(request.method) && entry.matches_path(path.as_ref())
        };

        let deciding = self.at_port(groups.deciding(), to.port);
        if let Some((index, _)) = deciding.clone().find(|(_, entry)| entry.deny && matches(entry)) {
            return Err(Refusing(to).by_entry(index));
        }
        let mut deciding = deciding.filter(|(_, entry)| !entry.deny && matches(entry));
        let Some((index, entry)) = deciding.next() else {
            return Err(self.no_entry_for_request(&groups, request));
        };
        let plaintext = entry.allow_plaintext && deciding.all(|(_, entry)| entry.allow_plaintext);
        if entry.protocol == Protocol::Tcp {
            return Err(Refusing(to).http_over_tcp(index));
        }

        let mut merged = Merged::default();
        for group in groups.most_specific_first() {
            // The later entry of a group wins.
            for (_, entry) in self.at_port(group, to.port).rev() {
                if !entry.deny && matches(entry) {
                    merged.add(entry);
                }
            }
        }
        merged.into_verdict(index, plaintext, request)
    }

    /// The groups of entries whose domain matches, or why there are none.
    fn matching(&self, to: &Destination) -> Result<Groups<'_>, Denial> {
        let refusing = Refusing(to);
        if self.disabled {
            return Err(refusing.network_disabled());
        }
        if is_local_name(&to.host) {
            return Err(refusing.local_name());
        }
        let groups = self.index.groups(&to.host);
        if !groups.is_empty() {
            return Ok(groups);
        }
        match (&to.host, self.index.has_any()) {
            // `*` would have matched, were the literal public.
            (crate::Host::Address(address), true) => Err(refusing.not_public(class_of(*address))),
            _ => Err(refusing.not_listed()),
        }
    }

    /// The entries of a group that speak of this port.
    fn at_port<'p>(
        &'p self,
        group: &'p [u32],
        port: u16,
    ) -> impl DoubleEndedIterator<Item = (usize, &'p Entry)> + Clone {
        group
            .iter()
            .map(|index| (*index as usize, &self.entries[*index as usize]))
            .filter(move |(_, entry)| entry.ports.contains(port))
    }

    /// The path as it is compared, if an entry that could match looks at paths. An entry that only
    /// injects counts: what it would add must not depend on how a path is read either.
    fn compared_path<'a>(
        &self,
        groups: &Groups<'_>,
        request: &Request<'a>,
    ) -> Result<Option<ComparedPath<'a>>, Denial> {
        let port = request.destination.port;
        let applies = groups
            .most_specific_first()
            .flat_map(|group| self.at_port(group, port))
            .any(|(_, entry)| !entry.paths.is_empty() && entry.matches_method(request.method));
        if !applies {
            return Ok(None);
        }
        match ComparedPath::new(request.path) {
            Ok(path) => Ok(Some(path)),
            Err(_) => Err(Refusing(request.destination).ambiguous_path(request.path)),
        }
    }

    fn no_entry_at_port(&self, groups: &Groups<'_>, to: &Destination) -> Denial {
        let deciding = groups.deciding();
        let mut all =
            deciding.iter().map(|index| (*index as usize, &self.entries[*index as usize]));
        match all.clone().next() {
            // Nothing but denials, each for some requests: the rest is allowed by nothing.
            Some((index, _)) if all.all(|(_, entry)| entry.deny) => Refusing(to).by_entry(index),
            _ => Refusing(to).port(),
        }
    }

    fn no_entry_for_request(&self, groups: &Groups<'_>, request: &Request<'_>) -> Denial {
        let to = request.destination;
        let mut allowing =
            self.at_port(groups.deciding(), to.port).filter(|(_, entry)| !entry.deny).peekable();
        if allowing.peek().is_none() {
            return self.no_entry_at_port(groups, to);
        }
        if allowing.any(|(_, entry)| entry.matches_method(request.method)) {
            Refusing(to).path(request.path)
        } else {
            Refusing(to).method(request.method)
        }
    }
}

/// The class of a literal that `*` did not match.
fn class_of(address: IpAddr) -> AddressClass {
    AddressClass::of(address).unwrap_or(AddressClass::Reserved)
}
