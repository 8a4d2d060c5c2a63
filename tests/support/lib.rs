//! What do the end-to-end tests stand on?
//!
//! A test runs inside an "internet" of its own: [`isolated`] gives it fresh user, network and mount
//! namespaces in which every address is local, so an origin may bind 11.22.33.44:443 and the
//! gateway reaches it as the global-looking address that it is. In there a [`World`] holds a
//! scriptable name server, a test CA and the table of names; origins record every byte they
//! receive; the built program runs as a process of its own; and real `curl`, or a client that sends
//! bytes exactly as given, speaks to it.
//!
//! ```ignore
//! #[test]
//! fn refuses_a_domain_that_no_entry_names() {
//!     isolated(|| {
//!         let world = world!();
//!         let evil = world.https("evil.example.test").start();
//!         let gateway = world.gateway(json!({
//!             "network": {"allowlist": [{"domain": "api.example.com"}]}
//!         }));
//!         let answer = gateway.curl("https://evil.example.test/").run();
//!         assert_eq!(answer.connect_status, 403);
//!         assert_eq!(answer.reason(), Some("domain_not_allowed"));
//!         assert_eq!(evil.connections(), 0);
//!     });
//! }
//! ```
//!
//! Rust, curl and user namespaces are all it needs; where one is missing the test fails and says
//! which. Everything here panics with a sentence rather than returning an error, except where the
//! error is what a test wants to see.

pub mod both_ways;
pub mod client;
pub mod command;
pub mod compress;
pub mod dns;
pub mod door;
pub mod gateway;
pub mod gcs;
pub mod http;
pub mod http2;
pub mod names;
pub mod network;
pub mod origin;
pub mod pki;
pub mod pty;
pub mod repository;
pub mod run;
pub mod secrets;
mod transport;
pub mod upstream_proxy;
pub mod wait;
mod world;

pub use network::isolated;
pub use world::World;

/// What a test file needs, in one line.
pub mod prelude {
    pub use std::time::Duration;

    pub use serde_json::json;

    pub use crate::both_ways::{BothWays, Way};
    pub use crate::client::{Curl, Hello, RawClient, TlsFault};
    pub use crate::compress::{CODINGS, compress};
    pub use crate::dns::Reply;
    pub use crate::door::Door;
    pub use crate::gateway::Gateway;
    pub use crate::http::{ReadFault, Request, Response};
    pub use crate::http2::{FrameClient, Http2Client, frames};
    pub use crate::network::{self, isolated};
    pub use crate::origin::{
        self, Blackhole, Connection, Http2Origin, Origin, SilentListener, Stream, scripts,
    };
    pub use crate::run::Run;
    pub use crate::secrets::{assert_secret_absent, canary};
    pub use crate::wait::wait_until;
    pub use crate::{World, world};
}

/// A [`World`] whose gateway is the program that Cargo built for this test target.
#[macro_export]
macro_rules! world {
    () => {
        $crate::World::new(env!("CARGO_BIN_EXE_outgate"))
    };
}
