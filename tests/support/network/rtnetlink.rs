//! How does every address become local?
//!
//! Three rtnetlink messages (rtnetlink(7)), written by hand because `ip` may not be installed: raise
//! `lo`, then `local default dev lo` for IPv4 and for IPv6.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// `lo` is the first interface of every network namespace.
const LOOPBACK: i32 = 1;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

const IFF_UP: u32 = 0x1;
const RTA_OIF: u16 = 4;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;

const HEADER_LENGTH: usize = 16;

/// As `ip link set lo up`.
pub(super) fn raise_loopback() {
    raise(LOOPBACK)
        .unwrap_or_else(|fault| panic!("cannot raise lo in the test's namespace: {fault}"));
}

/// As `ip link set … up`.
pub(super) fn raise(index: i32) -> io::Result<()> {
    let mut message = Vec::new();
    // struct ifinfomsg: family, padding, type, index, flags, mask of the flags to change.
    message.extend([AddressFamily::Unspec as u8, 0]);
    message.extend(0u16.to_ne_bytes());
    message.extend(index.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    request(RTM_NEWLINK, 0, &message)
}

/// As `ip route add local default dev lo`, and `ip -6 …` where the kernel has IPv6.
pub(super) fn make_every_address_local() {
    add_default(AddressFamily::Inet, RT_TABLE_LOCAL)
        .unwrap_or_else(|fault| panic!("cannot make IPv4 addresses local: {fault}"));
    match add_default(AddressFamily::Inet6, RT_TABLE_LOCAL).map_err(|fault| fault.raw_os_error()) {
        Ok(()) => {}
        // No IPv6 in this kernel, or switched off: tests that bind an IPv6 address will say so.
        Err(Some(code)) if without_ipv6(Errno::from_raw(code)) => {}
        Err(fault) => panic!("cannot make IPv6 addresses local: {fault:?}"),
    }
}

fn without_ipv6(error: Errno) -> bool {
    matches!(error, Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT | Errno::EACCES)
}

/// As `ip route add local default dev lo table …`.
pub(super) fn add_local_default(table: u8) -> io::Result<()> {
    add_default(AddressFamily::Inet, table)
}

fn add_default(family: AddressFamily, table: u8) -> io::Result<()> {
    let mut message = Vec::new();
    // struct rtmsg: family, destination, source and TOS lengths (all 0: default), table, protocol,
    // scope, type, flags; then the outgoing interface as the one attribute.
    message.extend([family as u8, 0, 0, 0]);
    message.extend([table, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL]);
    message.extend(0u32.to_ne_bytes());
    message.extend(8u16.to_ne_bytes());
    message.extend(RTA_OIF.to_ne_bytes());
    message.extend(LOOPBACK.to_ne_bytes());
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &message)
}

/// Sends one request to the kernel and reads its verdict.
pub(super) fn request(kind: u16, flags: u16, payload: &[u8]) -> io::Result<()> {
    let socket: OwnedFd = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let length = u32::try_from(HEADER_LENGTH + payload.len()).expect("requests are short");
    let mut message = Vec::new();
    // struct nlmsghdr: length, type, flags, sequence number, port.
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(payload);
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = [0; 1024];
    let received = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    verdict(&answer[..received])
}

/// The answer to a request with `NLM_F_ACK` is an error message whose code is 0 on success.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer
        .get(HEADER_LENGTH..HEADER_LENGTH + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::other("the kernel's answer is no verdict")),
    }
}
