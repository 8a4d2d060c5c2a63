//! The data path of outgate.
//!
//! A request takes one way, and each stage takes the value of the one before, so that none can be
//! skipped:
//!
//! ```text
//! listener    a socket                     who comes, on which listener
//! ingress     CONNECT or an absolute URL   whose it is, where it wants to go
//! gate        admit                        a TunnelGrant, or a refusal
//! resolve     pin                          PinnedAddresses, or a refusal
//! tunnel      detect, intercept            TLS ends here, as the tunnel's destination
//! exchange    serve, head                  a RequestHead: one name, one port, one framing
//! gate        permit                       a RequestPermit, or a refusal
//! exchange    inject                       the last thing that touches the request
//! upstream    pool, or dial + TLS          verified for the judged name
//! exchange    forward                      the answer streams back, bytes counted
//! audit       one line, always
//! ```
//!
//! A [`Gateway`] is built from its [`Parts`] and given bound [`Listener`]s; it knows nothing of
//! files, flags or signals. [`Environment`] and [`Snapshot`] say whose traffic may go where;
//! [`Limits`] has every deadline and bound.

mod accepting;
mod audit;
mod budget;
mod connection;
mod dns;
mod egress;
mod exchange;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod gateway;
mod ingress;
mod limits;
mod listener;
mod names;
mod resolve;
mod snapshot;
mod tokens;
mod tunnel;
mod upstream;

pub use self::audit::{AuditSink, AuditWriter, CredentialChange, HookOutcome, SinkFull, Tally};
pub use self::dns::DnsListener;
pub use self::egress::{Content, ContentError, Egress, Purpose};
pub use self::gateway::{Gateway, Parts, Refusals};
pub use self::ingress::Ingress;
pub use self::ingress::identity::{Clients, Environments, Ownership, Token};
pub use self::limits::Limits;
pub use self::listener::Listener;
pub use self::resolve::Resolver;
pub use self::snapshot::{Environment, Snapshot};
pub use self::tokens::TokenEndpoints;
pub use self::upstream::{
    Profiles, ProxyAuthorization, ProxySecurity, Spared, Upstream, UpstreamProxy,
};
