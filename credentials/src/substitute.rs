//! How does a value take its placeholder's place in a request's head?
//!
//! One pass over each text: what was put in is never looked at again. A text that holds no
//! placeholder is left as it is, byte for byte.

mod basic;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use smallvec::SmallVec;
use zeroize::Zeroizing;

use crate::placeholder::{LENGTH, Tag, find};
use crate::query::escape;
use crate::secret::Secret;

/// The placeholders of one head, by where they stand.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) in_headers: SmallVec<[Tag; 2]>,
    pub(crate) in_query: SmallVec<[Tag; 1]>,
    pub(crate) in_path: bool,
}

/// What stands for one placeholder.
#[derive(Clone, Debug)]
pub(crate) struct Stand {
    pub(crate) tag: Tag,
    pub(crate) prefix: String,
    pub(crate) value: Secret,
}

/// Why nothing was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// Cut, or glued to another.
    #[error("a placeholder stands without the prefix that belongs to it")]
    Prefix,
    /// The value does not fit where the placeholder stood.
    #[error("a value does not fit where its placeholder stands")]
    Value,
}

/// Whether a head holds a placeholder at all. For most requests this is all that ever happens.
pub fn holds_placeholders(headers: &HeaderMap, target: &PathAndQuery) -> bool {
    find(target.as_str().as_bytes(), 0).is_some()
        || headers.values().any(|value| {
            find(value.as_bytes(), 0).is_some()
                || basic::decoded(value.as_bytes())
                    .is_some_and(|(text, _)| find(&text, 0).is_some())
        })
}

impl Found {
    /// How many placeholders are in a text.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn look_in(text: &[u8]) -> usize {
        let mut found = SmallVec::<[Tag; 2]>::new();
        tags(text, &mut found);
        found.len()
    }

    pub(crate) fn look(headers: &HeaderMap, target: &PathAndQuery) -> Found {
        let mut found = Found::default();
        for value in headers.values() {
            tags(value.as_bytes(), &mut found.in_headers);
            if let Some((text, _)) = basic::decoded(value.as_bytes()) {
                tags(&text, &mut found.in_headers);
            }
        }
        tags(target.query().unwrap_or_default().as_bytes(), &mut found.in_query);
        found.in_path = find(target.path().as_bytes(), 0).is_some();
        found
    }
}

/// Puts values into the headers that hold placeholders, and tells which those are.
pub(crate) fn headers(
    headers: &mut HeaderMap,
    stands: &[Stand],
) -> Result<SmallVec<[HeaderName; 2]>, Misfit> {
    let mut changed = SmallVec::new();
    for (name, value) in headers.iter_mut() {
        let Some(text) = header(value.as_bytes(), stands)? else { continue };
        *value = HeaderValue::from_bytes(&text).map_err(|_| Misfit::Value)?;
        value.set_sensitive(true);
        if !changed.contains(name) {
            changed.push(name.clone());
        }
    }
    Ok(changed)
}

/// Puts values, escaped, into a query that holds placeholders.
pub(crate) fn query(
    target: &PathAndQuery,
    stands: &[Stand],
) -> Result<Option<PathAndQuery>, Misfit> {
    let Some(query) = target.query() else { return Ok(None) };
    let Some(query) = swap(query.as_bytes(), stands, |value| Zeroizing::new(escape(value)))? else {
        return Ok(None);
    };
    let target = [target.path().as_bytes(), b"?", &query].concat();
    PathAndQuery::from_maybe_shared(target).map(Some).map_err(|_| Misfit::Value)
}

/// A header's value with values put in; `None` where there is nothing to put in.
fn header(text: &[u8], stands: &[Stand]) -> Result<Option<Zeroizing<Vec<u8>>>, Misfit> {
    let plain = |value: &str| Zeroizing::new(value.to_owned());
    if let Some((inside, form)) = basic::decoded(text)
        && let Some(changed) = swap(&inside, stands, plain)?
    {
        return Ok(Some(form.encoded(&changed)));
    }
    swap(text, stands, plain)
}

fn swap(
    text: &[u8],
    stands: &[Stand],
    form: impl Fn(&str) -> Zeroizing<String>,
) -> Result<Option<Zeroizing<Vec<u8>>>, Misfit> {
    // Grown without zeroing what it moved from, if the values are longer than their placeholders
    // by more than this.
    let mut swapped = Zeroizing::new(Vec::with_capacity(2 * text.len() + 1024));
    let mut copied = 0;
    let mut from = 0;
    while let Some((at, tag)) = find(text, from) {
        from = at + LENGTH;
        let Some(stand) = stands.iter().find(|stand| stand.tag == tag) else { continue };
        let prefix = stand.prefix.as_bytes();
        let Some(before) = text[copied..at].strip_suffix(prefix) else {
            return Err(Misfit::Prefix);
        };
        swapped.extend_from_slice(before);
        swapped.extend_from_slice(form(stand.value.reveal()).as_bytes());
        copied = from;
    }
    if copied == 0 {
        return Ok(None);
    }
    swapped.extend_from_slice(&text[copied..]);
    Ok(Some(swapped))
}

fn tags<A: smallvec::Array<Item = Tag>>(text: &[u8], into: &mut SmallVec<A>) {
    let mut from = 0;
    while let Some((at, tag)) = find(text, from) {
        from = at + LENGTH;
        if !into.contains(&tag) {
            into.push(tag);
        }
    }
}

#[cfg(test)]
mod tests;
