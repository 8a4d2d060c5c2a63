//! How is a gRPC client told that it is refused?
//!
//! It shows the user `grpc-status` and `grpc-message`, and throws bodies away. So its refusal is an
//! answer of trailers only: one head, in which HTTP's own status is always 200 ("gRPC over HTTP2",
//! Responses). The status is the `status` of the JSON that everyone else reads.

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, Version};
use outgate_policy::{Denial, Reason};

use super::OUTGATE_REASON;
use crate::exchange::body::ReplyBody;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// What a client takes a refusal from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The status of HTTP, and JSON.
    Http,
    /// Trailers of gRPC.
    Grpc,
}

impl Dialect {
    /// Of whoever sent this head.
    pub(crate) fn of(parts: &Parts) -> Dialect {
        let may_be = parts.version == Version::HTTP_2 && parts.method == Method::POST;
        let kind = may_be.then(|| parts.headers.get(header::CONTENT_TYPE)).flatten();
        match kind.is_some_and(is_grpc) {
            true => Dialect::Grpc,
            false => Dialect::Http,
        }
    }
}

/// `application/grpc` with its codec (`+proto`) or parameters. gRPC-Web is another protocol, whose
/// clients go by the status of HTTP.
fn is_grpc(kind: &HeaderValue) -> bool {
    let (kind, name) = (kind.as_bytes(), GRPC);
    let begins =
        kind.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()));
    begins && matches!(kind.get(name.len()), None | Some(b'+' | b';' | b' '))
}

/// The refusal as trailers only.
pub(super) fn refusal(denial: &Denial) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    headers.insert(GRPC_STATUS, HeaderValue::from_static(status(denial.reason)));
    headers.insert(GRPC_MESSAGE, message(denial));
    headers.insert(OUTGATE_REASON, HeaderValue::from_static(denial.reason.code()));
    response
}

/// The number of google.rpc.Code.
fn status(reason: Reason) -> &'static str {
    match reason.status_name() {
        "INVALID_ARGUMENT" => "3",
        "DEADLINE_EXCEEDED" => "4",
        "PERMISSION_DENIED" => "7",
        "FAILED_PRECONDITION" => "9",
        "UNAVAILABLE" => "14",
        "UNAUTHENTICATED" => "16",
        // UNKNOWN.
        _ => "2",
    }
}

/// The code too: clients show users no other field. Percent-encoded but for 0x20 to 0x7E without `%`.
fn message(denial: &Denial) -> HeaderValue {
    let text = format!("{}: {}", denial.reason.code(), denial.message);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(encoded).expect("ASCII without controls")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_status_that_says_something() {
        for reason in Reason::ALL {
            assert_ne!(status(*reason), "2", "{reason}: {}", reason.status_name());
        }
    }

    #[test]
    fn a_message_is_percent_encoded() {
        let denial = Denial::new(Reason::OriginConnect, "100 % of höst\r\n~");
        let encoded = "origin_connect: 100 %25 of h%C3%B6st%0D%0A~";
        assert_eq!(message(&denial), encoded);
    }

    #[test]
    fn only_grpc_itself_is_answered_as_grpc() {
        let is_grpc = |kind: &'static str| is_grpc(&HeaderValue::from_static(kind));
        for kind in ["application/grpc", "application/grpc+proto", "Application/gRPC;a=b"] {
            assert!(is_grpc(kind), "{kind}");
        }
        for kind in ["application/grpc-web", "application/grpcx", "application/json", ""] {
            assert!(!is_grpc(kind), "{kind}");
        }
    }
}
