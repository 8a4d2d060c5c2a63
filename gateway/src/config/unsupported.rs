//! Which names of the operator's file have no effect yet?
//!
//! They are refused rather than ignored: whoever writes one counts on what it does.

use std::ops::Range;

use toml::Spanned;

use super::document::Document;

/// The first of them that the file uses, and where.
pub(super) fn first(document: &Document) -> Option<(&'static str, Range<usize>)> {
    let Document { upstream, .. } = document;
    let keys = [
        named("upstream.proxy", &upstream.proxy),
        named("upstream.no_proxy", &upstream.no_proxy),
        named("upstream.dangerously_resolve_at_proxy", &upstream.dangerously_resolve_at_proxy),
    ];
    keys.into_iter().flatten().next()
}

fn named<T>(
    name: &'static str,
    value: &Option<Spanned<T>>,
) -> Option<(&'static str, Range<usize>)> {
    value.as_ref().map(|value| (name, value.span()))
}
