//! What of a request must not come back, and what may its answer be?
//!
//! Where entries say `scrub`, the request asks for nothing that could not be looked through: no
//! pieces of a text, no coding that can't be read, no stream of frames.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use outgate_credentials::scrub::{Place, Sought};
use outgate_credentials::{Carrier, Parameter, Substituted};
use outgate_policy::{Denial, Destination, Reason};
use smallvec::SmallVec;

use super::RequestPermit;
use crate::exchange::inject::remove_spellings;

/// What asks for answers in which no value would be found: in pieces, in UTF-16, with messages
/// compressed one by one (gRPC, Connect), compressed against what only the client has (RFC 9842).
const OPAQUE: [HeaderName; 9] = [
    HeaderName::from_static("a-im"),
    header::ACCEPT_CHARSET,
    HeaderName::from_static("available-dictionary"),
    HeaderName::from_static("connect-accept-encoding"),
    HeaderName::from_static("grpc-accept-encoding"),
    header::IF_RANGE,
    header::RANGE,
    HeaderName::from_static("request-range"),
    HeaderName::from_static("x-ms-range"),
];
/// The content codings that answers are read in.
const READABLE: [&str; 5] = ["br", "gzip", "identity", "x-gzip", "zstd"];
const GZIP: [&str; 2] = ["gzip", "x-gzip"];
/// Those with windows of many mebibytes.
const LARGE: [&str; 2] = ["br", "zstd"];

/// What is done with an answer on its way back.
#[derive(Default)]
pub(crate) struct WayBack {
    /// No cookie passes.
    pub(crate) drop_set_cookie: bool,
    /// What is masked in it, where there is something.
    pub(crate) sought: Option<Box<Sought>>,
}

impl WayBack {
    /// What `earlier` said holds too: the same client gets the answer.
    pub(crate) fn and(mut self, earlier: WayBack) -> WayBack {
        self.drop_set_cookie |= earlier.drop_set_cookie;
        if let Some(before) = earlier.sought {
            self.sought.get_or_insert_default().extend(*before);
        }
        self
    }
}

/// Has the request ask for an answer that can be looked through.
fn ask_readably(headers: &mut HeaderMap) {
    OPAQUE.iter().for_each(|name| remove_spellings(headers, name));
    if !headers.contains_key(header::ACCEPT_ENCODING) {
        return remove_spellings(headers, &header::ACCEPT_ENCODING);
    }
    let kept = readable_codings(headers);
    remove_spellings(headers, &header::ACCEPT_ENCODING);
    headers.insert(header::ACCEPT_ENCODING, kept);
}

/// What the client takes of codings that can be looked through; if gzip is among them, not those
/// that need a hundred times its memory.
fn readable_codings(headers: &HeaderMap) -> HeaderValue {
    let mut readable: SmallVec<[&str; 4]> = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| is_one_of(&READABLE, member))
        .collect();
    if readable.iter().any(|member| is_one_of(&GZIP, member) && !is_refused(member)) {
        readable.retain(|member| !is_one_of(&LARGE, member));
    }
    let kept = HeaderValue::try_from(readable.join(", ")).ok().filter(|kept| !kept.is_empty());
    kept.unwrap_or(HeaderValue::from_static("identity"))
}

fn is_one_of(codings: &[&str], member: &str) -> bool {
    let coding = member.split(';').next().unwrap_or_default().trim();
    codings.iter().any(|known| known.eq_ignore_ascii_case(coding))
}

/// RFC 9110 §12.4.2: a weight of zero.
fn is_refused(member: &str) -> bool {
    member.split(';').skip(1).any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0)
    })
}

/// Notes what `permit` puts on the request, to be masked in its answer. What is signed is signed
/// after this: it changes the request where there is something to look for.
pub(super) fn seek(
    permit: &mut RequestPermit,
    parameters: &[Parameter],
    substituted: Option<&Substituted>,
) -> Result<(), Denial> {
    let mut sought = Sought::default();
    parameters.iter().for_each(|parameter| sought.parameter(parameter));
    if let Some(substituted) = substituted {
        sought.substituted(substituted, permit.head.headers());
    }
    for (name, value) in &permit.verdict.headers {
        sought.header(name, value);
    }
    for applied in &permit.applied {
        if let Carrier::Header(name, value, Some(bare)) = &applied.carrier
            && permit.verdict.headers.iter().any(|(set, with)| (set, with) == (name, value))
        {
            sought.secret(bare, Place::Header(name.clone()));
        }
    }
    if let Some((name, token)) = permit.signing.as_ref().and_then(|signing| signing.token()) {
        sought.secret(token, Place::Header(name));
    }
    look_for(permit, sought)
}

/// Has the answer to `permit` looked through for `sought`, whatever is looked for already.
pub(super) fn look_for(permit: &mut RequestPermit, sought: Sought) -> Result<(), Denial> {
    if sought.is_empty() {
        return Ok(());
    }
    if permit.head.websocket().is_some() {
        return Err(unreadable(permit.head.destination()));
    }
    ask_readably(permit.head.headers_mut());
    permit.sought.get_or_insert_default().extend(sought);
    Ok(())
}

/// Nobody looks at what comes back over a WebSocket.
pub(super) fn unreadable(to: &Destination) -> Denial {
    let message = format!(
        "a WebSocket to {} could bring back what the gateway puts on it, and its entry says `scrub`",
        to.host
    );
    Denial::new(Reason::ProtocolNotAllowed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        ask_readably(&mut headers);
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII")))
            .collect()
    }

    #[test]
    fn asks_for_whole_answers_in_readable_codings() {
        let accepts = |value: &'static str| asked(&[("accept-encoding", value)]);
        assert_eq!(accepts("deflate, br, zstd"), ["accept-encoding: br, zstd"]);
        assert_eq!(accepts("gzip, deflate, br, Zstd"), ["accept-encoding: gzip"]);
        assert_eq!(accepts("br;q=1, X-Gzip;q=0.1"), ["accept-encoding: X-Gzip;q=0.1"]);
        assert_eq!(accepts("br, gzip;q=0"), ["accept-encoding: br, gzip;q=0"]);
        assert_eq!(accepts("br, gzip ; Q=0.000"), ["accept-encoding: br, gzip ; Q=0.000"]);
        assert_eq!(accepts("GZIP;q=0.5,dcb, *;q=0"), ["accept-encoding: GZIP;q=0.5"]);
        assert_eq!(accepts("deflate"), ["accept-encoding: identity"]);
        let twice = asked(&[("accept-encoding", "br"), ("accept-encoding", "dcz, zstd")]);
        assert_eq!(twice, ["accept-encoding: br, zstd"]);
        let pieces = [
            ("range", "bytes=0-9"),
            ("if-range", "\"x\""),
            ("accept", "*/*"),
            ("accept-charset", "utf-16"),
            ("grpc-accept-encoding", "gzip"),
        ];
        assert_eq!(asked(&pieces), ["accept: */*"]);
        assert!(asked(&[]).is_empty());
    }
}
