//! What do client and origin say to begin a WebSocket?
//!
//! Over HTTP/1.1 the client asks GET with `Upgrade` and a key, and 101 proves by that key that the
//! origin has understood (RFC 6455 §4). Over HTTP/2 it is CONNECT with `:protocol`, answered by 200
//! (RFC 8441 §5). Each leg says it in its own way; policy is asked about the same GET for both.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};
use hyper::ext::Protocol;
use outgate_policy::{Denial, Reason};

use super::hop_by_hop::has_member;

const WEBSOCKET: Protocol = Protocol::from_static("websocket");
/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES: usize = 16;

/// What one client's request for a WebSocket depends on.
#[derive(Clone)]
pub(crate) struct Handshake {
    client: Client,
}

#[derive(Clone)]
enum Client {
    /// Its key, if an origin of HTTP/2 may be asked and it sent one that is any good: an origin of
    /// HTTP/1.1 answers to that itself.
    Http1(Option<HeaderValue>),
    /// A key of ours, for an origin of HTTP/1.1.
    Http2(HeaderValue),
}

/// What an origin's answer means.
pub(super) enum Outcome {
    /// From here on it is a WebSocket.
    Begun,
    /// An answer like any other.
    Declined,
    /// Neither.
    Broken(&'static str),
}

/// Whether this CONNECT is for a WebSocket (RFC 8441 §4).
pub(super) fn is_extended(parts: &Parts) -> bool {
    let protocol = parts.extensions.get::<Protocol>();
    parts.method == Method::CONNECT
        && protocol.is_some_and(|protocol| protocol.as_str().eq_ignore_ascii_case("websocket"))
}

impl Handshake {
    /// Reads what the head asks for; of CONNECT for a WebSocket it makes the GET that it stands for.
    pub(super) fn read(parts: &mut Parts) -> Result<Option<Handshake>, Denial> {
        if parts.method == Method::CONNECT {
            if !is_extended(parts) {
                let message = "CONNECT inside a tunnel: ask the proxy itself for another tunnel";
                return Err(Denial::new(Reason::ConnectInTunnel, message));
            }
            parts.extensions.remove::<Protocol>();
            parts.method = Method::GET;
            return Ok(Some(Handshake { client: Client::Http2(fresh_key()) }));
        }
        // The only protocol that may be upgraded to (RFC 6455 §4.1).
        let upgrades = parts.method == Method::GET
            && parts.version == Version::HTTP_11
            && names_websocket(&parts.headers);
        let handshake = || Handshake { client: Client::Http1(good_key(&parts.headers)) };
        Ok(upgrades.then(handshake))
    }

    /// Whether the client speaks HTTP/2.
    pub(crate) fn is_by_http2(&self) -> bool {
        matches!(self.client, Client::Http2(_))
    }

    /// Whether an origin of HTTP/2 can be asked: the client's own key has to be answered then.
    pub(crate) fn may_be_http2(&self) -> bool {
        !matches!(self.client, Client::Http1(None))
    }

    /// The same, for no origin of HTTP/2.
    pub(super) fn by_http1_alone(self) -> Handshake {
        match self.client {
            Client::Http1(_) => Handshake { client: Client::Http1(None) },
            Client::Http2(_) => self,
        }
    }

    /// Asks by HTTP/1.1.
    pub(crate) fn ask_http1(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Client::Http2(key) = &self.client {
            headers.insert(header::SEC_WEBSOCKET_KEY, key.clone());
        }
    }

    /// Asks by HTTP/2, where there is no key.
    pub(crate) fn ask_http2<B>(&self, request: &mut http::Request<B>) {
        *request.method_mut() = Method::CONNECT;
        request.extensions_mut().insert(WEBSOCKET);
        request.headers_mut().remove(header::SEC_WEBSOCKET_KEY);
    }

    /// What the origin's answer means.
    pub(super) fn outcome<B>(&self, response: &Response<B>) -> Outcome {
        let status = response.status();
        let by_http2 = response.version() == Version::HTTP_2;
        match (&self.client, status) {
            (_, StatusCode::OK) if by_http2 => Outcome::Begun,
            (_, status) if by_http2 && status.is_success() => {
                Outcome::Broken("a WebSocket was answered by a success other than 200")
            }
            (_, StatusCode::SWITCHING_PROTOCOLS) if !names_websocket(response.headers()) => {
                Outcome::Broken("switched to a protocol that nobody asked for")
            }
            (Client::Http2(key), StatusCode::SWITCHING_PROTOCOLS) if !proves(response, key) => {
                Outcome::Broken("switched without an answer to the WebSocket's key")
            }
            (_, StatusCode::SWITCHING_PROTOCOLS) => Outcome::Begun,
            // The client would take it for a WebSocket.
            (Client::Http2(_), status) if status.is_success() => {
                Outcome::Broken("a WebSocket was answered by success without a switch")
            }
            _ => Outcome::Declined,
        }
    }

    /// The answer that tells the client; `headers` are the origin's, without those of its
    /// connection.
    pub(super) fn told(&self, headers: &mut HeaderMap, by_http2: bool) -> StatusCode {
        match &self.client {
            Client::Http2(_) => {
                headers.remove(header::SEC_WEBSOCKET_ACCEPT);
                StatusCode::OK
            }
            Client::Http1(key) => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
                if let Some(key) = key.as_ref().filter(|_| by_http2) {
                    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept(key));
                }
                StatusCode::SWITCHING_PROTOCOLS
            }
        }
    }
}

/// Both fields, and no other protocol beside it.
fn names_websocket(headers: &HeaderMap) -> bool {
    let mut to = headers.get_all(header::UPGRADE).iter();
    let only = match (to.next(), to.next()) {
        (Some(only), None) => only.as_bytes(),
        _ => return false,
    };
    only.eq_ignore_ascii_case(b"websocket") && has_member(headers, &header::CONNECTION, "upgrade")
}

/// Whether the origin has answered to `key`, once.
fn proves<B>(response: &Response<B>, key: &HeaderValue) -> bool {
    let mut answers = response.headers().get_all(header::SEC_WEBSOCKET_ACCEPT).iter();
    matches!((answers.next(), answers.next()), (Some(answer), None) if *answer == accept(key))
}

/// RFC 6455 §4.2.2.
fn accept(key: &HeaderValue) -> HeaderValue {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID].concat());
    HeaderValue::try_from(STANDARD.encode(digest)).expect("base64 is ASCII")
}

fn fresh_key() -> HeaderValue {
    let mut bytes = [0; KEY_BYTES];
    rand::fill(&mut bytes).expect("the system has random bytes");
    HeaderValue::try_from(STANDARD.encode(bytes)).expect("base64 is ASCII")
}

fn good_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return None };
    let bytes = STANDARD.decode(key).ok()?;
    (bytes.len() == KEY_BYTES).then(|| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_the_key_as_the_rfc_does() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept(&key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn no_two_keys_are_the_same_and_all_are_good() {
        let (one, other) = (fresh_key(), fresh_key());
        assert_ne!(one, other);
        let headers = |keys: &[&HeaderValue]| {
            keys.iter()
                .map(|key| (header::SEC_WEBSOCKET_KEY, (*key).clone()))
                .collect::<HeaderMap>()
        };
        assert_eq!(good_key(&headers(&[&one])), Some(one.clone()));
        assert_eq!(good_key(&headers(&[&one, &other])), None);
        assert_eq!(good_key(&headers(&[&HeaderValue::from_static("c2hvcnQ=")])), None);
    }
}
