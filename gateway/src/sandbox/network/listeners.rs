//! Where does the gateway listen inside the sandbox?

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use super::{NetworkError, OWN_V4, OWN_V6, Sockets};

/// Without nf_tables every port costs two listeners, and all of them cross to the gateway in one
/// message of at most 253 (`SCM_MAX_FD`), beside those of DNS.
const MOST_PORTS: usize = 120;

/// The kernel cuts it to its own `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// What may be listened on.
#[derive(Clone, Copy)]
pub(super) struct Listeners {
    pub(super) with_v6: bool,
}

impl Listeners {
    /// A DNS server on the sandbox's own addresses.
    pub(super) fn dns(self, port: u16) -> Result<Sockets, NetworkError> {
        let bind = |address: IpAddr| UdpSocket::bind((address, port));
        let dns_udp = self.own_addresses().map(|address| {
            bind(address).map_err(|error| failed(SocketAddr::new(address, port), error))
        });
        let dns_udp = dns_udp.collect::<Result<_, _>>()?;
        Ok(Sockets { dns_udp, dns_tcp: self.own(port)?, transparent: Vec::new() })
    }

    /// TCP on the sandbox's own addresses.
    pub(super) fn own(self, port: u16) -> Result<Vec<TcpListener>, NetworkError> {
        self.own_addresses().map(|address| listen(SocketAddr::new(address, port))).collect()
    }

    /// TCP on every address there is, loopback included: nothing less can be bound.
    pub(super) fn on_every_address(self, ports: &[u16]) -> Result<Vec<TcpListener>, NetworkError> {
        let v6 = self.with_v6.then_some(IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let addresses = [IpAddr::from(Ipv4Addr::UNSPECIFIED)].into_iter().chain(v6);
        addresses
            .flat_map(|address| ports.iter().map(move |port| SocketAddr::new(address, *port)))
            .map(listen)
            .collect()
    }

    fn own_addresses(self) -> impl Iterator<Item = IpAddr> {
        let v6 = self.with_v6.then_some(IpAddr::from(OWN_V6));
        [IpAddr::from(OWN_V4)].into_iter().chain(v6)
    }
}

/// 80 and 443, then those that the environment names, as many as can be.
pub(super) fn most_wanted(named: &[u16]) -> Vec<u16> {
    let mut ports = vec![80, 443];
    for port in named {
        if !ports.contains(port) && ports.len() < MOST_PORTS {
            ports.push(*port);
        }
    }
    ports
}

fn listen(address: SocketAddr) -> Result<TcpListener, NetworkError> {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            // The IPv4 listener beside it has the IPv4 connections.
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from(socket))
    };
    listen().map_err(|error| failed(address, error))
}

fn failed(address: SocketAddr, error: io::Error) -> NetworkError {
    NetworkError::Listener { address: address.to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_web_ports_first_and_each_port_once() {
        assert_eq!(most_wanted(&[8443, 443, 8443, 22]), [80, 443, 8443, 22]);
        let many: Vec<u16> = (1..=5000).collect();
        assert_eq!(most_wanted(&many).len(), MOST_PORTS);
        let messages = 2 * MOST_PORTS + 4;
        assert!(messages <= super::super::super::channel::MOST_DESCRIPTORS);
    }
}
