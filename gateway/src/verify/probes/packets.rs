//! Does anything leave that is neither TCP nor UDP?

use std::net::{IpAddr, SocketAddr};

use nix::sched::CloneFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::attempt::in_child;
use super::counters::{Counters, watched};
use super::mask::own_user;
use super::streams::{FOREIGN_V4, FOREIGN_V6};
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Beside what is seen at the interfaces. A sandbox has none but `lo`.
pub(super) fn interfaces(_: &Brief, finding: &mut Finding) {
    match Counters::read() {
        Ok(counters) => {
            for interface in counters.interfaces() {
                finding.open(format_args!("there is an interface {interface}"));
            }
        }
        Err(error) => finding.open(format_args!("interfaces can't be listed: {error}")),
    }
}

/// A ping, by sockets for everybody and by those for the privileged.
pub(super) fn icmp(brief: &Brief, finding: &mut Finding) {
    // Echo request, no code, checksum, identifier, number: the kernel mends the checksum but for
    // raw IPv4 sockets.
    let v4 = [8, 0, 0xf7, 0xfd, 0, 1, 0, 1];
    let v6 = [128, 0, 0, 0, 0, 1, 0, 1];
    watched(finding, |_| {
        for kind in [Type::DGRAM, Type::RAW] {
            for address in targets(brief) {
                let (protocol, packet) = match address {
                    IpAddr::V4(_) => (Protocol::ICMPV4, v4),
                    IpAddr::V6(_) => (Protocol::ICMPV6, v6),
                };
                send(kind, protocol, address, &packet);
            }
        }
    });
}

/// Raw packets of tunnels and of nobody, and the transports that not every filter knows.
pub(super) fn other_protocols(brief: &Brief, finding: &mut Finding) {
    const IN_IP: [i32; 6] = [4, 41, 47, 50, 132, 253];
    const DCCP: i32 = 33;
    const UDP_LITE: i32 = 136;
    watched(finding, |_| {
        for address in targets(brief) {
            for number in IN_IP.into_iter().chain([libc::IPPROTO_RAW]) {
                send(Type::RAW, number.into(), address, &header(address));
            }
            send(Type::DGRAM, UDP_LITE.into(), address, b"datagram");
            send(Type::SEQPACKET, libc::IPPROTO_SCTP.into(), address, b"message");
            send(Type::STREAM, libc::IPPROTO_SCTP.into(), address, b"message");
            send(Type::from(libc::SOCK_DCCP), DCCP.into(), address, b"datagram");
        }
    });
}

/// A frame for whoever is on the link, made without the kernel's routes and rules; also by one who
/// has all capabilities in a user namespace of its own.
pub(super) fn link_layer(_: &Brief, finding: &mut Finding) {
    let makes_one =
        || [Type::RAW, Type::DGRAM].iter().any(|it| Socket::new(Domain::PACKET, *it, None).is_ok());
    if makes_one() {
        finding.open("a packet socket can be made");
    }
    in_child(finding, "a packet socket can be made in a user namespace", || {
        own_user(CloneFlags::empty()).is_ok() && makes_one()
    });
}

/// Families that a network namespace does not confine, and the way to sockets that no filter sees.
pub(super) fn other_families(_: &Brief, finding: &mut Finding) {
    const OTHERS: [(i32, &str); 8] = [
        (libc::AF_VSOCK, "AF_VSOCK"),
        (libc::AF_ALG, "AF_ALG"),
        (libc::AF_BLUETOOTH, "AF_BLUETOOTH"),
        (libc::AF_CAN, "AF_CAN"),
        (libc::AF_TIPC, "AF_TIPC"),
        (libc::AF_KEY, "AF_KEY"),
        (libc::AF_RDS, "AF_RDS"),
        (libc::AF_XDP, "AF_XDP"),
    ];
    for (family, name) in OTHERS {
        let kinds = [Type::STREAM, Type::DGRAM, Type::RAW, Type::SEQPACKET];
        if kinds.iter().any(|kind| Socket::new(family.into(), *kind, None).is_ok()) {
            finding.open(format_args!("{name} can be spoken"));
        }
    }
    if makes_a_ring() {
        finding.open("io_uring can be used");
    }
}

fn makes_a_ring() -> bool {
    // struct io_uring_params (io_uring_setup(2)).
    let mut parameters = [0u8; 120];
    #[expect(unsafe_code, reason = "no safe wrapper asks for a ring")]
    // SAFETY: the structure lives until the call returns, and has the size that the kernel writes.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    ring >= 0
}

fn targets(brief: &Brief) -> Vec<IpAddr> {
    let outer = brief.tcp.iter().map(SocketAddr::ip).filter(|address| !address.is_loopback());
    [FOREIGN_V4, FOREIGN_V6].into_iter().chain(outer).collect()
}

/// A refusal is what is hoped for; the counters tell of anything else.
fn send(kind: Type, protocol: Protocol, to: IpAddr, packet: &[u8]) {
    let to = SocketAddr::new(to, 0);
    let Ok(socket) = Socket::new(Domain::for_address(to), kind, Some(protocol)) else { return };
    // Nor is anybody waited for.
    let _ = socket
        .set_nonblocking(true)
        .and_then(|()| socket.connect(&to.into()))
        .and_then(|()| socket.send(packet));
}

/// One that leaves nothing for the kernel to fill in wrongly, for sockets that take a whole packet.
fn header(to: IpAddr) -> Vec<u8> {
    match to {
        IpAddr::V4(to) => {
            let mut header = vec![0x45, 0, 0, 20, 0, 1, 0, 0, 64, 253, 0, 0, 0, 0, 0, 0];
            header.extend(to.octets());
            header
        }
        IpAddr::V6(to) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
            header.extend([0; 16]);
            header.extend(to.octets());
            header
        }
    }
}
