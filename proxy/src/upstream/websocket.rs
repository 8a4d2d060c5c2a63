//! Over which connection does a WebSocket begin?
//!
//! As its client asked, because that is what the origin's own clients do: by HTTP/1.1 over a
//! connection of its own, by HTTP/2 as one stream of a shared one. What the origin does not speak
//! is bridged: one that has not said that it takes RFC 8441 is asked by HTTP/1.1, and one that
//! speaks HTTP/2 alone by that. To say is not always to do (servers say it for whatever handler
//! runs in them), so a client of HTTP/1.1 is not led there without need.

use super::connect::connect;
use super::error::UpstreamError;
use super::lease::Lease;
use super::pool::Offer;
use super::send::Route;
use crate::audit::Record;
use crate::exchange::handshake::Handshake;
use crate::gateway::Gateway;

/// A connection for `handshake`, and whether it is one of the pool's, which may have gone stale.
pub(super) async fn lease(
    gateway: &Gateway,
    route: &Route<'_>,
    handshake: &Handshake,
    pooled: bool,
    record: &mut Record,
) -> Result<(Lease, bool), UpstreamError> {
    if handshake.is_by_http2()
        && let Some(found) = shared(gateway, route, pooled, record).await?
    {
        return Ok(found);
    }
    match by(gateway, route, Offer::Http1, pooled, record).await {
        Err(UpstreamError::Tls(error)) if error.is_other_protocol() && handshake.may_be_http2() => {
            let found = shared(gateway, route, pooled, record).await?;
            found.ok_or(UpstreamError::Tls(error))
        }
        found => found,
    }
}

/// One that the origin takes WebSockets on, by whatever it chose of HTTP/2 and HTTP/1.1.
async fn shared(
    gateway: &Gateway,
    route: &Route<'_>,
    pooled: bool,
    record: &mut Record,
) -> Result<Option<(Lease, bool)>, UpstreamError> {
    let offer = route.offer(true);
    let (lease, reused) = by(gateway, route, offer, pooled, record).await?;
    // What the origin takes is known with its first frame: a part of the handshake.
    let takes = match &lease {
        Lease::Exclusive(..) => true,
        Lease::Shared(lease) => lease.takes_websockets(gateway.limits().origin_handshake).await,
    };
    Ok(takes.then_some((lease, reused)))
}

async fn by(
    gateway: &Gateway,
    route: &Route<'_>,
    offer: Offer,
    pooled: bool,
    record: &mut Record,
) -> Result<(Lease, bool), UpstreamError> {
    let origin = route.origin(offer);
    if pooled
        && let Some(lease) = route.environment.pool.take(&origin, &route.snapshot.addresses).await
    {
        return Ok((lease, true));
    }
    Ok((connect(gateway, route, origin, record).await?, false))
}
