//! What does the gateway alone say to a client?
//!
//! A field of its own name tells a refusal from an answer. From an origin it would be a forgery, and
//! so would a reason phrase that is one of the codes.

use http::response::Parts;
use http::{HeaderMap, HeaderName};
use hyper::ext::ReasonPhrase;
use outgate_policy::Reason;
use smallvec::SmallVec;

/// What the names of all such fields begin with.
const PREFIX: &str = "outgate-";

/// Takes it out of the head of an origin's answer.
pub(super) fn strip(head: &mut Parts) {
    strip_fields(&mut head.headers);
    let phrase = head.extensions.get::<ReasonPhrase>();
    if phrase.is_some_and(|phrase| is_code(phrase.as_bytes())) {
        head.extensions.remove::<ReasonPhrase>();
    }
}

/// Takes it out of the headers or trailers of an origin's answer.
pub(super) fn strip_fields(headers: &mut HeaderMap) {
    let is_ours = |name: &&HeaderName| name.as_str().starts_with(PREFIX);
    let ours: SmallVec<[HeaderName; 1]> = headers.keys().filter(is_ours).cloned().collect();
    ours.iter().for_each(|name| drop(headers.remove(name)));
}

fn is_code(phrase: &[u8]) -> bool {
    Reason::ALL.iter().any(|reason| phrase.eq_ignore_ascii_case(reason.code().as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Response};

    use super::*;

    #[test]
    fn nothing_of_the_gateways_own_is_left_and_nothing_else_is_gone() {
        let mut response = Response::new(());
        for name in ["outgate-reason", "outgate-hop", "outgate-", "x-outgate-reason", "outgate"] {
            let name = HeaderName::from_static(name);
            response.headers_mut().append(&name, HeaderValue::from_static("a"));
            response.headers_mut().append(&name, HeaderValue::from_static("b"));
        }
        response.extensions_mut().insert(ReasonPhrase::from_static(b"Domain_Not_Allowed"));
        let (mut head, ()) = response.into_parts();
        strip(&mut head);
        let mut left: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["outgate", "x-outgate-reason"]);
        assert!(head.extensions.get::<ReasonPhrase>().is_none());
        head.extensions.insert(ReasonPhrase::from_static(b"Nobody home"));
        strip(&mut head);
        assert!(head.extensions.get::<ReasonPhrase>().is_some(), "an origin's own phrase");
    }
}
