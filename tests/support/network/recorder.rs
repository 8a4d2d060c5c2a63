//! Which packets came out at the end of a cable?
//!
//! A packet socket sees every one, before any rule and whether somebody listens or not. A count that
//! lags behind would let "nothing" pass by luck, so whoever asks takes what waits in the ring first.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ring::Ring;

/// How long a dropped recorder may go on waiting, in milliseconds.
const BETWEEN_LOOKS: u16 = 20;

const ETHERNET_HEADER: usize = 14;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const NEIGHBOUR_SOLICITATION: u16 = 135;
const NEIGHBOUR_ADVERTISEMENT: u16 = 136;

/// What its headers say of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// EtherType.
    pub ethertype: u16,
    /// Where it claims to come from, if it is IP.
    pub source: Option<IpAddr>,
    /// Where it wants to go, if it is IP.
    pub destination: Option<IpAddr>,
    /// The number of the protocol inside IP.
    pub protocol: Option<u8>,
    /// The port it goes to, or the type of an ICMP message.
    pub port: Option<u16>,
}

/// Records what comes in by one interface. Dropped, it stops.
pub struct Recorder {
    tape: Arc<Tape>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Tape {
    /// The ring's own socket, to wait on without holding what is written.
    socket: OwnedFd,
    reel: Mutex<Reel>,
}

struct Reel {
    ring: Ring,
    seen: BTreeMap<Packet, usize>,
}

impl Recorder {
    /// Records from now on at this interface of the caller's namespace.
    ///
    /// # Panics
    /// When there is no such interface, or the kernel has no packet sockets.
    pub fn start(interface: &str) -> Self {
        let ring = Ring::new(interface)
            .unwrap_or_else(|fault| panic!("cannot record packets at {interface}: {fault}"));
        let socket = ring.as_fd().try_clone_to_owned().expect("a descriptor is free");
        let reel = Mutex::new(Reel { ring, seen: BTreeMap::new() });
        let tape = Arc::new(Tape { socket, reel });
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (tape, stopped) = (Arc::clone(&tape), Arc::clone(&stopped));
            move || tape.record_until(&stopped)
        });
        Self { tape, stopped, thread: Some(thread) }
    }

    /// Every kind of packet so far, each once.
    ///
    /// # Panics
    /// When the kernel had to drop some unseen.
    pub fn packets(&self) -> Vec<Packet> {
        self.tape.take_waiting().into_keys().collect()
    }

    /// How many packets of some kind came so far.
    ///
    /// # Panics
    /// As [`Recorder::packets`].
    pub fn count(&self, kind: impl Fn(&Packet) -> bool) -> usize {
        let seen = self.tape.take_waiting();
        seen.iter().filter(|(packet, _)| kind(packet)).map(|(_, count)| count).sum()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panics only over lost packets, which whoever asked has been told of.
            let _ = thread.join();
        }
    }
}

impl Tape {
    fn record_until(&self, stopped: &AtomicBool) {
        while !stopped.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            // An interrupted wait is a look too early, no more.
            let _ = poll(&mut waiting, PollTimeout::from(BETWEEN_LOOKS));
            self.take_waiting();
        }
    }

    fn take_waiting(&self) -> BTreeMap<Packet, usize> {
        let mut reel = self.reel.lock().expect("packets were lost, see above");
        let Reel { ring, seen } = &mut *reel;
        while let Some(framed) = ring.next() {
            if !framed.outgoing {
                *seen.entry(Packet::read(&framed.bytes)).or_default() += 1;
            }
        }
        let lost = ring.lost().expect("the socket is open");
        assert_eq!(lost, 0, "packets were lost to the recorder");
        seen.clone()
    }
}

impl Packet {
    /// Whether it asks or tells a link-layer address.
    pub fn is_address_resolution(&self) -> bool {
        let neighbour = matches!(self.port, Some(NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT));
        self.ethertype == ARP || (self.is(libc::IPPROTO_ICMPV6) && neighbour)
    }

    /// Whether it tells of a kernel's multicast groups and routers on its own link.
    pub fn is_about_its_link(&self) -> bool {
        let link_scoped = match self.destination {
            Some(IpAddr::V4(address)) => address.octets()[..3] == [224, 0, 0],
            Some(IpAddr::V6(address)) => address.segments()[0] == 0xff02,
            None => false,
        };
        // Reports of IPv6 groups come behind hop-by-hop options (RFC 3810 §5).
        let kinds = [libc::IPPROTO_IGMP, libc::IPPROTO_ICMPV6, libc::IPPROTO_HOPOPTS];
        link_scoped && kinds.iter().any(|kind| self.is(*kind))
    }

    /// Whether this is the protocol inside IP.
    pub fn is(&self, protocol: libc::c_int) -> bool {
        self.protocol.map(libc::c_int::from) == Some(protocol)
    }

    fn read(frame: &[u8]) -> Self {
        let number = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
        let ethertype = number(ETHERNET_HEADER - 2).unwrap_or(0);
        let packet = frame.get(ETHERNET_HEADER..).unwrap_or_default();
        let (source, destination, protocol, header) = match ethertype {
            IPV4 => (address4(packet, 12), address4(packet, 16), 9, header_length(packet)),
            IPV6 => (address6(packet, 8), address6(packet, 24), 6, 40),
            _ => (None, None, usize::MAX, 0),
        };
        let protocol = packet.get(protocol).copied();
        let inner = ETHERNET_HEADER + header;
        let port = match protocol.map(libc::c_int::from) {
            Some(libc::IPPROTO_TCP | libc::IPPROTO_UDP | libc::IPPROTO_SCTP) => number(inner + 2),
            Some(libc::IPPROTO_ICMP | libc::IPPROTO_ICMPV6) => {
                frame.get(inner).copied().map(u16::from)
            }
            _ => None,
        };
        Self { ethertype, source, destination, protocol, port }
    }
}

fn header_length(packet: &[u8]) -> usize {
    packet.first().map_or(0, |byte| usize::from(byte & 0xf) * 4)
}

fn address4(packet: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

fn address6(packet: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}
