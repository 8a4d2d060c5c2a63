//! What is sent of an upload whose placeholders were looked for?

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::super::upload::UploadError;
use super::Findings;
use super::filter::Filtered;
use super::gather::Gathered;

/// What was read ahead, then what is still to come.
pub(crate) struct Substituted {
    ahead: Gathered,
    rest: Option<Filtered>,
    findings: Arc<Findings>,
    changed: bool,
}

impl Gathered {
    pub(super) fn followed_by(self, rest: Filtered) -> Substituted {
        let findings = rest.findings();
        let changed = rest.changed();
        let rest = (!self.whole).then_some(rest);
        Substituted { ahead: self, rest, findings, changed }
    }
}

impl Substituted {
    /// An upload of which nothing was read ahead.
    pub(super) fn streaming(rest: Filtered) -> Substituted {
        Gathered::default().followed_by(rest)
    }

    /// Whether it is, or may yet become, another than its client sends.
    pub(in crate::exchange) fn may_differ(&self) -> bool {
        self.changed || self.rest.as_ref().is_some_and(Filtered::may_change)
    }

    /// Whether it waits for a value, and not for its client.
    pub(in crate::exchange) fn is_asking(&self) -> bool {
        self.ahead.pieces.is_empty() && self.rest.as_ref().is_some_and(Filtered::is_asking)
    }

    pub(crate) fn findings(&self) -> Arc<Findings> {
        Arc::clone(&self.findings)
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(piece) = self.ahead.pieces.pop_front() {
            self.ahead.bytes -= piece.len();
            if self.ahead.pieces.is_empty() {
                self.ahead.room = None;
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut self.rest {
            Some(rest) => rest.poll_frame(cx),
            None => Poll::Ready(self.ahead.trailers.take().map(|all| Ok(Frame::trailers(all)))),
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.ahead.pieces.is_empty() && self.ahead.trailers.is_none() && self.rest.is_none()
    }

    /// Trailers need a body without a length (RFC 9112 §7.1.2).
    pub(crate) fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.bytes as u64;
        let rest = match &self.rest {
            Some(rest) => rest.remaining(),
            None => Some(0),
        };
        match rest {
            Some(rest) if self.ahead.trailers.is_none() => SizeHint::with_exact(ahead + rest),
            _ => {
                let mut hint = SizeHint::new();
                hint.set_lower(ahead);
                hint
            }
        }
    }
}
