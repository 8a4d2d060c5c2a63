//! How do tests speak HTTP/2, well-behaved or frame by frame?
//!
//! [`Http2Client`] is a client with streams that a test holds open, resets or lets starve;
//! [`FrameClient`] writes frames as no library would. Their counterpart is
//! [`Http2Origin`](crate::origin::Http2Origin).

mod background;
mod client;
mod exchange;
mod frame_client;
pub mod frames;
mod hpack;

pub use client::{Builder, Http2Client};
pub use exchange::{Answer, Exchange};
pub(crate) use exchange::{header_map, send_all};
pub use frame_client::{FrameClient, RawAnswer};
pub use h2::{Error, Reason};

pub(crate) use background::{Background, wait, within};

/// A fault of one stream or of its connection, as the reason that the peer gave; `None` where there
/// was none, as when the connection just ended.
pub fn reason<T>(outcome: &Result<T, Error>) -> Option<Reason> {
    outcome.as_ref().err().and_then(Error::reason)
}
