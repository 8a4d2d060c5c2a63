//! Which header fields concern only the connection they came by?
//!
//! RFC 9110 §7.6.1, and RFC 9112 §6 for framing, which the next connection builds anew.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use smallvec::SmallVec;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Removes them, those that `Connection` names among them. `Content-Length` stays: where it means
/// something it was checked by the decoder, and no `Connection` can name it away.
pub(super) fn strip(headers: &mut HeaderMap) {
    let mut named: SmallVec<[HeaderName; 4]> = SmallVec::new();
    for value in headers.get_all(header::CONNECTION) {
        named.extend(members(value).filter_map(|name| HeaderName::from_bytes(name).ok()));
    }
    for name in named {
        if name != header::HOST && name != header::CONTENT_LENGTH {
            headers.remove(name);
        }
    }
    for name in [
        header::CONNECTION,
        HTTP2_SETTINGS,
        KEEP_ALIVE,
        header::PROXY_AUTHENTICATE,
        PROXY_AUTHENTICATION_INFO,
        header::PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ] {
        headers.remove(name);
    }
}

/// Whether no coding but chunked, once, lies on the body: others would be taken off the head with
/// the connection's fields, and stay on the body (RFC 9112 §6.1).
pub(super) fn is_at_most_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(one), None) => one.as_bytes().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}

/// Whether a comma-separated field has `member`, whatever its case.
pub(super) fn has_member(headers: &HeaderMap, name: &HeaderName, member: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .any(|value| members(value).any(|m| m.eq_ignore_ascii_case(member.as_bytes())))
}

fn members(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    #[test]
    fn connection_names_fields_away_but_not_host_or_length() {
        let mut all = headers(&[
            ("connection", "close, Authorization, Host, Content-Length, X-Api-Key"),
            ("authorization", "mine"),
            ("host", "api.example.com"),
            ("content-length", "3"),
            ("x-api-key", "k"),
            ("accept", "*/*"),
        ]);
        strip(&mut all);
        let mut left: Vec<_> = all.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "content-length", "host"]);
    }

    #[test]
    fn standard_connection_fields_are_removed() {
        let mut all = headers(&[
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eDp5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
        ]);
        strip(&mut all);
        assert!(all.is_empty(), "{all:?}");
    }
}
