//! What stands between a sandbox's gateway and the internet, and who watches?
//!
//! The test's own namespace is the internet: every address is local there, so whatever gets out
//! arrives. The gateway's machine is joined to it by one cable, at whose end all is recorded.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use super::host::{Host, own_run, shell};
use super::recorder::{Packet, Recorder};
use crate::wait::{SOON, wait_until};

/// The gateway's address on the internet.
pub const GATEWAY4: Ipv4Addr = Ipv4Addr::new(11, 99, 0, 2);
/// The same in IPv6.
pub const GATEWAY6: Ipv6Addr = Ipv6Addr::new(0x2a00, 0x99, 0, 0, 0, 0, 0, 2);

/// Where the name server listens for the gateway.
pub const RESOLVER: (Ipv4Addr, u16) = (Ipv4Addr::new(11, 22, 33, 53), 53);

/// Where the internet's end of the cable is.
const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(11, 99, 0, 1);

/// Nothing listens there; a datagram to it says "all before me has arrived".
const FENCE: u16 = 9;

/// The kernel hands packets from one processor to another within this.
const SETTLING: Duration = Duration::from_millis(50);

/// Routes into the test's own namespace are local unless something more special says otherwise, so
/// those out of it stand beside them. The sandboxes have some too: what leaks is answered. The two
/// ends know each other's cards, so that no packet waits for an answer to who is where.
const CABLE: &str = "
ip link add internet address 02:00:00:00:00:01 type veth \
    peer name wan address 02:00:00:00:00:02 netns gateway
ip link set internet up
ip address add 11.99.0.1/32 dev internet
ip -6 address add 2a00:99::1/128 dev internet nodad
ip route add 11.99.0.2/32 dev internet table local scope link
ip -6 route add 2a00:99::2/128 dev internet table local
ip neighbour add 11.99.0.2 lladdr 02:00:00:00:00:02 dev internet
ip neighbour add 2a00:99::2 lladdr 02:00:00:00:00:02 dev internet
ip route add 10.20.0.0/16 via 11.99.0.2 dev internet onlink table local
ip -6 route add fd10:20::/32 via 2a00:99::2 dev internet onlink table local
ip -n gateway address add 11.99.0.2/24 dev wan
ip -n gateway -6 address add 2a00:99::2/64 dev wan nodad
ip -n gateway link set wan up
ip -n gateway neighbour add 11.99.0.1 lladdr 02:00:00:00:00:01 dev wan
ip -n gateway neighbour add 2a00:99::1 lladdr 02:00:00:00:00:01 dev wan
ip -n gateway route add default via 11.99.0.1
ip -n gateway -6 route add default via 2a00:99::1
";

/// The gateway's machine, and the internet behind it.
pub struct Site {
    /// The gateway's machine.
    pub gateway: Host,
    arrived: Recorder,
}

impl Site {
    /// A gateway's machine without any rule, joined to the internet by its interface `wan`.
    ///
    /// # Panics
    /// Outside `isolated`, or without the program `ip`.
    pub fn set_up() -> Self {
        own_run();
        let gateway = Host::new("gateway");
        shell(CABLE, &[]);
        let arrived = Recorder::start("internet");
        Self { gateway, arrived }
    }

    /// Everything that has arrived on the internet but the machines' talk about their cable
    /// (address resolution, and the like of it).
    ///
    /// # Panics
    /// When packets were lost to the recorder.
    pub fn arrived(&self) -> Vec<Packet> {
        self.fence();
        let packets = self.arrived.packets();
        packets.into_iter().filter(|packet| !is_about_the_cable(packet)).collect()
    }

    /// What has arrived but connections of the gateway itself to these addresses, and its talk with
    /// the name server (a question; "too late" to an answer): the oracle for "nothing got out".
    ///
    /// # Panics
    /// As [`Site::arrived`].
    pub fn leaked(&self, approved: &[&str]) -> Vec<Packet> {
        let approved: Vec<SocketAddr> =
            approved.iter().map(|address| address.parse().expect("an address")).collect();
        let legitimate = |packet: &Packet| {
            let from_gateway = packet.source.is_some_and(is_gateway);
            let to = packet.destination.zip(packet.port).map(SocketAddr::from);
            let to_resolver = packet.destination == Some(IpAddr::V4(RESOLVER.0));
            let approved = to.is_some_and(|to| approved.contains(&to));
            let approved = (packet.is(libc::IPPROTO_TCP) && approved)
                || (packet.is(libc::IPPROTO_UDP) && to == Some(SocketAddr::from(RESOLVER)))
                || (packet.is(libc::IPPROTO_ICMP) && to_resolver);
            from_gateway && approved
        };
        self.arrived().into_iter().filter(|packet| !legitimate(packet)).collect()
    }

    /// Waits until what was sent before has arrived.
    fn fence(&self) {
        let before = self.arrived.count(is_fence);
        self.gateway.inside(|| {
            let socket = UdpSocket::bind((GATEWAY4, 0)).expect("the gateway's own address");
            socket.send_to(b"fence", (NEXT_HOP, FENCE)).expect("the cable is there");
        });
        let came = wait_until(SOON, || self.arrived.count(is_fence) > before);
        assert!(came, "nothing arrives from the gateway's machine any more");
        thread::sleep(SETTLING);
    }
}

fn is_fence(packet: &Packet) -> bool {
    let next_hop = packet.destination == Some(IpAddr::V4(NEXT_HOP));
    next_hop && packet.is(libc::IPPROTO_UDP) && packet.port == Some(FENCE)
}

fn is_about_the_cable(packet: &Packet) -> bool {
    is_fence(packet) || packet.is_address_resolution() || packet.is_about_its_link()
}

fn is_gateway(source: IpAddr) -> bool {
    source == IpAddr::V4(GATEWAY4) || source == IpAddr::V6(GATEWAY6)
}
