//! How much of a body is read before its request is sent?
//!
//! All of it, if it fits; else as much as fits. One that says no length and pauses is sent as it
//! comes, since its client may be waiting for an answer.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use outgate_policy::{Denial, Reason};
use tokio::sync::OwnedSemaphorePermit;

use super::super::pulse::Pulse;
use super::super::silence::{Silent, unless_silent};
use super::filter::Filtered;
use crate::limits::Limits;
use crate::snapshot::Environment;

/// Shorter pieces are put together: each keeps the buffer that it was read into.
const SHORT: usize = 4 << 10;

/// What was read ahead, as it is to be sent.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) pieces: VecDeque<Bytes>,
    /// Short ones, behind those.
    short: BytesMut,
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
        let pause = if waits { limits.idle_tunnel } else { limits.body_pause };
        let next = unless_silent(pause, |cx| (filtered.poll_frame(cx), filtered.is_asking()));
        let next = match next.await {
            Ok(next) => next,
            Err(Silent) if waits => return Err(stalled()),
            Err(Silent) => return Ok(gathered.together()),
        };
        pulse.into_iter().for_each(Pulse::beat);
        let frame = match next {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Err(error.denial()),
            None => return Ok(Gathered { whole: true, ..gathered.together() }),
        };
        match frame.into_data() {
            Ok(piece) => {
                let fits = gathered.takes(piece, environment);
                if !fits || gathered.bytes.max(filtered.taken()) > limits.body_buffer_bytes {
                    return Ok(gathered.together());
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
    fn keep(&mut self, piece: Bytes) {
        if piece.len() < SHORT {
            self.short.extend_from_slice(&piece);
        }
        if piece.len() >= SHORT || self.short.len() >= SHORT {
            self.put_together();
        }
        if piece.len() >= SHORT {
            self.pieces.push_back(piece);
        }
    }

    fn put_together(&mut self) {
        if !self.short.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.short).freeze());
        }
    }

    fn together(mut self) -> Gathered {
        self.put_together();
        self
    }

    /// Whether there was room for this piece; it is kept either way.
    fn takes(&mut self, piece: Bytes, environment: &Environment) -> bool {
        let bytes = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        self.bytes += piece.len();
        self.keep(piece);
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
