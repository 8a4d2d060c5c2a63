//! How is a request written for what the origin speaks?
//!
//! Framing, the name of the origin and the connection's own fields are made here, never copied
//! from the client. Both ways start from any state, so that a request can be framed anew when it
//! is sent again over another protocol.

use http::header::{self, HeaderMap, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Uri, Version};
use http_body::Body;
use outgate_policy::Scheme;

use super::proxy::Trail;
use crate::exchange::body::RequestBody;
use crate::exchange::handshake::Handshake;
use crate::exchange::reply::Dialect;

/// What the framing of a permitted request depends on.
pub(crate) struct Framing {
    /// The destination, without its scheme's default port.
    pub(crate) authority: HeaderValue,
    pub(crate) scheme: Scheme,
    /// It asks for a WebSocket.
    pub(crate) websocket: Option<Handshake>,
    /// Its client speaks gRPC, or plain HTTP.
    pub(crate) dialect: Dialect,
    /// Its client takes trailers.
    pub(crate) trailers: bool,
    /// Its client speaks HTTP/2.
    pub(crate) by_http2: bool,
    /// The gateways that its client's tunnel came through.
    pub(crate) trail: Trail,
}

impl Framing {
    /// RFC 9112: origin-form target, `Host`, and one length.
    pub(crate) fn for_http1(&self, mut request: Request<RequestBody>) -> Request<RequestBody> {
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = Uri::from(path(&request));
        let exact = request.body().size_hint().exact();
        let length_expected = [Method::POST, Method::PUT, Method::PATCH];
        let says_zero = length_expected.contains(request.method());
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        frame(headers, exact, says_zero);
        if self.trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        }
        if let Some(websocket) = &self.websocket {
            websocket.ask_http1(headers);
            *request.method_mut() = Method::GET;
        }
        request
    }

    /// RFC 9113 §8.3.1: the target in pseudo-fields, which hyper takes from an absolute URI, and
    /// no field that is a connection's own.
    pub(super) fn for_http2(&self, mut request: Request<RequestBody>) -> Request<RequestBody> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(match self.scheme {
            Scheme::Http => http::uri::Scheme::HTTP,
            Scheme::Https => http::uri::Scheme::HTTPS,
        });
        uri.authority = Authority::try_from(self.authority.as_bytes()).ok();
        uri.path_and_query = Some(path(&request));
        *request.version_mut() = Version::HTTP_2;
        // hyper tells nothing of interim answers over HTTP/2.
        request.body_mut().release();
        *request.uri_mut() = Uri::from_parts(uri).expect("scheme, authority and path are there");
        let exact = request.body().size_hint().exact();
        let headers = request.headers_mut();
        for name in [
            header::HOST,
            header::CONNECTION,
            header::UPGRADE,
            header::TRANSFER_ENCODING,
            header::EXPECT,
        ] {
            headers.remove(name);
        }
        if let Some(length) = exact.filter(|length| *length > 0) {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        if self.trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        if let Some(websocket) = &self.websocket {
            websocket.ask_http2(&mut request);
        }
        request
    }
}

fn path(request: &Request<RequestBody>) -> PathAndQuery {
    let path = request.uri().path_and_query().cloned();
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// RFC 9112 §6.2 and §6.3. An unknown length has to be said: hyper takes a GET without framing for
/// one without a body.
fn frame(headers: &mut HeaderMap, exact: Option<u64>, says_zero: bool) {
    match exact {
        Some(0) => {
            // RFC 9110 §8.6: some origins answer 411 to a POST without a length.
            if says_zero {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        Some(length) => {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        None => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
}
