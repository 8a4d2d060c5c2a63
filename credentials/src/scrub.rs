//! What of a request must not come back in its answer, and how is it taken out?
//!
//! [`Sought`] collects the values that were put on one request, and where. A [`Scrubber`] made of
//! it masks them, byte for byte, in texts and in streams: what is masked stays as long as it was,
//! so lengths hold and what frames the text stays in place.
//!
//! Each byte of a value may stand for itself, as `%XX` or as a JSON escape, and what is no letter or
//! digit as a reference of HTML, whatever the others do; the whole may be in base64, at each of its three alignments, in either alphabet, with line
//! ends in it, and that escaped in turn. What an origin does beyond that (hex, reversal, a value in
//! two halves) is not found.

mod escape;
mod needle;
mod reference;
mod scrubber;
mod sieve;
mod value;

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use zeroize::Zeroizing;

pub use self::scrubber::Scrubber;
use crate::registry::{Parameter, Substituted};
use crate::secret::Secret;

/// Shorter values are words like `blue`: to mask them would spoil answers and hide nothing.
pub use outgate_policy::SHORTEST_SCRUBBED as SHORTEST;

/// Values that were put on a request. Not to be shown.
#[derive(Default)]
pub struct Sought {
    values: Vec<(Zeroizing<Vec<u8>>, usize)>,
    places: Vec<Place>,
}

/// Where a value was put: what the audit line says of one that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into this header.
    Header(HeaderName),
    /// Into this parameter of the query.
    Parameter(Arc<str>),
    /// Somewhere in the query, for a placeholder.
    Query,
    /// Into the body, for a placeholder.
    Body,
}

impl Sought {
    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A header with the value it was given: also what it holds behind a scheme such as `Bearer`,
    /// inside `Basic`, and in a cookie.
    pub fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        value::parts_of_header(name, value.as_bytes(), |part| {
            self.add(part, Place::Header(name.clone()));
        });
    }

    /// A parameter of the query.
    pub fn parameter(&mut self, parameter: &Parameter) {
        let pair = parameter.pair().reveal();
        let value = pair.split_once('=').map_or(pair, |(_, value)| value);
        self.add(&value::percent_decoded(value.as_bytes()), Place::Parameter(parameter.name()));
    }

    /// The values in a head whose `headers` they stand in by now. What the client wrote around them
    /// is not looked for: it could choose that to make the search slow.
    pub fn substituted(&mut self, substituted: &Substituted, headers: &HeaderMap) {
        for (secret, in_header) in &substituted.values {
            let holds = |name: &&HeaderName| {
                headers.get_all(*name).iter().any(|value| {
                    memmem::find(value.as_bytes(), secret.reveal().as_bytes()).is_some()
                })
            };
            // Inside `Basic` it can't be seen.
            let name = substituted.headers.iter().find(holds).or(substituted.headers.first());
            let name = name.filter(|_| *in_header);
            self.secret(secret, name.cloned().map_or(Place::Query, Place::Header));
        }
    }

    /// A value in the place of a placeholder.
    pub fn secret(&mut self, secret: &Secret, place: Place) {
        self.add(secret.reveal().as_bytes(), place);
    }

    /// What was put on an earlier try of the same request.
    pub fn extend(&mut self, earlier: Sought) {
        for (value, place) in earlier.values {
            self.add(&value, earlier.places[place].clone());
        }
    }

    fn add(&mut self, value: &[u8], place: Place) {
        if value.len() < SHORTEST || self.values.iter().any(|(known, _)| known[..] == *value) {
            return;
        }
        let known = self.places.iter().position(|known| *known == place);
        let index = known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        });
        self.values.push((Zeroizing::new(value.to_vec()), index));
    }
}

impl fmt::Debug for Sought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sought(in {:?})", self.places)
    }
}

impl fmt::Display for Place {
    /// As the audit line says it; a parameter as `strip` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header(name) => f.write_str(name.as_str()),
            Place::Parameter(name) => write!(f, "query:{name}"),
            Place::Query => f.write_str("query"),
            Place::Body => f.write_str("body"),
        }
    }
}

#[cfg(test)]
mod tests;
