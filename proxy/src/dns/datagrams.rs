//! Which datagram came where, and how does the answer go back the same way?
//!
//! A socket on a wildcard address, or on a machine where sandboxes have the same addresses behind
//! different interfaces, would else answer from an address that was not asked, or somebody else.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use libc::{in_addr, in_pktinfo, in6_pktinfo};
use nix::cmsg_space;
use nix::sys::socket::sockopt::IpFreebind;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::ingress::interface::{self, Interface};

/// A UDP socket on this worker's event loop that was told to note each datagram's way.
pub(super) struct Datagrams(UdpSocket);

/// Where a datagram came from, and where it came to.
pub(super) struct Path {
    pub(super) client: SocketAddr,
    here: Here,
}

#[derive(Clone, Copy)]
enum Here {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

/// Asks the kernel to note each datagram's way, and to let answers leave from any address that is
/// asked: IPv6 otherwise wants one of an interface, not one that a route alone makes local.
pub(super) fn prepare(socket: &std::net::UdpSocket) -> io::Result<()> {
    interface::note_datagrams(socket)?;
    setsockopt(socket, IpFreebind, &true)?;
    Ok(())
}

impl Datagrams {
    pub(super) fn register(socket: std::net::UdpSocket) -> io::Result<Datagrams> {
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket).map(Datagrams)
    }

    /// The next datagram; what doesn't fit into `buffer` is lost.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Path)> {
        self.0.async_io(Interest::READABLE, || receive(&self.0, buffer)).await
    }

    /// Answers along `path`, at once or not at all: whoever waits for the answer asks again, and
    /// waiting here would hold up everybody else.
    pub(super) fn answer(&self, answer: &[u8], path: &Path) -> io::Result<()> {
        let (v4, v6);
        let control = match path.here {
            Here::V4(here) => {
                v4 = in_pktinfo { ipi_addr: in_addr { s_addr: 0 }, ..here };
                ControlMessage::Ipv4PacketInfo(&v4)
            }
            Here::V6(here) => {
                v6 = here;
                ControlMessage::Ipv6PacketInfo(&v6)
            }
        };
        let to = SockaddrStorage::from(path.client);
        let content = [IoSlice::new(answer)];
        sendmsg(self.0.as_raw_fd(), &content, &[control], MsgFlags::empty(), Some(&to))?;
        Ok(())
    }
}

impl Path {
    /// The interface that the datagram came in by.
    pub(super) fn interface(&self) -> Interface {
        Interface::numbered(match self.here {
            Here::V4(here) => here.ipi_ifindex.unsigned_abs(),
            Here::V6(here) => here.ipi6_ifindex,
        })
    }
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Path)> {
    let mut control = cmsg_space!(in6_pktinfo);
    let mut content = [IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut content,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let here = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4PacketInfo(here) => Some(Here::V4(here)),
        ControlMessageOwned::Ipv6PacketInfo(here) => Some(Here::V6(here)),
        _ => None,
    });
    let client = received.address.as_ref().and_then(socket_address);
    let unknown = || io::Error::other("the kernel does not tell which way a datagram came");
    let path = client.zip(here).map(|(client, here)| Path { client, here }).ok_or_else(unknown)?;
    Ok((received.bytes, path))
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || address.as_sockaddr_in().map(|at| SocketAddrV4::from(*at).into());
    let v6 = || address.as_sockaddr_in6().map(|at| SocketAddrV6::from(*at).into());
    v4().or_else(v6)
}
