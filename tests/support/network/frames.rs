//! How does a test send packets that no honest kernel would?
//!
//! Ethernet frames put together by hand, with right checksums: a packet that a rule drops must not
//! be one that any kernel would have dropped anyway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};

use super::host::Mac;
use super::ring::packet_socket;

const ARP: u16 = 0x0806;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
const HOP_LIMIT: u8 = 255;

/// A socket that sends frames by one interface, exactly as given.
pub struct FrameSocket {
    socket: OwnedFd,
}

impl FrameSocket {
    /// For this interface of the caller's namespace.
    ///
    /// # Panics
    /// When there is no such interface.
    pub fn new(interface: &str) -> Self {
        let socket = packet_socket(interface, 0)
            .unwrap_or_else(|fault| panic!("cannot send frames by {interface}: {fault}"));
        Self { socket }
    }

    /// Sends one frame.
    ///
    /// # Panics
    /// When the kernel doesn't take it.
    pub fn send(&self, frame: &[u8]) {
        loop {
            match send(self.socket.as_raw_fd(), frame, MsgFlags::empty()) {
                Ok(_) => return,
                // The queue of the interface is full for a moment.
                Err(Errno::ENOBUFS | Errno::EAGAIN) => std::thread::yield_now(),
                Err(fault) => panic!("cannot send a frame: {fault}"),
            }
        }
    }
}

/// A frame from one card to another.
pub fn ethernet(from: Mac, to: Mac, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&to, &from, ethertype.to_be_bytes().as_slice(), payload].concat()
}

/// A frame with an IP packet; both addresses of the same family.
///
/// # Panics
/// When they aren't.
pub fn ip(cards: (Mac, Mac), (from, to): (IpAddr, IpAddr), protocol: u8, body: &[u8]) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            ethernet(cards.0, cards.1, IPV4, &ipv4((from, to), protocol, &[], body))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            ethernet(cards.0, cards.1, IPV6, &ipv6((from, to), protocol, body))
        }
        _ => panic!("{from} and {to} are of two families"),
    }
}

/// An IPv4 packet (RFC 791) with options, whose length is a multiple of four.
pub fn ipv4(ends: (Ipv4Addr, Ipv4Addr), protocol: u8, options: &[u8], body: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let words = u8::try_from(header / 4).expect("a header is short");
    let mut packet = vec![0x40 | words, 0];
    packet.extend(length(header + body.len()));
    // No identification, no fragments.
    packet.extend([0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0]);
    packet.extend(ends.0.octets());
    packet.extend(ends.1.octets());
    packet.extend(options);
    packet.extend(body);
    right_sum(&mut packet);
    packet
}

/// Puts the right checksum into the header of an IPv4 packet that was changed.
pub fn right_sum(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 0xf) * 4;
    packet[10..12].fill(0);
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum);
}

/// An IPv6 packet (RFC 8200).
pub fn ipv6(ends: (Ipv6Addr, Ipv6Addr), next_header: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length(body.len()));
    packet.extend([next_header, HOP_LIMIT]);
    packet.extend(ends.0.octets());
    packet.extend(ends.1.octets());
    packet.extend(body);
    packet
}

/// A TCP segment without data (RFC 9293) and with these flags.
pub fn tcp(ends: (IpAddr, IpAddr), ports: (u16, u16), flags: u8) -> Vec<u8> {
    let mut segment = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    segment.extend(0x0102_0304_u32.to_be_bytes());
    segment.extend(0u32.to_be_bytes());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    with_checksum(ends, 6, segment, 16)
}

/// A UDP datagram (RFC 768).
pub fn udp(ends: (IpAddr, IpAddr), ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let mut datagram = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    datagram.extend(length(8 + data.len()));
    datagram.extend([0, 0]);
    datagram.extend(data);
    with_checksum(ends, 17, datagram, 6)
}

/// An ICMP or ICMPv6 message (RFC 792, RFC 4443), as the addresses are.
pub fn icmp(ends: (IpAddr, IpAddr), kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0];
    message.extend(body);
    if ends.0.is_ipv6() {
        return with_checksum(ends, 58, message, 2);
    }
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

/// A frame in which `who` says that its card is `from` (an ARP request, RFC 826), and asks for
/// `whom`.
pub fn arp(from: Mac, to: Mac, (who, whom): (Ipv4Addr, Ipv4Addr)) -> Vec<u8> {
    let mut request = vec![0, 1];
    request.extend(IPV4.to_be_bytes());
    request.extend([6, 4, 0, 1]);
    request.extend(from);
    request.extend(who.octets());
    request.extend([0; 6]);
    request.extend(whom.octets());
    ethernet(from, to, ARP, &request)
}

/// The number of bytes as headers write it.
fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).expect("a packet is short").to_be_bytes()
}

/// With the checksum over the pseudo-header of the addresses' family at this place.
fn with_checksum(ends: (IpAddr, IpAddr), protocol: u8, mut body: Vec<u8>, at: usize) -> Vec<u8> {
    let mut covered = octets(ends.0);
    covered.extend(octets(ends.1));
    covered.extend([0, protocol]);
    covered.extend(length(body.len()));
    covered.extend(&body);
    let sum = checksum(&covered);
    body[at..at + 2].copy_from_slice(&sum);
    body
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let folded = u16::try_from(sum).expect("it was folded");
    (!folded).to_be_bytes()
}
