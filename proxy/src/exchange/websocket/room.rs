//! Is there room for the text that a client is saying?
//!
//! A text is kept until it is whole and its origin takes it, and its client may leave it unfinished
//! for as long as it likes. So all texts of an environment have one bound, in common with the
//! bodies that are held back for the same reason.

use std::sync::Arc;

use outgate_policy::{Denial, Reason};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Close;
use super::message::Refusal;

/// What one WebSocket's text takes of its environment's room, in bytes.
pub(super) struct Room {
    of: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new(of: Arc<Semaphore>) -> Room {
        Room { of, taken: None }
    }

    /// Takes what `bytes` need beside what is taken; without any, all is given back.
    pub(super) fn cover(&mut self, bytes: usize) -> Result<(), Refusal> {
        if bytes == 0 {
            self.taken = None;
            return Ok(());
        }
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(bytes.saturating_sub(taken)).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.of).try_acquire_many_owned(missing).map_err(|_| full())?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            taken => *taken = Some(more),
        }
        Ok(())
    }
}

fn full() -> Refusal {
    let why = "this environment has as much unfinished text in its WebSockets and bodies as it \
               may: try again later, or raise limits.body_buffers_bytes";
    Refusal { close: Close::TryAgain, denial: Denial::new(Reason::TooManyConnections, why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_their_room_and_give_it_back() {
        let of = Arc::new(Semaphore::new(10));
        let (mut one, mut other) = (Room::new(Arc::clone(&of)), Room::new(Arc::clone(&of)));
        one.cover(4).expect("room");
        one.cover(6).expect("room");
        other.cover(4).expect("room");
        assert_eq!(of.available_permits(), 0);
        assert!(one.cover(7).is_err());
        other.cover(0).expect("nothing needs no room");
        one.cover(10).expect("room");
        drop(one);
        assert_eq!(of.available_permits(), 10);
    }
}
