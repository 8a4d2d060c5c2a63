//! What may pass through a tunnel to this destination?
//!
//! Policy, then addresses: what can't be reached is known before the tunnel is open, so that the
//! client can be told where it asks.

use outgate_policy::Denial;

use super::Tunnel;
use super::splice::{Route, Spliced};
use crate::gate::{self, Mode};
use crate::gateway::Gateway;
use crate::upstream::{UpstreamError, Way, turn};

/// What passes through a tunnel.
pub(crate) enum Passage {
    /// Requests, each judged by itself. TLS ends here.
    Requests,
    /// Requests too, but it is open only so that they can be told why not.
    Refusals,
    /// Requests in clear, and TLS that ends at the origin.
    OriginTls(Route),
    /// Any bytes, over a connection that is made already.
    Bytes(Spliced),
}

/// Why there is no tunnel.
pub(crate) struct NotAdmitted {
    pub(crate) denial: Denial,
    /// Whether a client inside would speak HTTP, and could read it there.
    pub(crate) is_readable_inside: bool,
}

impl Tunnel {
    /// Judges and, where any bytes may pass, dials. A refusal is in the record when this returns.
    pub(crate) async fn admit(&mut self, gateway: &Gateway) -> Result<Passage, NotAdmitted> {
        let Tunnel { environment, destination, trail, record, .. } = self;
        let grant = gate::admit(destination, environment).map_err(|denial| {
            record.refused(denial.reason);
            NotAdmitted { denial, is_readable_inside: true }
        })?;
        let mode = grant.mode();
        let passage = async {
            let _turn = turn(environment, gateway.limits()).await?;
            let rules = &grant.snapshot().addresses;
            let way = Way::find(gateway, destination, rules).await?;
            let route = Route::new(grant, way);
            Ok(match mode {
                Mode::Intercept => Passage::Requests,
                Mode::Passthrough => Passage::OriginTls(route),
                Mode::Splice => Passage::Bytes(route.take(gateway, trail, record).await?),
            })
        };
        let passage: Result<_, UpstreamError> = passage.await;
        passage.map_err(|error| {
            error.note(record);
            let denial = error.denial(destination);
            NotAdmitted { denial, is_readable_inside: mode != Mode::Splice }
        })
    }
}
