//! Where does the body of a request come from?

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use outgate_policy::{Denial, Reason};

use super::substitution::{Findings, Substituted};

/// Where the body of a request comes from.
pub(crate) enum Upload {
    /// A client sends it.
    Incoming(Incoming),
    /// The gateway has it: a request of its own.
    Memory(Bytes),
    /// One of these, with values in place of placeholders.
    Substituted(Box<Substituted>),
}

/// Why an upload breaks off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// Its client did it.
    #[error(transparent)]
    Client(#[from] hyper::Error),
    /// It must not go on.
    #[error(transparent)]
    Refused(Denial),
}

/// What its client did to an upload.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum Breach {
    #[error("the client left before the end of its request's body")]
    Left,
    /// It broke the rules, as far as is known.
    #[error("the request's body ended early")]
    Malformed,
}

impl UploadError {
    /// What it means for a request that was not sent yet.
    pub(super) fn denial(self) -> Denial {
        match self {
            UploadError::Client(error) => {
                Denial::new(Reason::MalformedRequest, Breach::of(&error).to_string())
            }
            UploadError::Refused(denial) => denial,
        }
    }
}

impl Breach {
    pub(super) fn of(error: &hyper::Error) -> Breach {
        use io::ErrorKind::{InvalidData, InvalidInput};
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_malformed = cause.is_some_and(|io| matches!(io.kind(), InvalidData | InvalidInput));
        match is_malformed || error.is_parse() {
            true => Breach::Malformed,
            false => Breach::Left,
        }
    }
}

impl Upload {
    /// What is found in it, where placeholders are looked for.
    pub(super) fn findings(&self) -> Option<Arc<Findings>> {
        match self {
            Upload::Incoming(_) | Upload::Memory(_) => None,
            Upload::Substituted(substituted) => Some(substituted.findings()),
        }
    }

    /// Whether it waits for something else than its client.
    pub(super) fn is_asking(&self) -> bool {
        match self {
            Upload::Incoming(_) | Upload::Memory(_) => false,
            Upload::Substituted(substituted) => substituted.is_asking(),
        }
    }

    /// Whether the origin gets the very bytes that the client has spoken of in its head.
    pub(super) fn is_as_sent(&self) -> bool {
        match self {
            Upload::Incoming(_) | Upload::Memory(_) => true,
            Upload::Substituted(substituted) => !substituted.may_differ(),
        }
    }
}

impl From<Incoming> for Upload {
    fn from(incoming: Incoming) -> Upload {
        Upload::Incoming(incoming)
    }
}

impl From<Bytes> for Upload {
    fn from(bytes: Bytes) -> Upload {
        Upload::Memory(bytes)
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self.get_mut() {
            Upload::Incoming(incoming) => {
                Pin::new(incoming).poll_frame(cx).map_err(UploadError::Client)
            }
            Upload::Memory(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Upload::Substituted(substituted) => substituted.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Upload::Incoming(incoming) => incoming.is_end_stream(),
            Upload::Memory(bytes) => bytes.is_empty(),
            Upload::Substituted(substituted) => substituted.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Upload::Incoming(incoming) => incoming.size_hint(),
            Upload::Memory(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Upload::Substituted(substituted) => substituted.size_hint(),
        }
    }
}
