//! How is the kernel's network asked for something?
//!
//! Messages as netlink(7) has them, written by hand: no program such as `ip` or `nft` may be
//! needed, nor be trusted.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

pub(super) const NLM_F_REQUEST: u16 = 0x1;
pub(super) const NLM_F_ACK: u16 = 0x4;
pub(super) const NLM_F_EXCL: u16 = 0x200;
pub(super) const NLM_F_CREATE: u16 = 0x400;
pub(super) const NLM_F_APPEND: u16 = 0x800;

const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
const HEADER: usize = 16;

/// One message, or an attribute's payload, as it grows.
#[derive(Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    /// Bytes that are there from the start: a struct of fixed length.
    pub(super) fn of(bytes: &[u8]) -> Bytes {
        Bytes(bytes.to_vec())
    }

    /// Adds an attribute: its length, its kind, its payload, padded to four bytes.
    pub(super) fn attribute(mut self, kind: u16, payload: &[u8]) -> Bytes {
        let length = u16::try_from(4 + payload.len()).expect("attributes are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(payload);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds an attribute that is made of attributes.
    pub(super) fn nested(self, kind: u16, inner: Bytes) -> Bytes {
        self.attribute(kind | NLA_F_NESTED, &inner.0)
    }

    /// Adds a number in network byte order, as nf_tables has them.
    pub(super) fn number(self, kind: u16, number: u32) -> Bytes {
        self.attribute(kind, &number.to_be_bytes())
    }

    /// Adds a string with its final zero.
    pub(super) fn text(self, kind: u16, text: &str) -> Bytes {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// `self` as the payload of a message (struct nlmsghdr: length, type, flags, sequence, port).
    pub(super) fn message(&self, kind: u16, flags: u16, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.0.len()).expect("messages are short");
        let mut message = Vec::new();
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(&self.0);
        message
    }
}

/// Sends `messages` at once, the last of which asks for an acknowledgement, and reads what the
/// kernel says to them: the first error, or that acknowledgement.
pub(super) fn ask(protocol: SockProtocol, messages: &[u8]) -> io::Result<()> {
    let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
    let socket: OwnedFd = socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol)?;
    send(socket.as_raw_fd(), messages, MsgFlags::empty())?;
    let mut answer = [0; 4096];
    // The kernel has answered when `send` returns: there is nothing to wait for.
    let received = match recv(socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT) {
        Err(Errno::EAGAIN) => return Err(io::Error::other("the kernel gives no answer")),
        received => received?,
    };
    verdict(&answer[..received])
}

/// An answer is an error message whose code is 0 on success (struct nlmsgerr).
fn verdict(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer
        .get(HEADER..HEADER + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::other("the kernel's answer is no verdict")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_attributes_and_counts_them_unpadded() {
        let bytes = Bytes::default().text(1, "ab").nested(2, Bytes::default().number(3, 4));
        let expected = [
            &7u16.to_ne_bytes()[..],
            &1u16.to_ne_bytes(),
            b"ab\0\0",
            &12u16.to_ne_bytes(),
            &0x8002u16.to_ne_bytes(),
            &8u16.to_ne_bytes(),
            &3u16.to_ne_bytes(),
            &[0, 0, 0, 4],
        ]
        .concat();
        assert_eq!(bytes.0, expected);
    }

    #[test]
    fn tells_the_kernels_error() {
        let answer = |code: i32| Bytes::of(&code.to_ne_bytes()).message(NLMSG_ERROR, 0, 1);
        assert!(verdict(&answer(0)).is_ok());
        let error = verdict(&answer(-libc::EPERM)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert!(verdict(&[]).is_err());
    }

    #[test]
    fn asks_and_is_told_that_a_kind_does_not_exist() {
        let unknown = Bytes::of(&[0; 16]).message(0x7fff, NLM_F_ACK, 1);
        let error = ask(SockProtocol::NetlinkRoute, &unknown).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
