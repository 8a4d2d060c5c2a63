//! How does the origin's answer reach the client?
//!
//! Its head without what concerned the connection it came by; its body as it streams in. The audit
//! record and the upstream connection travel with the body: whoever drops it, one line is written,
//! and only a connection whose exchange is complete is used again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderName, Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::body::{Progress, ReplyBody};
use super::hop_by_hop;
use super::pulse::Pulse;
use super::reserved;
use super::scrubbed::{Scrubbing, Unreadable};
use super::trailers;
use crate::audit::Record;
use crate::snapshot::Environment;
use crate::upstream::Lease;

/// A body on its way from origin to client.
pub(super) struct Forwarded {
    incoming: Incoming,
    underway: Option<Underway>,
    bytes: u64,
    scrubbing: Option<Box<Scrubbing>>,
    /// Its stream, where its client speaks HTTP/2.
    pulse: Option<Pulse>,
}

/// What is settled when the body ends, one way or another.
pub(super) struct Underway {
    pub(super) record: Record,
    pub(super) lease: Lease,
    pub(super) environment: Arc<Environment>,
    pub(super) upload: Arc<Progress>,
}

/// Why the body of an answer ends early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The origin broke it off.
    #[error(transparent)]
    Origin(#[from] hyper::Error),
    /// It has to be scrubbed, and can't be.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// The answer as the client gets it.
pub(super) fn forward(
    mut head: Parts,
    incoming: Incoming,
    mut underway: Underway,
    scrubbing: Option<Box<Scrubbing>>,
) -> Response<ReplyBody> {
    keep_one_length(&mut head);
    hop_by_hop::strip(&mut head.headers);
    // It would lead to QUIC, around the gateway.
    head.headers.remove(HeaderName::from_static("alt-svc"));
    underway.record.answered(head.status.as_u16());
    underway.record.origin_speaks(head.version);
    head.version = Version::HTTP_11;
    // There may be no body; then all that can come back is there.
    let scrubbing = scrubbing.filter(|_| !incoming.is_end_stream());
    let underway = Some(underway);
    let forwarded = Forwarded { incoming, underway, bytes: 0, scrubbing, pulse: None };
    Response::from_parts(head, ReplyBody::forwarded(forwarded))
}

/// RFC 9112 §6.3: chunks overrule a length, and a length may be said twice. hyper reads it so, but
/// leaves the head as it was. A 204 has none, also in answer to HEAD (RFC 9110 §8.6): some clients
/// would wait for a body.
fn keep_one_length(head: &mut Parts) {
    let headers = &mut head.headers;
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let is_one = match (lengths.next(), lengths.next()) {
        (Some(one), None) => one.to_str().is_ok_and(is_number),
        _ => false,
    };
    let is_out_of_place =
        head.status == StatusCode::NO_CONTENT || headers.contains_key(header::TRANSFER_ENCODING);
    if !is_one || is_out_of_place {
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// RFC 9110 §8.6. Rust's numbers may have a sign; zeros before it are no part of a number that is
/// written anew.
fn is_number(text: &str) -> bool {
    let is_plain = text == "0" || !text.starts_with('0');
    is_plain && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok()
}

impl Forwarded {
    /// It goes to its client by a stream of HTTP/2.
    pub(super) fn goes_by(&mut self, stream: Pulse) {
        self.pulse = Some(stream);
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(scrubbing) = &mut self.scrubbing {
            let polled = ready!(scrubbing.poll_frame(&mut self.incoming, &mut self.bytes, cx));
            match &polled {
                Some(Ok(_)) => {}
                Some(Err(error)) => self.settle(Some(&said(error))),
                None => self.settle(None),
            }
            return Poll::Ready(polled);
        }
        match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            Some(Ok(mut frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.bytes += data.len() as u64;
                } else if let Some(trailers) = frame.trailers_mut() {
                    trailers::keep_harmless(trailers);
                    reserved::strip_fields(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let error = BodyError::from(error);
                self.settle(Some(&said(&error)));
                Poll::Ready(Some(Err(error)))
            }
            None => {
                self.settle(None);
                Poll::Ready(None)
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match &self.scrubbing {
            Some(scrubbing) => scrubbing.is_done(),
            None => self.incoming.is_end_stream(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match &self.scrubbing {
            Some(scrubbing) => scrubbing.size_hint(&self.incoming),
            None => self.incoming.size_hint(),
        }
    }

    fn settle(&mut self, error: Option<&str>) {
        let Some(Underway { mut record, lease, environment, upload }) = self.underway.take() else {
            return;
        };
        record.moved(upload.bytes(), self.bytes);
        if let Some(scrubbing) = &self.scrubbing {
            record.reflected(scrubbing.found());
        }
        if let Some(denial) = upload.note(&mut record) {
            record.cut(denial.reason);
            record.error(&denial.message);
        }
        match error {
            Some(error) => record.error(error),
            // An upload that the origin did not wait for is cut with its connection.
            None if upload.is_finished() => environment.pool.give_back(lease),
            None => {}
        }
        record.finish();
    }
}

fn said(error: &BodyError) -> String {
    match error {
        BodyError::Origin(error) => format!("the origin broke off its answer: {error}"),
        BodyError::Unreadable(why) => why.to_string(),
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // hyper drops a body of known length after its last byte, without asking for the end.
        let error = match &self.pulse {
            Some(stream) if stream.is_cut() => "nothing of the answer moved for too long",
            _ => "the client left before the answer's end",
        };
        self.settle((!self.is_end_stream()).then_some(error));
    }
}
