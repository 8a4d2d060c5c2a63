//! How does a permitted request reach its origin?
//!
//! Over a pooled connection of the same environment, scheme, host and port, else over a new one:
//! [`reach`] pinned addresses, [`tls`] verified for the judged name. Retried at most once, and
//! only where the origin can't have acted on it.

mod connect;
mod dial;
mod error;
mod frame;
mod lease;
mod pool;
mod profile;
mod proxy;
mod reach;
mod send;
mod settings;
mod stream;
mod tls;
mod websocket;

pub(crate) use self::error::UpstreamError;
pub(crate) use self::frame::Framing;
pub(crate) use self::lease::{Lease, SharedLease};
pub(crate) use self::pool::Pool;
pub use self::profile::Profiles;
pub(crate) use self::profile::{OriginClient, ProfileId};
pub(crate) use self::proxy::{Hop, Trail};
pub use self::proxy::{ProxyAuthorization, ProxySecurity, Spared, Upstream, UpstreamProxy};
pub(crate) use self::reach::{Peer, Way, reach, turn};
pub(crate) use self::send::{Route, send};
pub(crate) use self::stream::OriginStream;
pub(crate) use self::tls::{handshake, server_name};
