//! What does the request carry that its client did not send?
//!
//! The last step that decides what is in it. The client's own spellings of every injected header
//! go first, then each is set once. Framing comes after, when it is known what the origin speaks.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Request, Version};
use http_body::Body;
use smallvec::SmallVec;

use super::RequestHead;
use super::body::{RequestBody, Upload};
use super::expect::Hold;
use super::handshake::Handshake;
use super::pulse::Pulse;
use crate::upstream::Framing;

/// The request, and how it is to be framed for the origin.
pub(crate) fn prepare(
    head: RequestHead,
    injections: Vec<(HeaderName, HeaderValue)>,
    body: Upload,
    hold: Option<Hold>,
) -> (Request<RequestBody>, Framing) {
    let RequestHead { mut parts, authority, scheme, websocket, dialect, trailers, trail, .. } =
        head;
    let names: SmallVec<[HeaderName; 2]> =
        injections.iter().map(|(name, _)| name.clone()).collect();
    let by_http2 = parts.version == Version::HTTP_2;
    // A stream of HTTP/2 has no place for a body before the client's first frame.
    let websocket = match body.is_end_stream() {
        true => websocket,
        false => websocket.map(Handshake::by_http1_alone),
    };
    let body = RequestBody::new(body, hold, names, parts.extensions.remove::<Pulse>());
    inject(&mut parts.headers, injections);
    let request = Request::from_parts(parts, body);
    (request, Framing { authority, scheme, websocket, dialect, trailers, by_http2, trail })
}

/// Sets each header once, in the place of all spellings of it.
pub(crate) fn inject(headers: &mut HeaderMap, injections: Vec<(HeaderName, HeaderValue)>) {
    for (name, value) in injections {
        remove_spellings(headers, &name);
        headers.insert(name, value);
    }
}

/// Removes `name` in all its spellings. Origins behind CGI or WSGI read `x_api_key` as `x-api-key`:
/// a client's value must not hide there.
pub(crate) fn remove_spellings(headers: &mut HeaderMap, name: &HeaderName) {
    let twins: SmallVec<[HeaderName; 2]> =
        headers.keys().filter(|other| are_twins(other, name)).cloned().collect();
    for twin in twins {
        headers.remove(twin);
    }
}

/// Whether an origin may take both names for one.
pub(crate) fn are_twins(one: &HeaderName, other: &HeaderName) -> bool {
    let (one, other) = (one.as_str(), other.as_str());
    let letter = |byte: u8| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(letter).eq(other.bytes().map(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_each_header_once_over_every_spelling_of_the_client() {
        let mut headers = HeaderMap::new();
        let name = |text: &'static str| HeaderName::from_static(text);
        for (field, value) in [
            ("x-api-key", "mine"),
            ("x-api-key", "mine too"),
            ("x_api-key", "hidden"),
            ("x_api_key", "hidden"),
            ("x_api_keys", "other"),
        ] {
            headers.append(name(field), HeaderValue::from_static(value));
        }
        headers.append(name("api-id"), HeaderValue::from_static("hidden"));
        let injections = vec![
            (name("x-api-key"), HeaderValue::from_static("ours")),
            (name("api_id"), HeaderValue::from_static("ours")),
        ];
        inject(&mut headers, injections);
        let mut left: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            [("api_id", &b"ours"[..]), ("x-api-key", b"ours"), ("x_api_keys", b"other")]
        );
    }
}
