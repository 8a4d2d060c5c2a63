//! How much of a body is read before its request is sent?
//!
//! All of it, if it fits; else as much as fits. One that says no length and pauses is sent as it
//! comes, since its client may be waiting for an answer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use outgate_policy::{Denial, Reason};
use tokio::sync::OwnedSemaphorePermit;

use super::super::pulse::Pulse;
use super::super::upload::UploadError;
use super::broken_off;
use super::filter::Filtered;
use crate::limits::Limits;
use crate::snapshot::Environment;

/// What was read ahead, as it is to be sent.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) pieces: VecDeque<Bytes>,
    pub(super) bytes: usize,
    pub(super) trailers: Option<HeaderMap>,
    /// There is no more.
    pub(super) whole: bool,
    /// The room that it takes.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

pub(super) async fn gather(
    filtered: &mut Filtered,
    limits: &Limits,
    environment: &Environment,
    pulse: Option<&Pulse>,
) -> Result<Gathered, Denial> {
    let mut gathered = Gathered::default();
    let waits = filtered.said_length().is_some();
    loop {
        let next = poll_fn(|cx| filtered.poll_frame(cx));
        let next = match waits {
            true => match tokio::time::timeout(limits.idle_tunnel, next).await {
                Ok(next) => next,
                Err(_) => return Err(stalled()),
            },
            false => match tokio::time::timeout(limits.body_pause, next).await {
                Ok(next) => next,
                Err(_) => return Ok(gathered),
            },
        };
        pulse.into_iter().for_each(Pulse::beat);
        let frame = match next {
            Some(Ok(frame)) => frame,
            Some(Err(UploadError::Refused(denial))) => return Err(denial),
            Some(Err(UploadError::Client(_))) => return Err(broken_off()),
            None => return Ok(Gathered { whole: true, ..gathered }),
        };
        match frame.into_data() {
            Ok(piece) => {
                let fits = gathered.takes(piece, environment);
                if !fits || gathered.bytes.max(filtered.taken()) > limits.body_buffer_bytes {
                    return Ok(gathered);
                }
            }
            Err(frame) => gathered.trailers = frame.into_trailers().ok(),
        }
    }
}

fn stalled() -> Denial {
    Denial::new(Reason::RequestTimeout, "the request's body stopped before its end")
}

impl Gathered {
    /// Whether there was room for this piece; it is kept either way.
    fn takes(&mut self, piece: Bytes, environment: &Environment) -> bool {
        let bytes = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        self.bytes += piece.len();
        self.pieces.push_back(piece);
        let Ok(more) = Arc::clone(&environment.body_room).try_acquire_many_owned(bytes) else {
            return false;
        };
        match &mut self.room {
            Some(room) => room.merge(more),
            room => *room = Some(more),
        }
        true
    }
}
