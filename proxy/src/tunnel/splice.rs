//! How does a tunnel pass whose bytes nobody reads?
//!
//! To a pinned address of the very name that was judged, and only as long as the policy in force
//! would open it again.

use tokio::io::{AsyncRead, AsyncWrite};

use super::Tunnel;
use super::relay::{RelayError, relay};
use crate::audit::{Milestone, Record};
use crate::gate::{self, Terms, TunnelGrant};
use crate::gateway::Gateway;
use crate::limits::Limits;
use crate::upstream::{OriginStream, Peer, Trail, UpstreamError, Way};

/// A way to an origin that may be taken.
pub(crate) struct Route {
    grant: TunnelGrant,
    way: Way,
}

/// A connection to an origin, for the bytes of one tunnel.
pub(crate) struct Spliced {
    terms: Terms,
    origin: OriginStream,
    peer: Peer,
}

impl Route {
    pub(super) fn new(grant: TunnelGrant, way: Way) -> Route {
        Route { grant, way }
    }

    /// What it may be taken for.
    pub(super) fn grant(&self) -> &TunnelGrant {
        &self.grant
    }

    /// Connects to the origin, for what came by `trail`.
    pub(super) async fn take(
        self,
        gateway: &Gateway,
        trail: &Trail,
        record: &mut Record,
    ) -> Result<Spliced, UpstreamError> {
        let (origin, peer) = self.way.take(gateway, trail).await?;
        record.permitted(self.grant.entry(), std::iter::empty());
        record.dialled(peer);
        record.reached(Milestone::Connected);
        Ok(Spliced { terms: self.grant.into_terms(), origin, peer })
    }
}

/// Relays both ways until both sides are done, silent for too long, or not permitted any more.
pub(super) async fn splice<IO: AsyncRead + AsyncWrite + Unpin>(
    tunnel: Tunnel,
    spliced: Spliced,
    client: IO,
    limits: &Limits,
) {
    let Tunnel { environment, mut record, held: _held, .. } = tunnel;
    let Spliced { terms, origin, peer } = spliced;
    let note = |up, down| record.moved(up, down);
    let relayed = tokio::select! {
        // First: what was withdrawn while the origin was dialled passes not one byte.
        biased;
        () = gate::withdrawn(&environment, &terms, peer) => Err(RelayError::Revoked),
        relayed = relay(client, origin, limits.idle_upgraded, note) => relayed,
    };
    if let Err(error) = relayed {
        record.error(error.to_string());
    }
    record.finish();
}
