//! How do values take the place of placeholders in what a client says over a WebSocket?
//!
//! For entries with `websocket_text`, in text messages alone. `decode` reads the client's frames
//! (RFC 6455 §5) and lets all but texts pass as they are; `message` puts the values in; `encode`
//! writes the message as one frame with a mask of its own; `room` bounds what is kept of all;
//! `searched` is the client's stream with all that in it. No extension is agreed on: bytes that are
//! compressed can't be read.

mod boundary;
mod decode;
mod encode;
mod message;
mod room;
mod searched;

#[cfg(any(test, fuzzing))]
pub(crate) use self::decode::{Decoder, Said};
#[cfg(any(test, fuzzing))]
pub(crate) use self::encode::text;
pub(super) use self::message::Messages;
pub(super) use self::searched::Searched;

/// Why a WebSocket is closed (RFC 6455 §7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// What the other side said can't be passed on.
    GoingAway,
    Protocol,
    NotUtf8,
    Policy,
    TooBig,
    Internal,
    /// Registered later than the RFC.
    TryAgain,
}

impl Close {
    fn code(self) -> u16 {
        match self {
            Close::GoingAway => 1001,
            Close::Protocol => 1002,
            Close::NotUtf8 => 1007,
            Close::Policy => 1008,
            Close::TooBig => 1009,
            Close::Internal => 1011,
            Close::TryAgain => 1013,
        }
    }
}

/// How many bytes a frame's head has, by its second byte (RFC 6455 §5.2).
fn head_length(second: u8) -> usize {
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
}

/// The length of a frame's payload, by its whole head.
fn payload_length(head: &[u8]) -> u64 {
    let extended = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    match head[1] & 0x7f {
        126 => extended(&head[2..4]),
        127 => extended(&head[2..10]),
        short => u64::from(short),
    }
}
