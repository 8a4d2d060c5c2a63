//! What becomes of a packet in the network of a sandbox? Asked of the kernel itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::{Ip6tOriginalDst, OriginalDst};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, getsockopt};
use outgate_tests::isolated;
use socket2::{Domain, Protocol, Socket, Type};

use super::*;

const SOON: Duration = Duration::from_secs(5);

/// Runs `test` in a network namespace that is set up as a sandbox's is.
fn inside(test: impl FnOnce(Sockets, Capture) + Send) {
    isolated(|| {
        thread::scope(|scope| {
            let entered = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).unwrap();
                let (sockets, capture) = set_up(&[8443]).unwrap();
                test(sockets, capture);
            });
            entered.join().unwrap();
        });
    });
}

fn connect(to: &str) -> io::Result<TcpStream> {
    let to: SocketAddr = to.parse().unwrap();
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.connect_timeout(&to.into(), SOON)?;
    Ok(socket.into())
}

fn original_destination(socket: &TcpStream) -> SocketAddr {
    if socket.local_addr().unwrap().is_ipv4() {
        let address = SockaddrIn::from(getsockopt(socket, OriginalDst).unwrap());
        SocketAddr::new(IpAddr::from(address.ip()), address.port())
    } else {
        let address = SockaddrIn6::from(getsockopt(socket, Ip6tOriginalDst).unwrap());
        SocketAddr::new(IpAddr::from(address.ip()), address.port())
    }
}

/// Connects, and finds the other end at the gateway's listener.
fn arrives(sockets: &Sockets, to: &str) -> TcpStream {
    let listener = &sockets.transparent[usize::from(to.starts_with('[') && !to.contains("ffff:"))];
    let mut client = connect(to).unwrap_or_else(|error| panic!("{to}: {error}"));
    let (mut accepted, _) = listener.accept().unwrap();
    let expected: SocketAddr = to.parse().unwrap();
    let expected = SocketAddr::new(expected.ip().to_canonical(), expected.port());
    assert_eq!(original_destination(&accepted), expected);
    let mut byte = [0];
    client.write_all(b"c").unwrap();
    accepted.read_exact(&mut byte).unwrap();
    accepted.write_all(b"s").unwrap();
    client.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"s");
    client
}

#[test]
fn every_port_of_every_address_ends_in_the_gateway() {
    inside(|sockets, capture| {
        assert_eq!(capture, Capture::Every);
        for address in ["8.8.8.8", "10.0.0.1", "169.254.169.254", "198.18.7.7", "[2001:db8::7]"] {
            for port in [1, 22, 53, 80, 443, 853, 8080, 65535] {
                arrives(&sockets, &format!("{address}:{port}"));
            }
        }
        for to in ["[::ffff:8.8.8.8]:443", "[fd00:ec2::254]:80", "[::7f00:1]:443", "[64:ff9b::1]:1"]
        {
            arrives(&sockets, to);
        }
        for to in ["224.0.0.1:443", "255.255.255.255:443", "[ff0e::1]:443", "[fe80::1]:443"] {
            assert!(connect(to).is_err(), "{to}");
        }
    });
}

#[test]
fn the_listeners_themselves_are_one_more_destination() {
    inside(|sockets, _| {
        for to in ["198.18.0.1:1", "198.18.0.1:80", "[fd6f:7574:6761:7465::1]:1"] {
            arrives(&sockets, to);
        }
    });
}

#[test]
fn loopback_is_the_sandboxes_own() {
    inside(|sockets, _| {
        for to in ["127.0.0.1:1", "127.0.0.1:80", "127.7.7.7:443", "[::1]:1", "0.0.0.0:80"] {
            assert_eq!(connect(to).unwrap_err().kind(), ErrorKind::ConnectionRefused, "{to}");
        }
        for own in ["127.0.0.1:443", "[::1]:443", "127.0.0.1:8080"] {
            let server = TcpListener::bind(own).unwrap();
            let client = connect(own).unwrap();
            let (accepted, _) = server.accept().unwrap();
            assert_eq!(accepted.peer_addr().unwrap(), client.local_addr().unwrap());
        }
        for listener in &sockets.transparent {
            listener.set_nonblocking(true).unwrap();
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    });
}

#[test]
fn one_source_port_may_lead_to_many_destinations() {
    inside(|sockets, _| {
        let mut clients = Vec::new();
        for last in 1..=20 {
            let to: SocketAddr = format!("9.9.9.{last}:443").parse().unwrap();
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_reuse_address(true).unwrap();
            socket.bind(&SocketAddr::from((OWN_V4, 40_000)).into()).unwrap();
            socket.connect_timeout(&to.into(), SOON).unwrap();
            let (accepted, _) = sockets.transparent[0].accept().unwrap();
            assert_eq!(original_destination(&accepted), to);
            clients.push((socket, accepted));
        }
    });
}

#[test]
fn names_are_asked_of_the_gateway_alone() {
    inside(|sockets, _| {
        for (server, own) in sockets.dns_udp.iter().zip(["198.18.0.1:0", "[::]:0"]) {
            let client = UdpSocket::bind(own).unwrap();
            client.set_read_timeout(Some(SOON)).unwrap();
            client.connect(server.local_addr().unwrap()).unwrap();
            client.send(b"question").unwrap();
            let mut buffer = [0; 16];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"question");
            server.send_to(b"answer", from).unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), 6);
        }
        for server in &sockets.dns_tcp {
            let address = server.local_addr().unwrap();
            let client = connect(&address.to_string()).unwrap();
            assert_eq!(server.accept().unwrap().1, client.local_addr().unwrap());
        }
    });
}

#[test]
fn other_datagrams_are_refused_at_once() {
    inside(|_, _| {
        let destinations = [
            "8.8.8.8:53",
            "8.8.8.8:443",
            "198.18.0.1:443",
            "198.18.0.1:123",
            "127.0.0.1:53",
            "[2606:4700::1111]:443",
            "[fd6f:7574:6761:7465::1]:443",
            "[::1]:53",
        ];
        for to in destinations {
            let to: SocketAddr = to.parse().unwrap();
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let client = UdpSocket::bind(any).unwrap();
            client.set_read_timeout(Some(SOON)).unwrap();
            client.connect(to).unwrap();
            let started = Instant::now();
            client.send(&[0xc0; 1200]).unwrap();
            let error = client.recv(&mut [0; 16]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
            assert!(started.elapsed() < SOON);
        }
    });
}

#[test]
fn nothing_but_tcp_and_udp_gets_anywhere() {
    inside(|_, _| {
        // As root of the namespace, which the command is not.
        for (protocol, to) in [(1, "8.8.8.8:0"), (47, "8.8.8.8:0"), (132, "8.8.8.8:0")] {
            let to: SocketAddr = to.parse().unwrap();
            let raw =
                |protocol| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)));
            let receiver = raw(protocol).unwrap();
            receiver.set_nonblocking(true).unwrap();
            let refused = raw(protocol).unwrap().send_to(&[8, 0, 0, 0, 0, 0, 0, 0], &to.into());
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied, "{protocol}");
            let mut buffer = [std::mem::MaybeUninit::uninit(); 128];
            assert_eq!(receiver.recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    });
}
