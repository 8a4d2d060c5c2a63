//! Which destination does a CONNECT name?

use http::request::Parts;
use http::{HeaderMap, header};
use outgate_policy::{Authority, Denial, Destination, Reason};

/// The authority-form target (RFC 9110 §9.3.6), with a port and without a body.
pub(super) fn target(parts: &Parts) -> Result<Destination, Denial> {
    let malformed = |message| Err(Denial::new(Reason::MalformedRequest, message));
    let framing = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    if framing.iter().any(|name| parts.headers.contains_key(name)) {
        return malformed("CONNECT with a body: the bytes of a tunnel come after its answer");
    }
    let (Some(authority), None) = (parts.uri.authority(), parts.uri.path_and_query()) else {
        return malformed("the target of CONNECT must be host:port");
    };
    let authority = authority.as_str().as_bytes();
    let parsed = Authority::from_wire(authority).map_err(|error| error.denial(authority))?;
    let Some(port) = parsed.port else {
        let message = "the target of CONNECT has no port: write host:443";
        return Err(Denial::new(Reason::MalformedPort, message));
    };
    let destination = Destination { host: parsed.host, port };
    check_host(&parts.headers, &destination)?;
    Ok(destination)
}

/// `Host` repeats the target; some clients leave the port out.
fn check_host(headers: &HeaderMap, destination: &Destination) -> Result<(), Denial> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => {
            Err(Denial::new(Reason::MalformedRequest, "more than one Host header"))
        }
        (Some(host), None) => {
            let host = host.as_bytes();
            let said = Authority::from_wire(host).map_err(|error| error.denial(host))?;
            let same_port = said.port.is_none_or(|port| port == destination.port);
            if said.host == destination.host && same_port {
                return Ok(());
            }
            let message = format!("Host says {}, CONNECT says {destination}", said.host);
            Err(Denial::new(Reason::NameMismatch, message))
        }
    }
}
