//! How does the gateway itself send a request for a sandbox?
//!
//! From the head on, the way of a client's request: the same gate, injection, address rules, pool
//! and audit, under what is in force for the sandbox's environment. Only https is sent, and no
//! redirect is followed: where it leads is for the caller to ask for, and for the gate to judge.
//!
//! How long it may take is the caller's to say: dropping what [`Egress::send`] returned ends it,
//! and its audit line is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderValue, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use outgate_policy::{Denial, Reason, Scheme};

use crate::exchange::body::ReplyBody;
use crate::exchange::forward::BodyError;
use crate::exchange::run::{self, Exchange};
use crate::exchange::{Door, RequestHead};
use crate::gateway::Gateway;
use crate::snapshot::Environment;

/// Sends requests of the gateway's own.
#[derive(Clone)]
pub struct Egress {
    gateway: Arc<Gateway>,
    purpose: Purpose,
}

/// What the gateway's own requests are for; the `ingress` of their audit lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A tool call is told to whom a hook names.
    Hook,
    /// Files that an environment names are fetched.
    Source,
}

/// The content of an answer, as it streams in.
pub struct Content(ReplyBody);

/// Content that did not come whole.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// There is more of it than the caller takes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The origin broke it off.
    #[error("the answer broke off: {0}")]
    BrokenOff(#[from] BodyError),
}

impl Egress {
    /// Sends through `gateway`, whose audit lines say `purpose`.
    pub fn new(gateway: Arc<Gateway>, purpose: Purpose) -> Egress {
        Egress { gateway, purpose }
    }

    /// Sends `request`, whose target is an absolute https URL, as one of `environment`; ready with
    /// the head of the answer. Its connection lives on the caller's runtime.
    ///
    /// # Errors
    /// It is refused as a client's would be, or the origin could not be asked: with the reason.
    pub async fn send(
        &self,
        environment: &Arc<Environment>,
        request: Request<Bytes>,
    ) -> Result<Response<Content>, Denial> {
        let (parts, body) = request.into_parts();
        let begun = self.gateway.audit().own_request(self.purpose.as_str(), environment.id());
        let mut record = begun.await.map_err(|full| {
            tracing::warn!(%full, "a request of the gateway's own is refused");
            Denial::new(Reason::NotReady, "the gateway can't write its audit log")
        })?;
        record.asks(&parts.method, parts.uri.path());
        let head = match head(parts) {
            Ok(head) => head,
            Err(denial) => {
                run::note_refusal(record, &denial);
                return Err(denial);
            }
        };
        let sent = run::attempt(&self.gateway, environment, head, body.into(), record);
        match Box::pin(sent).await? {
            // Nothing asks for an upgrade; its answer would have no content.
            Exchange::Answered(response) | Exchange::Upgraded(response, _) => {
                Ok(response.map(Content))
            }
        }
    }
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Hook => "hook",
            Purpose::Source => "source",
        }
    }
}

impl Content {
    /// The next piece; none after the last.
    ///
    /// # Errors
    /// The origin broke off.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, ContentError> {
        while let Some(frame) = self.0.frame().await {
            // Trailers are no content.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All of it, up to `most` bytes.
    ///
    /// # Errors
    /// There is more, or the origin broke off.
    pub async fn collect(mut self, most: usize) -> Result<Bytes, ContentError> {
        let mut all = BytesMut::new();
        // What an origin announces is no reason to set memory aside, but to give up at once.
        if self.0.size_hint().lower() > most as u64 {
            return Err(ContentError::TooLong(most));
        }
        while let Some(piece) = self.piece().await? {
            if all.len() + piece.len() > most {
                return Err(ContentError::TooLong(most));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The head as a forward proxy's client would have sent it.
fn head(mut parts: Parts) -> Result<RequestHead, Denial> {
    parts.version = Version::HTTP_11;
    // Nobody waits to switch protocols, or to be told that a body may come.
    parts.headers.remove(header::UPGRADE);
    parts.headers.remove(header::EXPECT);
    if let Some(authority) =
        parts.uri.authority().filter(|_| !parts.headers.contains_key(header::HOST))
    {
        let host = HeaderValue::try_from(authority.as_str())
            .map_err(|_| Denial::new(Reason::MalformedHost, "the host is not ASCII"))?;
        parts.headers.insert(header::HOST, host);
    }
    let head = RequestHead::read(parts, Door::Forward)?;
    match head.scheme() {
        Scheme::Https => Ok(head),
        Scheme::Http => {
            let message =
                format!("{}: the gateway's own requests go over https only", head.destination());
            Err(Denial::new(Reason::ProtocolNotAllowed, message))
        }
    }
}
