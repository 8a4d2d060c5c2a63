//! What did the caller send, and what if it is too much, too slow or no text?
//!
//! In the place of axum's own extractors, whose refusals are plain text that no SDK understands.

use std::error::Error;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::answer::Refusal;

/// From the head of a request to the end of its body.
const BODY: Duration = Duration::from_secs(30);
/// The largest document that is ever sent here has a few thousand entries.
const BODY_BYTES: usize = 8 << 20;

/// A request's body.
pub(super) struct Sent(pub(super) Bytes);

/// What stands in a path for its parameters.
pub(super) struct Named<T>(pub(super) T);

/// Reads a body to its end, if that comes in time.
pub(super) async fn whole_body(body: Body, most: usize) -> Result<Bytes, Refusal> {
    match timeout(BODY, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(|why| why.is::<LengthLimitError>()) => {
            Err(Refusal::too_large(format!("the body has more than {most} bytes")))
        }
        Ok(Err(_)) => Err(Refusal::invalid("the body broke off")),
        Err(_) => Err(Refusal::invalid("the body did not come within 30 s")),
    }
}

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Sent, Refusal> {
        whole_body(request.into_body(), BODY_BYTES).await.map(Sent)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send + 'static> FromRequestParts<S> for Named<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Named<T>, Refusal> {
        match parts.extract::<Path<T>>().await {
            Ok(Path(named)) => Ok(Named(named)),
            Err(error) => Err(Refusal::invalid(error.body_text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::HttpBody;
    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    /// A body of which nothing comes.
    struct Silent;

    impl HttpBody for Silent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_waited_for_half_a_minute() {
        let began = Instant::now();
        let late = whole_body(Body::new(Silent), 9).await;
        assert_eq!(late, Err(Refusal::invalid("the body did not come within 30 s")));
        assert!(began.elapsed() <= BODY + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_told_so() {
        assert_eq!(whole_body(Body::from("12345"), 5).await, Ok(Bytes::from("12345")));
        let refused = whole_body(Body::from("123456"), 5).await.unwrap_err();
        assert_eq!(refused, Refusal::too_large("the body has more than 5 bytes"));
    }
}
