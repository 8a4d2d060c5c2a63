//! Who comes in by an interface of its own, as a sandbox does?
//!
//! A network namespace beside that of the test, joined to it by a veth pair (veth(4)). What a
//! closure opens in there stays in there.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::thread;

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::AddressFamily;

use super::host::inside;
use super::rtnetlink::{add_local_default, raise, request};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RT_TABLE_LOCAL: u8 = 255;
const RT_TABLE_MAIN: u8 = 254;
/// One of our own.
const TABLE: u8 = 100;
/// The rule for it comes before that for `local`, which comes first by itself.
const LED_HERE: u32 = 50;
const LOCAL_LATER: u32 = 60;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FR_ACT_TO_TBL: u8 = 1;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;

/// The interface of every neighbour on its own side.
const THEIRS: &str = "eth0";

/// A namespace at the other end of a cable.
pub struct Neighbour {
    namespace: File,
    interface: String,
}

impl Neighbour {
    /// One whose packets come in by the interface `name`, from `.2` to `.9` of `network`, a /24. All
    /// that it sends goes there.
    ///
    /// # Panics
    /// Outside `isolated`, or when the kernel has no veth.
    pub fn new(name: &str, network: Ipv4Addr) -> Self {
        let namespace = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("the test may make namespaces");
            File::open("/proc/thread-self/ns/net").expect("a thread knows its namespace")
        });
        let namespace = namespace.join().expect("no panic");
        let neighbour = Self { namespace, interface: name.to_owned() };
        add_veth(name, &neighbour.namespace)
            .unwrap_or_else(|fault| panic!("this test needs veth interfaces: {fault}"));
        raise(index(name)).expect("a new interface can be raised");
        for address in addresses(network) {
            add_route(address, index(name)).expect("a new address can be routed");
        }
        neighbour.inside(|| {
            raise(index(THEIRS)).expect("a new interface can be raised");
            for address in addresses(network) {
                add_address(address, index(THEIRS)).expect("a new interface takes addresses");
            }
            add_default_route(index(THEIRS)).expect("a namespace takes a route");
        });
        neighbour
    }

    /// Gives the interface on the test's side the address `.1` of `network`: connections to the
    /// neighbour come from there.
    ///
    /// # Panics
    /// When it has it already.
    pub fn address_here(&self, network: Ipv4Addr) {
        let [a, b, c, _] = network.octets();
        let address = Ipv4Addr::new(a, b, c, 1);
        add_address(address, index(&self.interface)).expect("an interface takes an address");
    }

    /// Leads all that comes in by this neighbour's interface to sockets of the test's own side,
    /// whatever address it is for, as the rules of a gateway do.
    ///
    /// # Panics
    /// When the kernel has no policy routing.
    pub fn lead_here(&self) {
        let local = [RT_TABLE_LOCAL, 0, 0, FR_ACT_TO_TBL];
        add_rule(LOCAL_LATER, &local, None)
            .and_then(|()| delete_rule(0, &local))
            .and_then(|()| add_rule(LED_HERE, &[TABLE, 0, 0, FR_ACT_TO_TBL], Some(&self.interface)))
            .and_then(|()| add_local_default(TABLE))
            .unwrap_or_else(|fault| panic!("this test needs policy routing: {fault}"));
    }

    /// Does something in there.
    ///
    /// # Panics
    /// When `action` does.
    pub fn inside<T: Send>(&self, action: impl FnOnce() -> T + Send) -> T {
        inside(&self.namespace, action)
    }
}

fn index(name: &str) -> i32 {
    let index = if_nametoindex(name).unwrap_or_else(|fault| panic!("no interface {name}: {fault}"));
    i32::try_from(index).expect("an index is an i32")
}

/// As `ip link add NAME type veth peer name eth0 netns …`.
fn add_veth(name: &str, namespace: &File) -> io::Result<()> {
    let mut peer = link_message();
    attribute(&mut peer, IFLA_IFNAME, &name_bytes(THEIRS));
    attribute(&mut peer, IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
    let mut data = Vec::new();
    attribute(&mut data, VETH_INFO_PEER, &peer);
    let mut info = Vec::new();
    attribute(&mut info, IFLA_INFO_KIND, b"veth");
    attribute(&mut info, IFLA_INFO_DATA, &data);
    let mut message = link_message();
    attribute(&mut message, IFLA_IFNAME, &name_bytes(name));
    attribute(&mut message, IFLA_LINKINFO, &info);
    request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// As `ip address add ADDRESS/24 dev …`.
fn add_address(address: Ipv4Addr, index: i32) -> io::Result<()> {
    // struct ifaddrmsg: family, prefix length, flags, scope, interface.
    let mut message = vec![AddressFamily::Inet as u8, 24, 0, 0];
    message.extend(index.to_ne_bytes());
    attribute(&mut message, IFA_LOCAL, &address.octets());
    request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// As `ip route add ADDRESS dev … table local`: otherwise it were local, as every address is.
fn add_route(address: Ipv4Addr, index: i32) -> io::Result<()> {
    // struct rtmsg: see `make_every_address_local`.
    let mut message = vec![AddressFamily::Inet as u8, 32, 0, 0];
    message.extend([RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_LINK, RTN_UNICAST]);
    message.extend(0u32.to_ne_bytes());
    attribute(&mut message, RTA_DST, &address.octets());
    attribute(&mut message, RTA_OIF, &index.to_ne_bytes());
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// As `ip route add default dev …`: every address is asked for on the cable.
fn add_default_route(index: i32) -> io::Result<()> {
    let mut message = vec![AddressFamily::Inet as u8, 0, 0, 0];
    message.extend([RT_TABLE_MAIN, RTPROT_BOOT, RT_SCOPE_LINK, RTN_UNICAST]);
    message.extend(0u32.to_ne_bytes());
    attribute(&mut message, RTA_OIF, &index.to_ne_bytes());
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// As `ip rule add pref … iif … lookup …`, with these last fields of a struct fib_rule_hdr.
fn add_rule(preference: u32, table: &[u8; 4], interface: Option<&str>) -> io::Result<()> {
    request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule(preference, table, interface))
}

/// As `ip rule delete pref … lookup …`.
fn delete_rule(preference: u32, table: &[u8; 4]) -> io::Result<()> {
    request(RTM_DELRULE, 0, &rule(preference, table, None))
}

fn rule(preference: u32, table: &[u8; 4], interface: Option<&str>) -> Vec<u8> {
    let mut message = vec![AddressFamily::Inet as u8, 0, 0, 0];
    message.extend(table);
    message.extend(0u32.to_ne_bytes());
    attribute(&mut message, FRA_PRIORITY, &preference.to_ne_bytes());
    if let Some(interface) = interface {
        attribute(&mut message, FRA_IIFNAME, &name_bytes(interface));
    }
    message
}

fn addresses(network: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
    let [a, b, c, _] = network.octets();
    (2..10).map(move |last| Ipv4Addr::new(a, b, c, last))
}

/// struct ifinfomsg with nothing said.
fn link_message() -> Vec<u8> {
    vec![0; 16]
}

fn name_bytes(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// struct rtattr, padded to four bytes.
fn attribute(message: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    let length = u16::try_from(4 + payload.len()).expect("attributes are short");
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(payload);
    message.resize(message.len().next_multiple_of(4), 0);
}
