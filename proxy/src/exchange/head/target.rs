//! Which destination does a request's target name, together with its `Host`?

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Uri, Version};
use outgate_policy::{Authority, Denial, Destination, Reason, Scheme};

use super::{TunnelTarget, host};
use crate::exchange::handshake;

pub(super) fn forward_target(
    uri: &Uri,
    host: Option<&HeaderValue>,
) -> Result<(Scheme, Destination, PathAndQuery), Denial> {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(Denial::new(
            Reason::MalformedRequest,
            "this is a proxy: the request target must be an absolute URL such as \
             http://example.com/, or CONNECT host:port",
        ));
    };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => {
            let message = format!("{other}: is not a scheme of this proxy: use http or https");
            return Err(Denial::new(Reason::MalformedRequest, message));
        }
    };
    let authority = authority.as_str().as_bytes();
    let destination = destination(authority, scheme)?;
    // Most clients say the same twice, and that need not be parsed twice.
    if let Some(host) = host.filter(|host| host.as_bytes() != authority) {
        same(self::destination(host.as_bytes(), scheme)?, &destination, "Host")?;
    }
    Ok((scheme, destination, path(uri)?))
}

pub(super) fn tunnel_target(
    uri: &Uri,
    host: Option<&HeaderValue>,
    tunnel: &TunnelTarget,
) -> Result<PathAndQuery, Denial> {
    let scheme = tunnel.scheme;
    let same = |said, by| same(said, &tunnel.destination, by);
    let is_canonical = |said: &[u8]| said == tunnel.authority.as_bytes();
    if let Some(host) = host.filter(|host| !is_canonical(host.as_bytes())) {
        same(destination(host.as_bytes(), scheme)?, "Host")?;
    }
    match (uri.scheme_str(), uri.authority()) {
        (None, None) if uri.path().starts_with('/') => path(uri),
        (Some(absolute), Some(authority)) if absolute == scheme.as_str() => {
            let authority = authority.as_str().as_bytes();
            if !is_canonical(authority) {
                same(destination(authority, scheme)?, "the request target")?;
            }
            path(uri)
        }
        (Some(absolute), Some(_)) => Err(Denial::new(
            Reason::NameMismatch,
            format!("the request target says {absolute}:, the tunnel is {}:", scheme.as_str()),
        )),
        _ => Err(malformed_target()),
    }
}

/// Where the first request in a tunnel without a name of its own goes: to the host that it names,
/// and to the port that the client connected to. HTTP/1.0 may name none.
pub(crate) fn named(parts: &Parts, presumed: &TunnelTarget) -> Result<Destination, Denial> {
    let by_host = || host(&parts.headers, Version::HTTP_10);
    let authority = match parts.uri.authority() {
        // It is refused, whatever it names.
        _ if parts.method == Method::CONNECT && !handshake::is_extended(parts) => {
            return Ok(presumed.destination.clone());
        }
        Some(authority) => authority.as_str().as_bytes(),
        None => match by_host()? {
            Some(host) => host.as_bytes(),
            None => return Ok(presumed.destination.clone()),
        },
    };
    let said = destination(authority, presumed.scheme)?;
    if said.port == presumed.destination.port {
        return Ok(said);
    }
    let message = format!(
        "the request is for port {} of {}, but this connection is to port {}",
        said.port, said.host, presumed.destination.port
    );
    Err(Denial::new(Reason::NameMismatch, message))
}

fn malformed_target() -> Denial {
    Denial::new(Reason::MalformedRequest, "the request target must begin with /")
}

fn destination(authority: &[u8], scheme: Scheme) -> Result<Destination, Denial> {
    let parsed = Authority::from_wire(authority).map_err(|error| error.denial(authority))?;
    let port = parsed.port.unwrap_or(scheme.default_port());
    Ok(Destination { host: parsed.host, port })
}

fn same(said: Destination, tunnel: &Destination, by: &str) -> Result<(), Denial> {
    if said == *tunnel {
        return Ok(());
    }
    let message = format!("{by} says {said}, but this connection is to {tunnel}");
    Err(Denial::new(Reason::NameMismatch, message))
}

/// The path that is judged and sent. The http crate takes `?x` and `#x` for paths, shows an empty
/// one as `/` and writes it as nothing.
fn path(uri: &Uri) -> Result<PathAndQuery, Denial> {
    let Some(path) = uri.path_and_query() else { return Ok(PathAndQuery::from_static("/")) };
    match path.as_str() {
        "/" => Ok(PathAndQuery::from_static("/")),
        text if text.starts_with('/') => Ok(path.clone()),
        text if text.starts_with('?') => {
            Ok(PathAndQuery::try_from(format!("/{text}"))
                .expect("a query stays valid behind a path"))
        }
        // `*`, as HTTP/2 has it beside an authority.
        _ => Err(malformed_target()),
    }
}

/// A destination as `Host` and `:authority` say it.
pub(super) fn canonical(destination: &Destination, scheme: Scheme) -> HeaderValue {
    let text = destination.authority(scheme);
    HeaderValue::try_from(text).expect("a host in its normal form is ASCII")
}
