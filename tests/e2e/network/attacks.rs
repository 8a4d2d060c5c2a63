//! What may a sandbox send that is root on its own side?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outgate_tests::network::frames::{self, FrameSocket};
use outgate_tests::network::{GATEWAY4, GATEWAY6, Host, Mac};

use super::scene::Scene;

pub(crate) const ONE4: Ipv4Addr = Ipv4Addr::new(10, 20, 1, 2);
pub(crate) const ONE6: Ipv6Addr = Ipv6Addr::new(0xfd10, 0x20, 1, 0, 0, 0, 0, 2);
pub(crate) const TWO4: Ipv4Addr = Ipv4Addr::new(10, 20, 2, 2);
pub(crate) const TWO6: Ipv6Addr = Ipv6Addr::new(0xfd10, 0x20, 2, 0, 0, 0, 0, 2);

const VLAN: u16 = 0x8100;
const BROADCAST: Mac = [0xff; 6];

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

const TCP_PORTS: [u16; 9] = [22, 53, 80, 443, 853, 3128, 6379, 8080, 65535];
const UDP_PORTS: [u16; 7] = [53, 123, 443, 853, 5353, 51820, 65535];

/// A QUIC Initial is padded to this (RFC 9000 §14.1).
const QUIC_INITIAL: [u8; 1200] = [0xc0; 1200];

/// IGMP, IP in IP, IPv6 in IP, GRE, ESP, AH, IPv6 without a next header, SCTP, UDP-Lite, unassigned.
const PROTOCOLS: [u8; 10] = [2, 4, 41, 47, 50, 51, 59, 132, 136, 253];

/// One frame, or a few that belong together.
pub(crate) struct Attack {
    pub(crate) name: String,
    /// No other attack goes there, so that what arrives tells which it was.
    pub(crate) to: IpAddr,
    /// Whether a machine that passes on what it gets would let it out.
    pub(crate) leaves: bool,
    frames: Vec<Vec<u8>>,
}

/// Everything that sandbox `one` may try.
pub(crate) struct Attacks {
    /// Its card and that of the gateway.
    cards: (Mac, Mac),
    /// An address of either family that all of them go to, unless each goes to one of its own.
    aim: Option<(Ipv4Addr, Ipv6Addr)>,
    pub(crate) all: Vec<Attack>,
}

impl Attacks {
    /// Those of this scene's sandbox `one` on the world.
    pub(crate) fn of_one(scene: &Scene) -> Self {
        Self::new(scene, None)
    }

    /// All of them on two addresses of one machine.
    pub(crate) fn of_one_on(scene: &Scene, aim: (Ipv4Addr, Ipv6Addr)) -> Self {
        Self::new(scene, Some(aim))
    }

    fn new(scene: &Scene, aim: Option<(Ipv4Addr, Ipv6Addr)>) -> Self {
        let cards = (scene.one.mac("eth0"), scene.site.gateway.mac("sbx-one"));
        let mut attacks = Self { cards, aim, all: Vec::new() };
        for v6 in [false, true] {
            attacks.ports(v6);
            attacks.protocols(v6);
            attacks.sources(v6);
        }
        attacks.options();
        attacks.fragments();
        attacks.extension_headers();
        attacks.casts();
        attacks.tags();
        attacks
    }

    /// Sends them all, from inside the sandbox.
    pub(crate) fn send(&self, one: &Host) {
        one.inside(|| {
            let socket = FrameSocket::new("eth0");
            self.all.iter().flat_map(|attack| &attack.frames).for_each(|frame| socket.send(frame));
        });
    }

    /// Every kind of segment and datagram that a kernel would send for a program.
    fn ports(&mut self, v6: bool) {
        for port in TCP_PORTS {
            for (name, flags) in [("SYN", SYN), ("ACK", ACK), ("RST", RST), ("FIN", FIN | ACK)] {
                self.add(&format!("TCP {name} to {port}"), v6, 6, |ends| {
                    frames::tcp(ends, (40_000, port), flags)
                });
            }
        }
        for port in UDP_PORTS {
            self.add(&format!("UDP to {port}"), v6, 17, |ends| {
                frames::udp(ends, (40_000, port), &QUIC_INITIAL)
            });
        }
        let (icmp, kinds) = if v6 { (58, [128, 129]) } else { (1, [8, 13]) };
        for kind in kinds {
            self.add(&format!("ICMP {kind}"), v6, icmp, |ends| {
                frames::icmp(ends, kind, b"secret!!")
            });
        }
    }

    fn protocols(&mut self, v6: bool) {
        for protocol in PROTOCOLS {
            self.add(&format!("protocol {protocol}"), v6, protocol, |_| b"secret".to_vec());
        }
    }

    /// The same with another's address.
    fn sources(&mut self, v6: bool) {
        let four: [(&str, &str, bool); 6] = [
            ("of sandbox two", "10.20.2.2", true),
            ("of its own network", "10.20.1.9", true),
            ("of a stranger", "11.22.33.44", true),
            ("of nobody", "0.0.0.0", false),
            ("of loopback", "127.0.0.1", false),
            ("of the gateway", &GATEWAY4.to_string(), false),
        ];
        let six: [(&str, &str, bool); 6] = [
            ("of sandbox two", "fd10:20:2::2", true),
            ("of its own network", "fd10:20:1::9", true),
            ("of a stranger", "2a00:1122:3344::44", true),
            ("of nobody", "::", false),
            ("of loopback", "::1", false),
            ("of the gateway", &GATEWAY6.to_string(), true),
        ];
        for (name, from, leaves) in if v6 { six } else { four } {
            let from: IpAddr = from.parse().expect("an address");
            let to = self.target(v6);
            let frames = [
                (6, frames::tcp((from, to), (40_000, 443), SYN)),
                (17, frames::udp((from, to), (40_000, 53), b"secret")),
                (17, frames::udp((from, to), (40_000, 443), b"secret")),
            ];
            let frames = frames
                .iter()
                .map(|(protocol, body)| frames::ip(self.cards, (from, to), *protocol, body));
            let frames = frames.collect();
            self.all.push(Attack { name: format!("from the address {name}"), to, leaves, frames });
        }
    }

    /// RFC 791: a record of the route, and a route of the sender's choice.
    fn options(&mut self) {
        for (name, kind, leaves) in [("record route", 7, true), ("loose source route", 131, false)]
        {
            let to = self.target(false);
            let IpAddr::V4(target) = to else { unreachable!("it was asked for") };
            let body = frames::tcp((ONE4.into(), to), (40_000, 443), SYN);
            let option = [&[kind, 7, 4], target.octets().as_slice(), &[0]].concat();
            let packet = frames::ipv4((ONE4, target), 6, &option, &body);
            let frames = vec![frames::ethernet(self.cards.0, self.cards.1, frames::IPV4, &packet)];
            self.all.push(Attack { name: format!("IP option {name}"), to, leaves, frames });
        }
    }

    /// A datagram in two pieces, and a piece whose beginning never comes.
    fn fragments(&mut self) {
        for (name, pieces) in [("two fragments", 0..2), ("the second fragment alone", 1..2)] {
            let to = self.target(false);
            let IpAddr::V4(target) = to else { unreachable!("it was asked for") };
            let body = frames::udp((ONE4.into(), to), (40_000, 443), &[0; 56]);
            let frames = pieces.map(|piece: u8| {
                let at = usize::from(piece) * 32;
                let mut packet = frames::ipv4((ONE4, target), 17, &[], &body[at..at + 32]);
                // More to come, or 32 bytes in; in units of 8.
                packet[6..8].copy_from_slice(&[if piece == 0 { 0x20 } else { 0 }, piece * 4]);
                frames::right_sum(&mut packet);
                frames::ethernet(self.cards.0, self.cards.1, frames::IPV4, &packet)
            });
            let frames = frames.collect();
            self.all.push(Attack { name: name.to_owned(), to, leaves: true, frames });
        }
    }

    /// RFC 8200 §4: hop-by-hop options, a routing header, destination options, before TCP.
    fn extension_headers(&mut self) {
        for (name, header) in [("hop-by-hop", 0), ("routing", 43), ("destination", 60)] {
            self.add(&format!("IPv6 {name} header"), true, header, |ends| {
                let padding = if header == 43 { [0; 6] } else { [1, 4, 0, 0, 0, 0] };
                let segment = frames::tcp(ends, (40_000, 443), SYN);
                [&[6, 0], padding.as_slice(), &segment].concat()
            });
        }
    }

    /// To many at once, by the address or by the card's.
    fn casts(&mut self) {
        for to in ["255.255.255.255", "224.0.0.251", "239.255.255.250", "ff02::fb", "ff0e::1"] {
            let to: IpAddr = to.parse().expect("an address");
            let from = source(to.is_ipv6());
            let body = frames::udp((from, to), (40_000, 5353), b"secret");
            let frames = vec![frames::ip((self.cards.0, BROADCAST), (from, to), 17, &body)];
            self.all.push(Attack { name: format!("UDP to {to}"), to, leaves: false, frames });
        }
        for v6 in [false, true] {
            let to = self.target(v6);
            let from = source(v6);
            let body = frames::tcp((from, to), (40_000, 443), SYN);
            let frames = vec![frames::ip((self.cards.0, BROADCAST), (from, to), 6, &body)];
            let name = "TCP in a frame to everybody".to_owned();
            self.all.push(Attack { name, to, leaves: false, frames });
        }
    }

    /// IEEE 802.1Q: with a priority alone, and on a VLAN that the gateway doesn't know.
    fn tags(&mut self) {
        for (name, tag, leaves) in [("a priority", 0xe0_00_u16, true), ("a VLAN", 5, false)] {
            let to = self.target(false);
            let from = source(false);
            let body = frames::udp((from, to), (40_000, 443), b"secret");
            let plain = frames::ip(self.cards, (from, to), 17, &body);
            let tagged = [tag.to_be_bytes().as_slice(), &plain[12..]].concat();
            let frames = vec![frames::ethernet(self.cards.0, self.cards.1, VLAN, &tagged)];
            self.all.push(Attack { name: format!("a frame with {name}"), to, leaves, frames });
        }
    }

    /// A packet that a machine without rules passes on.
    fn add(
        &mut self,
        name: &str,
        v6: bool,
        protocol: u8,
        body: impl FnOnce((IpAddr, IpAddr)) -> Vec<u8>,
    ) {
        let ends = (source(v6), self.target(v6));
        let frames = vec![frames::ip(self.cards, ends, protocol, &body(ends))];
        self.all.push(Attack { name: name.to_owned(), to: ends.1, leaves: true, frames });
    }

    /// What they aim at, or where nobody has gone before. No test approves of that.
    fn target(&self, v6: bool) -> IpAddr {
        let number = u8::try_from(self.all.len() + 1).expect("there are not that many");
        let (four, six) = self.aim.unwrap_or_else(|| {
            let six = Ipv6Addr::new(0x2a00, 0x66, 0, 0, 0, 0, 0, number.into());
            (Ipv4Addr::new(11, 66, 0, number), six)
        });
        if v6 { six.into() } else { four.into() }
    }
}

fn source(v6: bool) -> IpAddr {
    if v6 { ONE6.into() } else { ONE4.into() }
}
