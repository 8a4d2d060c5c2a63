//! Where did a client want to go, before the network led it here?
//!
//! Where nft `redirect` changed the address, the kernel's connection tracking remembers the old one
//! (`SO_ORIGINAL_DST`, for IPv6 `IP6T_SO_ORIGINAL_DST`). TPROXY and addresses made local change
//! nothing: the socket's own address is the one that the client meant.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::{Ip6tOriginalDst, IpTransparent, OriginalDst};
use nix::sys::socket::{getsockopt, setsockopt};
use tokio::net::TcpStream;

/// The original destination of an accepted `socket`, IPv4 inside IPv6 as IPv4.
pub(crate) fn of(socket: &TcpStream) -> io::Result<SocketAddr> {
    let local = canonical(socket.local_addr()?);
    let remembered = match local.ip() {
        IpAddr::V4(_) => getsockopt(socket, OriginalDst).map(|found| {
            let address = Ipv4Addr::from_bits(u32::from_be(found.sin_addr.s_addr));
            SocketAddr::new(address.into(), u16::from_be(found.sin_port))
        }),
        IpAddr::V6(_) => getsockopt(socket, Ip6tOriginalDst).map(|found| {
            let address = Ipv6Addr::from(found.sin6_addr.s6_addr);
            SocketAddr::new(address.into(), u16::from_be(found.sin6_port))
        }),
    };
    // Without tracking, or without an entry, nothing was changed. Were it lost all the same, what is
    // left is the listener's own address, where nobody is let in.
    let original = remembered.map_or(local, canonical);
    if original != local {
        make_way(socket)?;
    }
    Ok(original)
}

/// Two connections of a client may differ only in where they go, and translated, in nothing: the
/// kernel then gives the second another source port, but has looked up its socket before, and found
/// the first. It lets go of that mistake, unless the socket is one for TPROXY, as what a listener
/// for both accepts is; no connection that was translated needs that.
fn make_way(socket: &TcpStream) -> io::Result<()> {
    Ok(setsockopt(socket, IpTransparent, &false)?)
}

/// Whether `original` is the very address that `listener` listens on: not one that is merely led to
/// it. Answered, such a connection would be the gateway's to itself.
pub(crate) fn is_listener(original: SocketAddr, listener: SocketAddr) -> bool {
    let listener = canonical(listener);
    if original.port() != listener.port() {
        return false;
    }
    match listener.ip().is_unspecified() {
        true => is_assigned(original.ip()),
        false => original.ip() == listener.ip(),
    }
}

/// Whether an interface has this address. A route may make any other local.
fn is_assigned(address: IpAddr) -> bool {
    let Ok(mut interfaces) = getifaddrs() else { return true };
    interfaces.any(|interface| {
        let Some(assigned) = interface.address else { return false };
        let v4 = assigned.as_sockaddr_in().map(|found| IpAddr::V4(found.ip()));
        let v6 = assigned.as_sockaddr_in6().map(|found| IpAddr::V6(found.ip()));
        v4.or(v6) == Some(address)
    })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listens(listener: &str, original: &str) -> bool {
        is_listener(original.parse().expect("an address"), listener.parse().expect("an address"))
    }

    #[test]
    fn a_listener_is_met_at_its_address_and_a_wildcard_at_every_one_of_the_machine() {
        assert!(listens("10.20.0.1:15001", "10.20.0.1:15001"));
        assert!(listens("[::ffff:10.20.0.1]:15001", "10.20.0.1:15001"));
        assert!(!listens("10.20.0.1:15001", "10.20.0.1:443"));
        assert!(!listens("10.20.0.1:443", "11.22.33.44:443"));
        for wildcard in ["0.0.0.0:443", "[::]:443"] {
            assert!(listens(wildcard, "127.0.0.1:443"));
            assert!(!listens(wildcard, "11.22.33.44:443"));
            assert!(!listens(wildcard, "127.0.0.1:444"));
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a client of the listener under test")]
    async fn without_a_redirect_it_is_the_address_that_was_connected_to() {
        for (listen, to) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")]
        {
            let listener = tokio::net::TcpListener::bind(listen).await.expect("a free port");
            let port = listener.local_addr().expect("bound").port();
            let _client = TcpStream::connect((to, port)).await.expect("it listens");
            let (socket, _) = listener.accept().await.expect("one came");
            let expected = SocketAddr::new(to.parse().expect("an address"), port);
            assert_eq!(of(&socket).expect("it is connected"), expected, "{listen} {to}");
        }
    }
}
