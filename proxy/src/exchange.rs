//! How does one request become one answer?
//!
//! `serve` reads requests off a client connection; `head` reconciles what each says about where it
//! goes; the gate permits it; `substitution` puts values into its body; `sign` signs it where that
//! has to be; `inject` is the last to touch it; `upstream` sends it; `forward`
//! streams the answer back. `reply` is what the client reads instead where it is refused.

pub(crate) mod body;
pub(crate) mod client_io;
pub(crate) mod expect;

pub(crate) mod forward;
pub(crate) mod handshake;
mod head;
mod hop_by_hop;
pub(crate) mod inject;
pub(crate) mod interim;
mod last_byte;
pub(crate) mod pulse;
pub(crate) mod reply;
mod reserved;
pub(crate) mod run;
mod scrubbed;
pub(crate) mod serve;
pub(crate) mod sign;
mod silence;
mod substitution;
pub(crate) mod switched;
mod trailers;
mod upgrade;
mod upload;
pub(crate) mod websocket;

pub(crate) use self::head::{Door, RequestHead, TunnelTarget, named};

pub(crate) use self::substitution::Findings;
pub(crate) use self::upgrade::{Upgrade, splice};
