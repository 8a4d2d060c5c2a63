//! Where does the host listen that no sandbox may reach?

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

use nix::ifaddrs::getifaddrs;

use super::Met;
use crate::verify::probes::PROBES;

/// More interfaces than this prove nothing more.
const MOST_INTERFACES: usize = 8;

/// Sockets that accept whatever comes.
pub(super) struct Network {
    canary: String,
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    name: Vec<u8>,
    unix: UnixListener,
}

impl Network {
    /// Listens on loopback and on the addresses of the interfaces.
    pub(super) fn listen(canary: &str) -> io::Result<Network> {
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let addresses: Vec<_> = loopback.into_iter().chain(interfaces()).collect();
        // An address may be on its way in or out; one of a family that is switched off has no door.
        let tcp = addresses.iter().filter_map(|address| TcpListener::bind((*address, 0)).ok());
        let udp = addresses.iter().filter_map(|address| UdpSocket::bind((*address, 0)).ok());
        let (tcp, udp): (Vec<_>, Vec<_>) = (tcp.collect(), udp.collect());
        let name = format!("outgate-verify-{}", &canary[..8]).into_bytes();
        let unix = UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name)?)?;
        unix.set_nonblocking(true)?;
        for listener in &tcp {
            listener.set_nonblocking(true)?;
        }
        for socket in &udp {
            socket.set_nonblocking(true)?;
        }
        Ok(Network { canary: canary.to_owned(), tcp, udp, name, unix })
    }

    pub(super) fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let tcp = self.tcp.iter().filter_map(|listener| listener.local_addr().ok());
        let udp = self.udp.iter().filter_map(|socket| socket.local_addr().ok());
        (tcp.collect(), udp.collect())
    }

    pub(super) fn abstract_name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn met(&self) -> Vec<Met> {
        let mut met: Vec<Met> = self.tcp.iter().filter_map(connection).collect();
        met.extend(self.udp.iter().flat_map(|socket| self.datagrams(socket)));
        if self.unix.accept().is_ok() {
            met.push(Met { probe: "abstract-sockets", what: "the witness's socket".to_owned() });
        }
        met
    }

    /// Each says which probe it is of. What comes without the canary is somebody else's.
    fn datagrams(&self, socket: &UdpSocket) -> Vec<Met> {
        let mut met = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok((length, _)) = socket.recv_from(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]);
            let of = PROBES.iter().find(|probe| {
                text.contains(&self.canary) && text.split(' ').any(|word| word == probe.name)
            });
            let what = || format!("{:?} over UDP", socket.local_addr());
            met.extend(of.map(|probe| Met { probe: probe.name, what: what() }));
        }
        met
    }
}

fn connection(listener: &TcpListener) -> Option<Met> {
    let (_, address) = (listener.accept().ok()?, listener.local_addr().ok()?);
    let probe = if address.ip().is_loopback() { "host-loopback" } else { "host-interfaces" };
    Some(Met { probe, what: address.to_string() })
}

/// Addresses without a zone.
fn interfaces() -> Vec<IpAddr> {
    let addresses = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|it| IpAddr::from(it.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::from(it.ip())))
    });
    let local = |address: &IpAddr| match address {
        IpAddr::V6(address) => address.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    addresses.filter(|it| !it.is_loopback() && !local(it)).take(MOST_INTERFACES).collect()
}
