//! What does a client read when it is refused?
//!
//! JSON for a program, a sentence for a person, a stable code for both. Never an internal address,
//! a path of the gateway, or a secret.

mod grpc;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;
use outgate_policy::{Denial, Destination, Reason};
use serde::Serialize;

pub(crate) use self::grpc::Dialect;
use super::body::ReplyBody;
use crate::audit::SinkFull;

const OUTGATE_REASON: HeaderName = HeaderName::from_static("outgate-reason");

/// The refusal as an answer; `destination` is what was asked for, as far as it is known.
pub(crate) fn refusal(
    denial: &Denial,
    destination: Option<&Destination>,
    dialect: Dialect,
) -> Response<ReplyBody> {
    match dialect {
        Dialect::Http => in_http(denial, destination),
        Dialect::Grpc => grpc::refusal(denial),
    }
}

fn in_http(denial: &Denial, destination: Option<&Destination>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Bytes::from(text(denial, destination))));
    *response.status_mut() = status(denial.reason);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(OUTGATE_REASON, HeaderValue::from_static(denial.reason.code()));
    if denial.reason == Reason::ProxyAuthenticationRequired {
        let challenge = HeaderValue::from_static("Basic realm=\"outgate\"");
        headers.insert(header::PROXY_AUTHENTICATE, challenge);
    }
    // Many clients show the reason phrase, not the body. HTTP/2 has none, and leaves it out.
    response.extensions_mut().insert(ReasonPhrase::from_static(denial.reason.code().as_bytes()));
    response
}

/// The same for CONNECT.
pub(crate) fn connect_refusal(
    denial: &Denial,
    destination: Option<&Destination>,
) -> Response<ReplyBody> {
    let mut response = in_http(denial, destination);
    // After a 407 the client asks again on the same connection.
    if denial.reason != Reason::ProxyAuthenticationRequired {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// No audit line can be written, so nothing may be judged.
pub(crate) fn not_ready(full: &SinkFull, dialect: Dialect) -> Response<ReplyBody> {
    tracing::warn!(%full, "a request is refused");
    let message = "the gateway can't write its audit log: try again, or ask its operator";
    let mut response = refusal(&Denial::new(Reason::NotReady, message), None, dialect);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The refusal as the bytes of an HTTP/1.1 answer, for a request that was never parsed and may have
/// been a CONNECT.
pub(crate) fn raw_refusal(denial: &Denial) -> Vec<u8> {
    let body = text(denial, None);
    let code = denial.reason.code();
    format!(
        "HTTP/1.1 {} {code}\r\ncontent-type: application/json\r\noutgate-reason: {code}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        denial.reason.status(),
        body.len(),
    )
    .into_bytes()
}

/// The shape that clients of Google APIs know (google.rpc.Status as JSON).
#[derive(Serialize)]
struct Body<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: u16,
    status: &'static str,
    message: &'a str,
    details: [Detail<'a>; 1],
}

#[derive(Serialize)]
struct Detail<'a> {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a serde_json::Value>,
}

fn text(denial: &Denial, destination: Option<&Destination>) -> String {
    let detail = Detail {
        reason: denial.reason.code(),
        domain: destination.map(|destination| destination.host.to_string()),
        fix: denial.fix.as_ref(),
    };
    let error = Error {
        code: denial.reason.status(),
        status: denial.reason.status_name(),
        message: &denial.message,
        details: [detail],
    };
    let mut text =
        serde_json::to_string(&Body { error }).expect("texts and numbers can be written as JSON");
    text.push('\n');
    text
}

fn status(reason: Reason) -> StatusCode {
    StatusCode::from_u16(reason.status()).expect("every reason has a status of HTTP")
}
