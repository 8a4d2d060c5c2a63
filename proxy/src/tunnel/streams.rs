//! Which WebSockets are streams of one HTTP/2 connection?
//!
//! Each is relayed by a task of its own, beside the connection's other requests. They belong to the
//! connection: with its end they end.

use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use http::request::Parts;
use hyper::upgrade::OnUpgrade;
use tokio::task::JoinSet;

use crate::exchange::body::Place;
use crate::exchange::pulse::Pulse;
use crate::exchange::switched::Switched;
use crate::exchange::{Upgrade, splice};
use crate::gateway::Gateway;
use crate::limits::LINGER;

/// The WebSockets of one connection; most have none.
#[derive(Default)]
pub(super) struct Streams(Mutex<Option<JoinSet<()>>>);

/// A client's stream that may become one.
pub(super) struct Candidate {
    client: OnUpgrade,
    pulse: Pulse,
}

impl Candidate {
    /// The stream of this request, if it is one: over HTTP/1.1 it would be the whole connection.
    pub(super) fn of(parts: &Parts) -> Option<Candidate> {
        if parts.method != Method::CONNECT {
            return None;
        }
        let client = parts.extensions.get::<OnUpgrade>()?.clone();
        Some(Candidate { client, pulse: parts.extensions.get::<Pulse>()?.clone() })
    }
}

impl Streams {
    /// Relays once the client has its answer.
    pub(super) fn begin(
        &self,
        candidate: Candidate,
        place: Place,
        upgrade: Upgrade,
        gateway: &Arc<Gateway>,
    ) {
        let Candidate { client, pulse } = candidate;
        let gateway = Arc::clone(gateway);
        // From now on, not from when the task first runs: the answer's own end comes before.
        let relaying = pulse.relay();
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let relays = begun.get_or_insert_default();
        while relays.try_join_next().is_some() {}
        relays.spawn(async move {
            let (_relaying, _place) = (relaying, place);
            match client.await {
                Ok(client) => Box::pin(splice(upgrade, Switched::new(client), &gateway)).await,
                Err(_) => upgrade.give_up(),
            }
        });
    }

    /// Lets them see the end of their connection, each with its audit line.
    pub(super) async fn ended(&self) {
        let relays = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut relays) = relays {
            let all = async { while relays.join_next().await.is_some() {} };
            // What does not end by itself is cut by the drop.
            drop(tokio::time::timeout(LINGER, all).await);
        }
    }
}
