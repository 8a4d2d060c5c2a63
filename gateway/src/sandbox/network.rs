//! What network does the command have?
//!
//! Nothing but `lo`. Every address of the world is local to it (`local default dev lo`), and nf_tables
//! sends every TCP connection to a listener that was made in here and is served from outside:
//!
//! ```text
//! 127.0.0.0/8, ::1                    the sandbox's own
//! 198.18.0.1:53, fd6f:…::1 port 53    the gateway's DNS
//! any other TCP                       198.18.0.1:1 or fd6f:…::1 port 1, the gateway
//! any other UDP                       ICMP port unreachable
//! anything else                       dropped
//! ```
//!
//! The rules are there to lead traffic to the gateway and to answer the rest at once. What holds is
//! that the namespace has no other interface: without the rules, nothing leaves either.

mod listeners;
mod netlink;
mod nftables;
mod routes;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::listeners::Listeners;

/// The sandbox's own address beside loopback: with loopback addresses alone, resolvers ask for no
/// family at all (getaddrinfo(3), `AI_ADDRCONFIG`). Both are of the synthetic ranges (SPEC 6).
pub(crate) const OWN_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// [`OWN_V4`] for IPv6.
pub(crate) const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xfd6f, 0x7574, 0x6761, 0x7465, 0, 0, 0, 1);

/// Below 1024, so that it takes no port from the command, which may bind none of those.
const TRANSPARENT_PORT: u16 = 1;
const DNS_PORT: u16 = 53;

/// What connections end in the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Capture {
    /// All of TCP. The original destination is what `SO_ORIGINAL_DST` says.
    Every,
    /// Those to these ports, where nf_tables is missing. The original destination is the local
    /// address of the connection, and a loopback address may be among them.
    Ports { ports: Vec<u16>, missing: String },
}

/// What the gateway serves.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    pub(crate) transparent: Vec<TcpListener>,
    pub(crate) dns_udp: Vec<UdpSocket>,
    pub(crate) dns_tcp: Vec<TcpListener>,
}

/// Why there is no network.
#[derive(Debug, Error)]
pub(crate) enum NetworkError {
    #[error("lo can't be raised: {0}")]
    Loopback(io::Error),
    #[error("{OWN_V4} can't be given to lo: {0}")]
    Address(io::Error),
    #[error("addresses can't be made local: {0}")]
    Route(io::Error),
    #[error("a listener for {address}: {error}")]
    Listener { address: String, error: io::Error },
}

/// Sets up the namespace that this process is alone in, where it may.
pub(super) fn set_up(ports: &[u16]) -> Result<(Sockets, Capture), NetworkError> {
    // Where these can't be written, the rules drop what they are about.
    let _ = fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
    let _ = fs::write("/proc/sys/net/ipv6/icmp/echo_ignore_all", "1");
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
    routes::raise_loopback().map_err(NetworkError::Loopback)?;
    routes::add_address(OWN_V4.into()).map_err(NetworkError::Address)?;
    routes::make_every_address_local(OWN_V4.into()).map_err(NetworkError::Route)?;
    // A kernel without IPv6 has nothing to capture: an IPv6 destination is unreachable.
    let with_v6 = routes::add_address(OWN_V6.into())
        .and_then(|()| routes::make_every_address_local(OWN_V6.into()))
        .is_ok();
    let listeners = Listeners { with_v6 };
    let mut sockets = listeners.dns(DNS_PORT)?;
    let capture = match nftables::install(DNS_PORT, TRANSPARENT_PORT) {
        Ok(()) => {
            sockets.transparent = listeners.own(TRANSPARENT_PORT)?;
            Capture::Every
        }
        Err(error) => {
            let ports = listeners::most_wanted(ports);
            sockets.transparent = listeners.on_every_address(&ports)?;
            Capture::Ports { ports, missing: error.to_string() }
        }
    };
    Ok((sockets, capture))
}

#[cfg(test)]
mod tests;
