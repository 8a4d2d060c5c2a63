//! Which certificates does each side of the gateway see?
//!
//! outgate stands between two TLS connections. Towards the client it answers for whatever name the
//! client asked for, with a leaf that its own CA issued; towards the origin it is an ordinary client
//! that believes nobody who can't prove the judged name. This crate holds both halves and knows
//! nothing else: no policy, no HTTP, no sockets, no runtime. Every call is short and synchronous.
//!
//! ```text
//! state folder ── store ──┐
//! operator's PEM ─────────┴─ Authority ── Leaves ── leaf(name) ──┐
//!                                │                               ├─ ClientTls::config → ServerConfig
//!                                │            one per environment┘
//!                                └──────────── bundle ── one PEM for the sandbox
//!                                                │
//! system roots, operator's roots ── OriginRoots ─┴─ OriginTls::config → ClientConfig
//! ```
//!
//! - [`Authority`] is the CA: made at first start (both files or neither, key 0600), or the
//!   operator's own. It signs; its key is in no output of any kind.
//! - [`Leaves`] issues one leaf per name or address and keeps it: bounded, renewed at half its
//!   life, one signing at a time per name, no cache lock held meanwhile. All leaves of a process
//!   share one key pair, because making a key costs more than the signature.
//! - [`ClientTls`] faces the clients of one environment. The caller decides who we are (the judged
//!   name, not the SNI) and hands in the leaf.
//! - [`OriginRoots`] is what we believe about origins; [`OriginTls`] faces the origins of one
//!   environment. [`failure_class`] names in a word why an origin was refused.
//! - [`bundle()`] is what a sandbox must trust: the CA, and the same roots as we do; [`hashed()`]
//!   and [`java_trust_store()`] are the same for clients that read no such file.
//!
//! Sessions are resumed on both sides, never across environments: tickets and session stores
//! belong to one `ClientTls` or `OriginTls`. There is no 0-RTT in either direction, and nothing
//! below TLS 1.2. The crypto provider is always passed by hand, never taken from the process.

mod acceptor;
mod authority;
mod bundle;
mod cache;
mod error;
mod failure;
mod inspect;
mod java;
mod leaf;
mod origin;
mod pem;
mod profile;
mod provider;
mod store;
mod subject_hash;

pub use self::acceptor::ClientTls;
pub use self::authority::Authority;
pub use self::bundle::{bundle, hashed, java_trust_store};
pub use self::cache::Leaves;
pub use self::error::CertsError;
pub use self::failure::{client_refused, failure_class};
pub use self::java::JAVA_PASSWORD;
pub use self::origin::{OriginRoots, OriginTls};
pub use self::profile::OriginProfile;
