//! Which addresses are the gateway's own machine's?
//!
//! A connection there never leaves the machine: rules for what comes from outside don't see it, and
//! whoever listens there takes it for one of the machine's own programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;

/// Interfaces get addresses seldom, and listing them takes as long as a small request.
const FRESH: Duration = Duration::from_secs(1);

/// What the machine's interfaces have, looked at now and then.
#[derive(Default)]
pub(crate) struct Machine(Mutex<Option<Seen>>);

struct Seen {
    at: Instant,
    addresses: Vec<IpAddr>,
}

impl Machine {
    /// Whether an interface has this address. A route may make any other local, too. Where the
    /// kernel doesn't tell, every address may be one.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let mut seen = self.0.lock().expect("nobody panics with it");
        if seen.as_ref().is_none_or(|seen| seen.at.elapsed() > FRESH) {
            *seen = assigned().map(|addresses| Seen { at: Instant::now(), addresses });
        }
        seen.as_ref().is_none_or(|seen| seen.addresses.contains(&address))
    }
}

/// The addresses of all interfaces, if the kernel tells.
pub(crate) fn assigned() -> Option<Vec<IpAddr>> {
    let interfaces = getifaddrs()
        .inspect_err(|error| tracing::error!(%error, "the machine's addresses can't be listed"))
        .ok()?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|found| IpAddr::V4(found.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|found| IpAddr::V6(found.ip())))
    });
    Some(addresses.collect())
}

/// Whether a listener on every address is met at this one, be it assigned or made local by a
/// route: then the kernel picks as source the address itself. No packet is sent.
pub(super) fn is_met_at(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
    source.is_ok_and(|source| source.ip() == address.ip())
}
