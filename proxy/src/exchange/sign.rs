//! What has to be known of a body before its request is signed?
//!
//! Nothing, where the request says it by itself: a hash that the origin holds the body against, or
//! that the body is not signed. Else its hash, and for that the whole body has to be here.

use std::pin::Pin;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, Digest, SHA256};
use bytes::Bytes;
use http_body::Body;
use outgate_credentials::Payload;
use outgate_policy::{Denial, Reason};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::pulse::Pulse;
use super::silence::{Silent, unless_silent};
use super::upload::{Upload, UploadError};
use crate::audit::Record;
use crate::gate::RequestPermit;
use crate::gateway::Gateway;
use crate::limits::Limits;
use crate::snapshot::Environment;

/// What one permit of [`Environment::hashed_bodies`] stands for.
pub(crate) const ROOM_UNIT: usize = 1024;

/// Signs what `permit` is for, if that has to be, and gives back the body to be sent with it.
pub(crate) async fn sign(
    gateway: &Gateway,
    environment: &Environment,
    mut permit: RequestPermit,
    upload: Upload,
    record: &mut Record,
) -> Result<(RequestPermit, Upload), Denial> {
    if !permit.is_to_be_signed() {
        return Ok((permit, upload));
    }
    let (payload, upload) = match permit.stated_payload()? {
        Some(stated) if upload.is_as_sent() || !stated.is_hash() => (stated, upload),
        _ if upload.is_end_stream() => (Payload::empty(), upload),
        _ => {
            let pulse = permit.head().pulse();
            let findings = upload.findings();
            let collected = collect(upload, pulse.as_ref(), gateway.limits(), environment).await;
            // Of a body too long to be read ahead, they are all there only now.
            if let Some(findings) = findings {
                findings.note(record);
            }
            let (hash, body) = collected?;
            // It is here: nobody waits to be told to send it.
            permit.body_was_read(false);
            (Payload::of_hash(hash.as_ref()), Upload::from(body))
        }
    };
    permit.sign(&payload)?;
    Ok((permit, upload))
}

/// What is here of a body. Its storage is all there from the beginning, and what is not written to
/// takes no memory: one that grew would be there twice while it does, and up to twice as long as
/// what is in it afterwards, and only once is counted.
struct Gathered(Vec<u8>);

impl Gathered {
    fn with_room(bytes: usize) -> Gathered {
        Gathered(Vec::with_capacity(bytes))
    }

    /// Whether there was room for `data`.
    fn take(&mut self, data: &[u8]) -> bool {
        let fits = data.len() <= self.0.capacity() - self.0.len();
        if fits {
            self.0.extend_from_slice(data);
        }
        fits
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.shrink_to_fit();
        self.0
    }
}

/// A body that is held in memory, and its room there.
struct Held {
    bytes: Vec<u8>,
    #[expect(dead_code, reason = "its drop gives the room back")]
    room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body, and hashes it on the way. Trailers of requests are not kept: no client of
/// AWS sends any but inside the body.
async fn collect(
    mut upload: Upload,
    pulse: Option<&Pulse>,
    limits: &Limits,
    environment: &Environment,
) -> Result<(Digest, Bytes), Denial> {
    let most = limits.hashed_body;
    if upload.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let announced = upload.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut room = room(announced.unwrap_or(most), limits, environment).await?;
    let mut gathered = Gathered::with_room(announced.unwrap_or(most));
    let mut hash = Context::new(&SHA256);
    loop {
        let frame = unless_silent(limits.idle_tunnel, |cx| {
            (Pin::new(&mut upload).poll_frame(cx), upload.is_asking())
        });
        let frame = frame.await.map_err(|Silent| {
            let message =
                "the request's body stopped before its end, and is needed for a signature";
            Denial::new(Reason::RequestTimeout, message)
        })?;
        pulse.iter().for_each(|pulse| pulse.beat());
        let Some(frame) = frame else { break };
        let frame = frame.map_err(UploadError::denial)?;
        let Ok(data) = frame.into_data() else { continue };
        if !gathered.take(&data) {
            return Err(too_large(most));
        }
        hash.update(&data);
    }
    let bytes = gathered.finish();
    drop(room.split(room.num_permits().saturating_sub(units(bytes.len()))));
    Ok((hash.finish(), Bytes::from_owner(Held { bytes, room })))
}

/// Room for a body, all of it at once: two that each had a part would wait for each other.
async fn room(
    bytes: usize,
    limits: &Limits,
    environment: &Environment,
) -> Result<OwnedSemaphorePermit, Denial> {
    let count = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
    let room = Arc::clone(&environment.hashed_bodies).acquire_many_owned(count);
    match timeout(limits.response_head, room).await {
        Ok(Ok(room)) => Ok(room),
        Ok(Err(_)) | Err(_) => Err(Denial::new(
            Reason::TooManyConnections,
            "this environment has as many bodies waiting to be signed as it may: send fewer at a \
             time, or raise limits.hashed_bodies",
        )),
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(ROOM_UNIT)
}

fn too_large(most: usize) -> Denial {
    let message = format!(
        "the body has more than {most} bytes, and has to be hashed before the request is signed: \
         have the client send x-amz-content-sha256, send less at a time, or raise \
         limits.hashed_body"
    );
    Denial::new(Reason::BodyTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_takes_no_more_memory_than_is_counted_for_it() {
        let room = 100 * ROOM_UNIT;
        let mut gathered = Gathered::with_room(room);
        let piece = [7; 3 * ROOM_UNIT];
        let mut pieces = 0;
        while gathered.take(&piece) {
            pieces += 1;
            assert!(gathered.0.capacity() <= room);
        }
        assert_eq!(pieces, room / piece.len());
        let bytes = gathered.finish();
        assert_eq!(bytes.len(), pieces * piece.len());
        assert!(bytes.capacity() <= units(bytes.len()) * ROOM_UNIT, "{}", bytes.capacity());
    }
}
