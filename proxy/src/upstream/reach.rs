//! By which way is a judged destination reached?
//!
//! Directly, or through the operator's upstream proxy. Either way its name is looked up and judged
//! here, and what is dialled, or asked of the proxy, is one of those addresses. Only where the
//! operator says `dangerously_resolve_at_proxy` is the proxy given the name. Whatever leaves, for
//! whomever, passes through here.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outgate_policy::{AddressRules, Destination, Host};
use tokio::sync::SemaphorePermit;

use super::dial::{self, DialError, dial, families_in_turn};
use super::error::UpstreamError;
use super::proxy::{Trail, Upstream, UpstreamProxy};
use super::stream::OriginStream;
use crate::gateway::Gateway;
use crate::limits::Limits;
use crate::resolve::{PinnedAddresses, ResolveError};
use crate::snapshot::Environment;

/// Head start of one address before the proxy is asked for the next too: it has to make a
/// connection of its own, and may try for longer than a client would wait.
const TUNNEL_HEAD_START: Duration = Duration::from_secs(1);
/// Addresses of one name that a proxy is asked for.
const MOST_TUNNELS: usize = 4;

/// Where a connection leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// To an address that was judged.
    At(SocketAddr),
    /// To whatever the upstream proxy has found for the name that was judged.
    FoundByProxy,
}

/// A way that may be taken.
pub(crate) enum Way {
    Direct(PinnedAddresses),
    Tunnel(PinnedAddresses, Arc<UpstreamProxy>),
    ByName(Destination, Arc<UpstreamProxy>),
}

/// A connection to `destination` for what came by `trail`.
pub(crate) async fn reach(
    gateway: &Gateway,
    destination: &Destination,
    rules: &AddressRules,
    trail: &Trail,
) -> Result<(OriginStream, Peer), UpstreamError> {
    let way = Way::find(gateway, destination, rules).await?;
    Ok(way.take(gateway, trail).await?)
}

/// A turn of `environment` to look for a way and to take it, kept while it does so.
pub(crate) async fn turn<'a>(
    environment: &'a Environment,
    limits: &Limits,
) -> Result<SemaphorePermit<'a>, UpstreamError> {
    match tokio::time::timeout(limits.connect, environment.connecting.acquire()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => Err(DialError::Timeout(limits.connect).into()),
    }
}

impl Peer {
    /// Whether `rules` still let it be met. Nobody here knows what a proxy found.
    pub(crate) fn is_permitted(self, rules: &AddressRules) -> bool {
        match self {
            Peer::At(address) => rules.judge(address).is_ok(),
            Peer::FoundByProxy => true,
        }
    }

    /// The address, where it is known.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Peer::At(address) => Some(address),
            Peer::FoundByProxy => None,
        }
    }
}

impl Way {
    /// The way to `destination`, if `rules` let there be one.
    pub(crate) async fn find(
        gateway: &Gateway,
        destination: &Destination,
        rules: &AddressRules,
    ) -> Result<Way, ResolveError> {
        let Destination { host, port } = destination;
        let proxy = match gateway.upstream() {
            Upstream::Proxy(proxy) if !proxy.spares(destination) => Some(proxy),
            Upstream::Proxy(_) | Upstream::Direct => None,
        };
        // A literal is judged in any case: there is nothing to look up.
        if let (Some(proxy), Host::Name(_)) = (proxy, host)
            && proxy.resolves
        {
            return Ok(Way::ByName(destination.clone(), Arc::clone(proxy)));
        }
        let addresses = gateway.resolver().pin(host, *port, rules).await?;
        Ok(match proxy {
            Some(proxy) => Way::Tunnel(addresses, Arc::clone(proxy)),
            None => Way::Direct(addresses),
        })
    }

    /// Makes the connection, within the time that [`Limits::connect`](crate::Limits) gives.
    pub(crate) async fn take(
        &self,
        gateway: &Gateway,
        trail: &Trail,
    ) -> Result<(OriginStream, Peer), DialError> {
        let limits = gateway.limits();
        // Boxed: whoever has no proxy need not hold room for one.
        let through: BoxFuture<'_, _> = match self {
            Way::Direct(addresses) => {
                let (stream, address) = dial(addresses, limits).await?;
                return Ok((OriginStream::Direct(stream), Peer::At(address)));
            }
            Way::Tunnel(addresses, proxy) => {
                Box::pin(through_any(gateway, addresses, proxy, trail))
            }
            Way::ByName(destination, proxy) => {
                Box::pin(by_name(gateway, destination, proxy, trail))
            }
        };
        match tokio::time::timeout(limits.connect, through).await {
            Ok(reached) => reached,
            Err(_) => Err(DialError::Timeout(limits.connect)),
        }
    }
}

async fn by_name(
    gateway: &Gateway,
    destination: &Destination,
    proxy: &UpstreamProxy,
    trail: &Trail,
) -> Result<(OriginStream, Peer), DialError> {
    let stream = proxy.tunnel(gateway, &destination.to_string(), trail).await?;
    Ok((stream, Peer::FoundByProxy))
}

/// Through `proxy` to the first of `addresses` that it reaches; directly to those it is not for.
async fn through_any(
    gateway: &Gateway,
    addresses: &PinnedAddresses,
    proxy: &UpstreamProxy,
    trail: &Trail,
) -> Result<(OriginStream, Peer), DialError> {
    // IPv4 begins: behind many proxies there is nothing else.
    let mut order: VecDeque<SocketAddr> = families_in_turn(addresses.iter(), SocketAddr::is_ipv4);
    order.truncate(MOST_TUNNELS);
    let connect = |address: SocketAddr| async move {
        let stream = match proxy.spares_address(address) {
            true => OriginStream::Direct(dial::connect(address).await?),
            false => proxy.tunnel(gateway, &address.to_string(), trail).await?,
        };
        Ok((stream, Peer::At(address)))
    };
    dial::race(order, TUNNEL_HEAD_START, connect).await
}
