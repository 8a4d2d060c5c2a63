//! What does one request head say, once it says one thing?
//!
//! hyper reconciles neither two `Host` fields nor `Host` with the target, so it is done here: one
//! name, one port, one framing, nothing that concerned only the client's connection. A
//! [`RequestHead`] is what policy judges and what is sent, so bytes judged are bytes sent.

mod target;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri, Version, header};
use outgate_policy::{Denial, Destination, Host, Reason, Scheme};

pub(crate) use self::target::named;
use self::target::{canonical, forward_target, tunnel_target};
use super::handshake::Handshake;
use super::hop_by_hop::{self, has_member};
use super::pulse::Pulse;
use super::reply::Dialect;
use super::substitution;
use crate::limits::METHOD_BYTES;
use crate::upstream::Trail;

/// By which door a request came: what its target must look like.
pub(crate) enum Door<'a> {
    /// A forward proxy's port: the target is absolute.
    Forward,
    /// A tunnel: everything in it is for one destination.
    Tunnel(&'a TunnelTarget),
}

/// The destination of a tunnel, and how its requests are to name it.
pub(crate) struct TunnelTarget {
    pub(crate) destination: Destination,
    pub(crate) scheme: Scheme,
    /// The gateways that it came through.
    pub(crate) trail: Trail,
    /// The canonical authority: most requests say just this, and need not be parsed.
    authority: HeaderValue,
}

impl TunnelTarget {
    pub(crate) fn new(destination: Destination, scheme: Scheme, trail: Trail) -> TunnelTarget {
        let authority = canonical(&destination, scheme);
        TunnelTarget { destination, scheme, trail, authority }
    }
}

/// One request's head, reconciled and without connection fields. Not to be shown: the value of a
/// credential may be in its target.
#[derive(Clone)]
pub(crate) struct RequestHead {
    pub(super) parts: Parts,
    pub(super) destination: Destination,
    pub(super) scheme: Scheme,
    /// The destination as `Host` and `:authority` say it.
    pub(super) authority: HeaderValue,
    /// It asks for a WebSocket.
    pub(super) websocket: Option<Handshake>,
    /// What its client would read a refusal from.
    pub(super) dialect: Dialect,
    pub(super) expects_continue: bool,
    /// The client can take trailers, and may send some.
    pub(super) trailers: bool,
    /// The gateways that its tunnel came through.
    pub(super) trail: Trail,
}

impl RequestHead {
    /// Bounds the fields of an HTTP/2 head, which its codec bounds by size alone. A cookie may come
    /// in any number of crumbs.
    pub(crate) fn count(parts: &Parts, most: usize) -> Result<(), Denial> {
        let crumbs = parts.headers.get_all(header::COOKIE).iter().count();
        let fields = parts.headers.len() - crumbs.saturating_sub(1);
        if parts.version != Version::HTTP_2 || fields <= most {
            return Ok(());
        }
        let message = format!("the request head has {fields} headers, more than {most}");
        Err(Denial::new(Reason::HeadTooLarge, message))
    }

    /// Reads the head of a request that came by `door`.
    pub(crate) fn read(mut parts: Parts, door: Door<'_>) -> Result<RequestHead, Denial> {
        let websocket = Handshake::read(&mut parts)?;
        let dialect = Dialect::of(&parts);
        check_line(&parts)?;
        let host = host(&parts.headers, parts.version)?;
        if parts.version == Version::HTTP_2 && host.is_none() && parts.uri.authority().is_none() {
            return Err(Denial::new(Reason::MalformedRequest, "neither :authority nor host"));
        }
        let mut trail = Trail::default();
        let (scheme, destination, authority, path) = match door {
            Door::Forward => {
                let (scheme, destination, path) = forward_target(&parts.uri, host)?;
                let authority = canonical(&destination, scheme);
                (scheme, destination, authority, path)
            }
            Door::Tunnel(tunnel) => {
                let path = tunnel_target(&parts.uri, host, tunnel)?;
                trail.clone_from(&tunnel.trail);
                (tunnel.scheme, tunnel.destination.clone(), tunnel.authority.clone(), path)
            }
        };
        parts.uri = Uri::from(path);
        check_framing(&parts.headers)?;
        let expects_continue = expects_continue(&parts)?;
        let trailers = has_member(&parts.headers, &header::TE, "trailers");
        hop_by_hop::strip(&mut parts.headers);
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::HOST);
        if !expects_continue {
            parts.headers.remove(header::EXPECT);
        }
        join_cookies(&mut parts.headers);
        let head = RequestHead {
            parts,
            destination,
            scheme,
            authority,
            websocket,
            dialect,
            expects_continue,
            trailers,
            trail,
        };
        Ok(head)
    }

    /// Sends it to `host` instead: what the client named stands for that.
    pub(crate) fn goes_to(&mut self, host: Host) {
        self.destination.host = host;
        self.authority = canonical(&self.destination, self.scheme);
    }

    /// Where it goes.
    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Under which scheme.
    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The path as it will be sent, without the query.
    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The method.
    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// Its header fields, without those of the connection.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The same, for who puts credentials on them.
    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.parts.headers
    }

    /// The client's connection, where it is HTTP/2.
    pub(crate) fn pulse(&self) -> Option<Pulse> {
        self.parts.extensions.get().cloned()
    }

    /// Path and query as they will be sent.
    pub(crate) fn target(&self) -> &PathAndQuery {
        self.parts.uri.path_and_query().expect("a head's target is a path")
    }

    /// Another query; the path stays what was judged.
    pub(crate) fn set_target(&mut self, target: PathAndQuery) {
        debug_assert_eq!(target.path(), self.path());
        self.parts.uri = Uri::from(target);
    }

    /// The destination as `Host` and `:authority` say it.
    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// Leaves out what its client said of the bytes of its body: they are others now.
    pub(crate) fn body_changes(&mut self) {
        for name in substitution::DIGESTS {
            self.parts.headers.remove(name);
        }
    }

    /// Its body was read before it is sent, so that nobody waits for a word on whether to send it.
    pub(crate) fn body_is_here(&mut self) {
        self.expects_continue = false;
        self.parts.headers.remove(header::EXPECT);
    }

    /// How it asks for a WebSocket, if it does.
    pub(crate) fn websocket(&self) -> Option<&Handshake> {
        self.websocket.as_ref()
    }

    /// What its client would read a refusal from.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// hyper takes a token of any length for a method, and UTF-8 in a target (RFC 3986 §2 does not).
/// Methods are compared by case (RFC 9110 §9.1), but some origins read `delete` as `DELETE`: so
/// one in lower case would pass a rule about it.
fn check_line(parts: &Parts) -> Result<(), Denial> {
    let malformed = |message| Err(Denial::new(Reason::MalformedRequest, message));
    if parts.method.as_str().len() > METHOD_BYTES {
        return malformed("the method is longer than any that is in use");
    }
    if parts.method.as_str().bytes().any(|letter| letter.is_ascii_lowercase()) {
        return malformed("the method is not in upper case: write GET, not get");
    }
    if !parts.uri.path_and_query().is_none_or(|path| path.as_str().is_ascii()) {
        return malformed("the request target is not ASCII: percent-encode it");
    }
    Ok(())
}

/// The one `Host` (RFC 9112 §3.2), unless HTTP/1.0 left it out.
fn host(headers: &HeaderMap, version: Version) -> Result<Option<&HeaderValue>, Denial> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (Some(_), Some(_)) => {
            Err(Denial::new(Reason::MalformedRequest, "more than one Host header"))
        }
        (None, _) if version == Version::HTTP_11 => {
            Err(Denial::new(Reason::MalformedRequest, "no Host header: HTTP/1.1 needs one"))
        }
        (one, _) => Ok(one),
    }
}

/// HTTP/2 clients may send a cookie in crumbs; HTTP/1.1 has one field for all (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    if let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) {
        let mut joined = first.as_bytes().to_vec();
        for crumb in [second].into_iter().chain(crumbs) {
            joined.extend_from_slice(b"; ");
            joined.extend_from_slice(crumb.as_bytes());
        }
        let joined = HeaderValue::from_maybe_shared(Bytes::from(joined));
        headers.insert(header::COOKIE, joined.expect("valid values stay valid when joined"));
    }
}

/// hyper has decided how long the body is; what is left is what it can't undo for the origin.
fn check_framing(headers: &HeaderMap) -> Result<(), Denial> {
    match hop_by_hop::is_at_most_chunked(headers) {
        true => Ok(()),
        false => Err(Denial::new(Reason::MalformedRequest, "Transfer-Encoding other than chunked")),
    }
}

fn expects_continue(parts: &Parts) -> Result<bool, Denial> {
    let mut all = parts.headers.get_all(header::EXPECT).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(false),
        (Some(one), None) if one.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Ok(parts.version == Version::HTTP_11)
        }
        _ => Err(Denial::new(Reason::MalformedRequest, "Expect other than 100-continue")),
    }
}
