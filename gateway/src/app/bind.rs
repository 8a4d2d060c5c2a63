//! Where do clients come in, and whose are they there?

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::socket::sockopt::{IpTransparent, ReuseAddr};
use nix::sys::socket::{
    Backlog, SockFlag, SockProtocol, SockType, SockaddrLike, SockaddrStorage, bind, listen,
    setsockopt, socket,
};
use outgate_policy::EnvironmentId;
use outgate_proxy::{DnsListener, Environments, Ingress, Listener, Ownership};

use crate::config::{BindAddress, ClientListener, Settings, Way};
use crate::environments::ownership;
use crate::failure::Failure;
use crate::management::bind_unix;
use crate::sandbox;

/// How often a port that is free for UDP alone is given up for another.
const PORT_TRIES: usize = 16;

/// Every socket for clients, bound.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) names: Vec<DnsListener>,
    /// Where they really listen.
    pub(crate) addresses: Vec<(Way, BindAddress)>,
}

impl Sockets {
    /// Binds all of them, or fails.
    pub(super) fn bind(
        settings: &Settings,
        environments: &Environments,
    ) -> Result<Sockets, Failure> {
        let mut sockets = Sockets::default();
        for listener in &settings.listeners {
            let owner = ownership(listener, environments, &settings.environments)?;
            sockets.add(listener, owner)?;
        }
        Ok(sockets)
    }

    /// Those of a sandbox: this environment's, since nobody else can reach them. Their addresses are
    /// of another network than the one that the gateway dials in, so they are none of its own there.
    pub(crate) fn of_sandbox(inside: sandbox::Sockets, id: &EnvironmentId) -> io::Result<Sockets> {
        let transparent = inside.transparent.into_iter();
        let transparent =
            transparent.map(|socket| Listener::sealed(Ingress::Transparent, socket, id.clone()));
        let names = inside.dns_udp.into_iter().zip(inside.dns_tcp);
        let names = names.map(|(udp, tcp)| DnsListener::sealed(udp, tcp, id.clone()));
        Ok(Sockets {
            listeners: transparent.collect::<Result<_, _>>()?,
            names: names.collect::<Result<_, _>>()?,
            addresses: Vec::new(),
        })
    }

    /// Other handles to the same sockets, for another worker.
    pub(super) fn try_clone(&self) -> io::Result<Sockets> {
        Ok(Sockets {
            listeners: self.listeners.iter().map(Listener::try_clone).collect::<Result<_, _>>()?,
            names: self.names.iter().map(DnsListener::try_clone).collect::<Result<_, _>>()?,
            addresses: self.addresses.clone(),
        })
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &BindAddress> {
        self.addresses.iter().map(|(_, bind)| bind)
    }

    pub(super) fn of(&self, way: Way) -> impl Iterator<Item = &BindAddress> {
        self.addresses.iter().filter(move |(of, _)| *of == way).map(|(_, bind)| bind)
    }

    /// The files of the Unix sockets.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.addresses().filter_map(BindAddress::unix).collect()
    }

    fn add(&mut self, wanted: &ClientListener, owner: Ownership) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::start(format_args!("listener {}: {error}", wanted.bind));
        let ingress = match wanted.way {
            Way::Explicit => Ingress::Explicit,
            Way::Socks => Ingress::Socks,
            Way::Transparent => Ingress::Transparent,
            Way::Dns => return self.add_names(wanted, owner).map_err(failed),
        };
        let bound = match &wanted.bind {
            BindAddress::Tcp(address) => {
                let (socket, bound) = match wanted.way {
                    Way::Transparent => listen_transparent(*address),
                    Way::Explicit | Way::Socks | Way::Dns => listen_tcp(*address),
                }
                .map_err(failed)?;
                self.listeners.push(Listener::tcp(ingress, socket, owner).map_err(failed)?);
                BindAddress::Tcp(bound)
            }
            BindAddress::Unix(path) => {
                self.listeners.push(Listener::unix(ingress, listen_unix(path)?, owner));
                BindAddress::Unix(path.clone())
            }
        };
        self.addresses.push((wanted.way, bound));
        Ok(())
    }

    fn add_names(&mut self, wanted: &ClientListener, owner: Ownership) -> io::Result<()> {
        let Some(address) = wanted.bind.tcp() else { return Ok(()) };
        let (udp, tcp, bound) = bind_both(address)?;
        self.names.push(DnsListener::new(udp, tcp, owner)?);
        self.addresses.push((Way::Dns, BindAddress::Tcp(bound)));
        Ok(())
    }
}

/// UDP and TCP on the same port.
fn bind_both(wanted: SocketAddr) -> io::Result<(UdpSocket, TcpListener, SocketAddr)> {
    let mut tries = if wanted.port() == 0 { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let udp = UdpSocket::bind(wanted)?;
        match listen_tcp(udp.local_addr()?) {
            Ok((tcp, bound)) => return Ok((udp, tcp, bound)),
            Err(_) if tries > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

fn listen_tcp(wanted: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(wanted)?;
    // std asks for a short queue; a burst of clients would meet dropped SYNs.
    listen(&socket, Backlog::MAXCONN)?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// The same, with `IP_TRANSPARENT` (ip(7)) where the kernel grants it: TPROXY gives no connection
/// to a listener without. IPv6 sockets share it.
fn listen_transparent(wanted: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let wanted = SockaddrStorage::from(wanted);
    let family = wanted.family().expect("an address of IP has its family");
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let socket = socket(family, kind, flags, SockProtocol::Tcp)?;
    // As std does: connections of a gateway before this one may still linger.
    setsockopt(&socket, ReuseAddr, &true)?;
    if let Err(error) = setsockopt(&socket, IpTransparent, &true) {
        tracing::debug!(%error, "TPROXY can't be used: it needs CAP_NET_ADMIN");
    }
    bind(socket.as_raw_fd(), &wanted)?;
    listen(&socket, Backlog::MAXCONN)?;
    let socket = TcpListener::from(socket);
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// The group may come in too: a sandbox often runs as another user of one group.
fn listen_unix(path: &Path) -> Result<UnixListener, Failure> {
    let socket = bind_unix(path, 0o660).map_err(Failure::start)?;
    fs::set_permissions(path, Permissions::from_mode(0o660))
        .and_then(|()| listen(&socket, Backlog::MAXCONN).map_err(io::Error::from))
        .map_err(|error| {
            Failure::start(format_args!("listener unix:{}: {error}", path.display()))
        })?;
    Ok(socket)
}
