//! What addresses does `lo` have, and which are local?
//!
//! Three kinds of rtnetlink messages (rtnetlink(7)).

use std::io;
use std::net::IpAddr;

use nix::sys::socket::{AddressFamily, SockProtocol};

use super::netlink::{Bytes, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, ask};

/// `lo` is the first interface of every network namespace.
const LOOPBACK: u32 = 1;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

const IFF_UP: u32 = 0x1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Good at once: nobody else can have it, and what is asked about first is no source meanwhile.
const IFA_F_NODAD: u8 = 2;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;

/// As `ip link set lo up`.
pub(super) fn raise_loopback() -> io::Result<()> {
    // struct ifinfomsg: family, padding, type, index, flags, mask of the flags to change.
    let mut message = vec![AddressFamily::Unspec as u8, 0, 0, 0];
    message.extend([LOOPBACK, IFF_UP, IFF_UP].iter().flat_map(|word| word.to_ne_bytes()));
    request(RTM_NEWLINK, 0, &Bytes::of(&message))
}

/// As `ip address add ADDRESS/32 dev lo scope global` (`/128 … nodad` for IPv6).
pub(super) fn add_address(address: IpAddr) -> io::Result<()> {
    let (family, octets) = parts(address);
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    // struct ifaddrmsg: family, prefix length, flags, scope, interface.
    let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
    let mut message = vec![family as u8, prefix, flags, RT_SCOPE_UNIVERSE];
    message.extend(LOOPBACK.to_ne_bytes());
    let message = Bytes::of(&message).attribute(IFA_LOCAL, &octets).attribute(IFA_ADDRESS, &octets);
    request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// As `ip route add local default dev lo src ADDRESS`, for the family of `source`.
pub(super) fn make_every_address_local(source: IpAddr) -> io::Result<()> {
    let (family, octets) = parts(source);
    // struct rtmsg: family, destination, source and TOS lengths (all 0: default), table, protocol,
    // scope, type, flags.
    let mut message = vec![family as u8, 0, 0, 0];
    message.extend([RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL, 0, 0, 0, 0]);
    let message = Bytes::of(&message)
        .attribute(RTA_OIF, &LOOPBACK.to_ne_bytes())
        .attribute(RTA_PREFSRC, &octets);
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &message)
}

fn request(kind: u16, flags: u16, payload: &Bytes) -> io::Result<()> {
    ask(SockProtocol::NetlinkRoute, &payload.message(kind, NLM_F_ACK | flags, 1))
}

fn parts(address: IpAddr) -> (AddressFamily, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AddressFamily::Inet, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::Inet6, address.octets().to_vec()),
    }
}
