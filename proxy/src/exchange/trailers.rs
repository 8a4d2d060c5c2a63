//! Which trailers may pass?

use http::{HeaderMap, HeaderName, header};

/// Drops the trailers that would frame, route or authenticate (RFC 9110 §6.5.1), concern one
/// connection, or lead around the gateway.
pub(super) fn keep_harmless(trailers: &mut HeaderMap) {
    const HARMFUL: [HeaderName; 26] = [
        HeaderName::from_static("alt-svc"),
        HeaderName::from_static("http2-settings"),
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-authentication-info"),
        HeaderName::from_static("proxy-connection"),
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::COOKIE,
        header::EXPECT,
        header::HOST,
        header::LOCATION,
        header::MAX_FORWARDS,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::RANGE,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::WWW_AUTHENTICATE,
    ];
    HARMFUL.iter().for_each(|name| drop(trailers.remove(name)));
}
