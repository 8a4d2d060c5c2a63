//! How do values take the place of placeholders in a request's body?
//!
//! Only for environments that have credentials for bodies. What fits in memory is read whole before
//! anything is sent: it is refused without a trace, and its new length is known. What doesn't is
//! searched as it streams, and cut where it must not go on. Bytes that are no text, and bodies for
//! where no value may go, are never changed: a placeholder in them is refused.

mod filter;
mod findings;
mod gather;
mod upload;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header};
use http_body::Body;
use outgate_credentials::{Search, Watch, Writing};
use outgate_policy::{Denial, Reason};

use self::filter::{Filter, Filtered};
pub(crate) use self::findings::Findings;
use self::gather::gather;
pub(crate) use self::upload::Substituted;
use super::upload::Upload;
use crate::audit::Record;
use crate::gate::{Judge, RequestPermit};
use crate::gateway::Gateway;
use crate::snapshot::Environment;

/// What a request says of the bytes of its body (RFC 1864, RFC 3230, RFC 9530).
pub(super) const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Not compressed, though it says so in `Content-Encoding`.
const AWS_CHUNKED: &str = "aws-chunked";

/// A search of `body`, where one is needed: for most environments this is all that ever happens.
pub(super) fn search(
    gateway: &Gateway,
    environment: &Environment,
    body: &Upload,
) -> Option<Search> {
    if body.is_end_stream() {
        return None;
    }
    gateway.credentials().search_body(environment.id())
}

/// The body of what `permit` is for as it is to be sent.
pub(super) async fn substituted(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    permit: &mut RequestPermit,
    (body, search): (Upload, Search),
    record: &mut Record,
) -> Result<Upload, Denial> {
    let mut judge = Judge::of(permit, gateway.credentials(), environment);
    let headers = permit.head().headers();
    // What clients of AWS send in chunks of their own, with checksums behind: no value fits there.
    let writing = if is_aws_chunked(headers) { None } else { writing(headers) };
    let trusted = judge.trusts_any();
    if is_encoded(headers) {
        if trusted {
            let message = "the body is compressed, and placeholders are looked for in it: send it \
                           without Content-Encoding";
            return Err(Denial::new(Reason::EncodedBody, message));
        }
        // No value can get there, and nothing can be read in it.
        return Ok(body);
    }
    let length = body.size_hint().exact();
    let (filter, changes) = match writing {
        Some(writing) if trusted => (Filter::Replace(Box::new(search), writing), true),
        Some(_) => (Filter::Watch(Watch::default(), stranger(&judge)), false),
        None => (Filter::Watch(Watch::default(), binary()), false),
    };
    if changes && permit.scrubs() {
        permit.seek_in_answer(judge.seek().await)?;
    }
    let judge = Arc::new(judge);
    let findings = Arc::new(Findings::new(permit.used()));
    let mut filtered = Filtered::new(body, filter, judge, Arc::clone(&findings));
    // Both sides of such a stream may speak in turns: held back, neither would.
    if writing.is_none() && length.is_none() {
        return Ok(Upload::Substituted(Box::new(Substituted::streaming(filtered))));
    }
    let pulse = permit.head().pulse();
    let gathered = gather(&mut filtered, gateway.limits(), environment, pulse.as_ref()).await;
    findings.note(record);
    let substituted = gathered?.followed_by(filtered);
    permit.body_was_read(changes && substituted.may_differ());
    Ok(Upload::Substituted(Box::new(substituted)))
}

/// What the body is by its one media type. Two types are none.
fn writing(headers: &HeaderMap) -> Option<Writing> {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter();
    match (all.next(), all.next()) {
        (None, _) => Writing::of(None),
        (Some(one), None) => one.to_str().ok().and_then(|said| Writing::of(Some(said))),
        (Some(_), Some(_)) => None,
    }
}

/// Whether it can't be read as it is.
fn is_encoded(headers: &HeaderMap) -> bool {
    let readable = |coding: &[u8]| is(coding, "identity") || is(coding, AWS_CHUNKED);
    codings(headers).any(|coding| !readable(coding))
}

fn is_aws_chunked(headers: &HeaderMap) -> bool {
    codings(headers).any(|coding| is(coding, AWS_CHUNKED))
}

fn codings(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let all = headers.get_all(header::CONTENT_ENCODING).into_iter();
    let members = all.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    members.map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty())
}

fn is(coding: &[u8], known: &str) -> bool {
    coding.eq_ignore_ascii_case(known.as_bytes())
}

fn binary() -> Denial {
    let message = "a placeholder stands in a body that is neither JSON, a form nor other text; it \
                   is never replaced there";
    Denial::new(Reason::PlaceholderNotTrusted, message)
}

fn stranger(judge: &Judge) -> Denial {
    let host = &judge.destination().host;
    let message =
        format!("a placeholder stands in the body, and {host} is trusted with none there");
    Denial::new(Reason::PlaceholderNotTrusted, message)
}
