//! By which interface did a connection or a datagram come in?
//!
//! The kernel notes it with the packet that completes the handshake, so that nothing a client says
//! has a part in it. A listening socket is asked to note it (`IP_PKTINFO` of ip(7), RFC 3542 §6.2),
//! and the sockets accepted from it tell (`IP_PKTOPTIONS`; `IPV6_2292PKTOPTIONS` of RFC 2292 §4.1,
//! which Linux kept for TCP).

use std::ffi::{CString, c_int};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd};

use nix::net::if_::if_indextoname;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};

/// `linux/in6.h`; libc has it for other systems only.
const IPV6_2292PKTOPTIONS: c_int = 6;

/// One control message: its header, then a `struct in_pktinfo` or `struct in6_pktinfo`.
const HEADER: usize = 16;
const IN_PKTINFO: usize = 12;
const IN6_PKTINFO: usize = 20;

/// An interface at the moment of an accept, if the kernel tells it. Numbers are not given out twice
/// in the life of a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface(Option<NonZeroU32>);

/// Asks the kernel to note it for every connection that `listener` accepts.
pub(crate) fn note(listener: &TcpListener) -> io::Result<()> {
    note_on(listener, listener.local_addr()?)
}

/// Asks the kernel to tell it beside every datagram that `socket` receives.
pub(crate) fn note_datagrams(socket: &UdpSocket) -> io::Result<()> {
    note_on(socket, socket.local_addr()?)
}

fn note_on(socket: &impl AsFd, local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V4(_) => setsockopt(socket, Ipv4PacketInfo, &true)?,
        SocketAddr::V6(_) => setsockopt(socket, Ipv6RecvPacketInfo, &true)?,
    }
    Ok(())
}

/// The interface of an accepted `socket`, whose peer has the form that accept gave it. One that
/// the kernel doesn't tell has no name.
pub(crate) fn of(socket: &impl AsFd, peer: SocketAddr) -> Interface {
    match index_of(socket, peer) {
        Ok(index) => Interface(index.and_then(NonZeroU32::new)),
        Err(error) => {
            tracing::warn!(%error, "a connection's interface could not be told");
            Interface(None)
        }
    }
}

fn index_of(socket: &impl AsFd, peer: SocketAddr) -> io::Result<Option<u32>> {
    Ok(match peer {
        SocketAddr::V4(_) => {
            let options = control_messages(socket, libc::IPPROTO_IP, libc::IP_PKTOPTIONS)?;
            index(&options, libc::IPPROTO_IP, libc::IP_PKTINFO, IN_PKTINFO, 0)
        }
        SocketAddr::V6(_) => {
            let options = control_messages(socket, libc::IPPROTO_IPV6, IPV6_2292PKTOPTIONS)?;
            // Left on, the kernel would keep a copy of every packet for us.
            setsockopt(socket, Ipv6RecvPacketInfo, &false)?;
            index(&options, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, IN6_PKTINFO, 16)
        }
    })
}

impl Interface {
    /// The one with this number; 0 is none.
    pub(crate) fn numbered(index: u32) -> Interface {
        Interface(NonZeroU32::new(index))
    }

    /// Its name now; none once it is gone.
    pub(crate) fn name(self) -> Option<CString> {
        if_indextoname(self.0?.get()).ok()
    }

    #[cfg(test)]
    pub(crate) fn loopback() -> Interface {
        Interface(NonZeroU32::new(1))
    }

    #[cfg(test)]
    pub(crate) fn untold() -> Interface {
        Interface(None)
    }
}

/// The first control message, if it is of this kind, has the index at `at` of its content.
fn index(options: &[u8], level: c_int, kind: c_int, length: usize, at: usize) -> Option<u32> {
    let number = |at: usize| options.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    // struct cmsghdr: size_t length, int level, int type.
    let announced = usize::from_ne_bytes(options.get(..size_of::<usize>())?.try_into().ok()?);
    let same = |at, expected| number(at) == u32::try_from(expected).ok();
    let fits = announced == HEADER + length && same(HEADER - 8, level) && same(HEADER - 4, kind);
    number(HEADER + at).filter(|_| fits)
}

fn control_messages(socket: &impl AsFd, level: c_int, option: c_int) -> io::Result<Vec<u8>> {
    let mut options = vec![0u8; 128];
    let mut length: libc::socklen_t = 128;
    #[expect(unsafe_code, reason = "no safe wrapper reads these options")]
    // SAFETY: the kernel writes at most `length` bytes into a live buffer of that size, and how
    // many it wrote into a live socklen_t.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            options.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    options.truncate(length as usize);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a client of the listener under test")]
    fn interface_of_one_that_comes(listen: &str, from: &str) -> CString {
        let listener = TcpListener::bind(listen).expect("an address of this machine");
        note(&listener).expect("Linux has the option");
        let port = listener.local_addr().expect("bound").port();
        let _client = TcpStream::connect((from, port)).expect("it listens");
        let (socket, peer) = listener.accept().expect("one came");
        of(&socket, peer).name().expect("noted, and still there")
    }

    #[test]
    fn is_told_for_every_family() {
        for (listen, from) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            ("[::]:0", "::1"),
            ("[::]:0", "127.0.0.1"),
        ] {
            assert_eq!(interface_of_one_that_comes(listen, from).as_c_str(), c"lo", "{listen}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a client of the listener under test")]
    fn is_not_told_where_nobody_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address of this machine");
        let _client =
            TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (socket, peer) = listener.accept().expect("one came");
        assert_eq!(of(&socket, peer).name(), None);
    }
}
