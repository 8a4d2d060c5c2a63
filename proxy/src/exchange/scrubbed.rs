//! How do injected values stay out of an answer?
//!
//! Only for requests whose entries say `scrub` and that had something put on. The head is masked
//! before it is sent on, the body as it streams; what is compressed is sent on decompressed. An
//! answer that can't be read is not sent at all, or cut where that shows.

mod decode;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use outgate_credentials::scrub::{Place, Scrubber, Sought};
use smallvec::SmallVec;
use tokio::sync::OwnedSemaphorePermit;

pub(super) use self::decode::Unreadable;
use self::decode::{Decoder, Next};
use super::forward::BodyError;
use super::{reserved, trailers};
use crate::snapshot::Environment;
use crate::upstream::UpstreamError;

/// What tells of a body by its bytes (RFC 9530, RFC 3230, RFC 1864).
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

/// An answer that is being scrubbed.
pub(super) struct Scrubbing {
    scrubber: Scrubber,
    decoder: Option<Decoder>,
    stage: Stage,
    #[expect(dead_code, reason = "its drop gives it back")]
    room: OwnedSemaphorePermit,
}

/// How far the body has come.
enum Stage {
    /// The origin is still sending it.
    Streaming,
    /// It is complete; what was held back and these trailers are still to go.
    Ending(Option<HeaderMap>),
    Done,
}

impl Scrubbing {
    /// Masks the head of an answer, and gets ready for its body.
    ///
    /// # Errors
    /// The body is in a coding that can't be read, or there is no room to.
    pub(super) fn begin(
        head: &mut Parts,
        sought: &Sought,
        environment: &Environment,
    ) -> Result<Scrubbing, Unreadable> {
        // Whoever gets a text piece by piece can have each value in two of them.
        if head.status == StatusCode::PARTIAL_CONTENT
            || head.headers.contains_key(header::CONTENT_RANGE)
        {
            return Err(Unreadable::Partial);
        }
        let mut scrubber = Scrubber::new(sought);
        let decoder = Decoder::of(&head.headers)?;
        let windows = decoder.as_ref().map_or(0, Decoder::windows);
        let room = Arc::clone(&environment.windows).try_acquire_many_owned(windows);
        let room = room.map_err(|_| Unreadable::Crowded)?;
        if decoder.is_some() {
            tell_of_plain_text(&mut head.headers);
        }
        head.headers.remove(header::ACCEPT_RANGES);
        // They would be wrong of what is masked, and good for guessing it.
        DIGESTS.iter().for_each(|name| drop(head.headers.remove(name)));
        // HTTP/2 has none, and nothing may depend on it (RFC 9112 §4).
        head.extensions.remove::<ReasonPhrase>();
        mask_fields(&mut head.headers, &mut scrubber);
        Ok(Scrubbing { scrubber, decoder, stage: Stage::Streaming, room })
    }

    /// Where the values that came back had been put.
    pub(super) fn found(&self) -> SmallVec<[Place; 1]> {
        self.scrubber.found().cloned().collect()
    }

    /// Whether nothing more is to come, once the origin has sent all.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// A plain body stays as long as it was; a decompressed one may come to anything.
    pub(super) fn size_hint(&self, incoming: &Incoming) -> SizeHint {
        let exact = incoming.size_hint().exact().filter(|_| self.decoder.is_none());
        exact.map_or_else(SizeHint::default, |to_come| {
            SizeHint::with_exact(to_come + self.scrubber.held() as u64)
        })
    }

    /// The next frame for the client; adds what the origin sent to `received`.
    pub(super) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        received: &mut u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        while let Stage::Streaming = self.stage {
            match self.poll_text(incoming, received, cx) {
                Poll::Ready(Ok(text)) if text.is_empty() => {}
                Poll::Ready(Ok(text)) => return Poll::Ready(Some(Ok(Frame::data(text)))),
                // What was held back is not sent: nobody knows how it would have gone on.
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(self.end().map(Ok))
    }

    /// Some more of the text, perhaps none; or its end, noted in `stage`.
    fn poll_text(
        &mut self,
        incoming: &mut Incoming,
        received: &mut u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, BodyError>> {
        if let Some(decoder) = &mut self.decoder {
            match decoder.next()? {
                Next::Text(text) => return Poll::Ready(Ok(self.scrubber.piece(text))),
                Next::Tired => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Hungry => {}
            }
        }
        let mut frame = match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
            Some(frame) => frame?,
            None => return Poll::Ready(self.complete(None).map(|()| Bytes::new())),
        };
        if let Some(trailers) = frame.trailers_mut() {
            let mut trailers = std::mem::take(trailers);
            trailers::keep_harmless(&mut trailers);
            reserved::strip_fields(&mut trailers);
            mask_fields(&mut trailers, &mut self.scrubber);
            return Poll::Ready(self.complete(Some(trailers)).map(|()| Bytes::new()));
        }
        let data = frame.into_data().unwrap_or_default();
        *received += data.len() as u64;
        if let Some(decoder) = &mut self.decoder {
            decoder.feed(data);
            return Poll::Ready(Ok(Bytes::new()));
        }
        let text = self.scrubber.piece(data);
        // Nobody asks for more once a body of known length is there.
        if incoming.is_end_stream() {
            self.complete(None)?;
        }
        Poll::Ready(Ok(text))
    }

    fn complete(&mut self, trailers: Option<HeaderMap>) -> Result<(), BodyError> {
        if let Some(decoder) = &self.decoder {
            decoder.finish()?;
        }
        let done = trailers.is_none() && self.scrubber.held() == 0;
        self.stage = if done { Stage::Done } else { Stage::Ending(trailers) };
        Ok(())
    }

    fn end(&mut self) -> Option<Frame<Bytes>> {
        let Stage::Ending(trailers) = &mut self.stage else { return None };
        let rest = self.scrubber.rest();
        let trailers = trailers.take();
        if rest.is_empty() {
            self.stage = Stage::Done;
            return trailers.map(Frame::trailers);
        }
        self.stage = trailers.map_or(Stage::Done, |trailers| Stage::Ending(Some(trailers)));
        Some(Frame::data(rest))
    }
}

impl From<Unreadable> for UpstreamError {
    fn from(why: Unreadable) -> UpstreamError {
        match why {
            Unreadable::Crowded => UpstreamError::Crowded(why.to_string()),
            why => UpstreamError::Protocol(why.to_string()),
        }
    }
}

/// No session passes that an injected credential may have opened.
pub(super) fn drop_cookies(headers: &mut HeaderMap) {
    headers.remove(header::SET_COOKIE);
    headers.remove(HeaderName::from_static("set-cookie2"));
}

/// The body goes on as it was before it was compressed: nothing may speak of its old bytes.
fn tell_of_plain_text(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    // The same text, though not the same bytes (RFC 9110 §8.8.1).
    let weak = headers
        .get(header::ETAG)
        .filter(|tag| tag.as_bytes().starts_with(b"\""))
        .and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// Masks the values of fields, and drops those whose name is one.
fn mask_fields(headers: &mut HeaderMap, scrubber: &mut Scrubber) {
    for value in headers.values_mut() {
        if let Some(masked) = scrubber.whole(value.as_bytes()) {
            // Only stars are new in it.
            *value = HeaderValue::from_bytes(&masked).unwrap_or(HeaderValue::from_static("*"));
        }
    }
    let named: SmallVec<[HeaderName; 1]> =
        headers.keys().filter(|name| scrubber.is_in_name(name)).cloned().collect();
    named.iter().for_each(|name| drop(headers.remove(name)));
}
