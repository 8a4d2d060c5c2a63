//! How do messages and descriptors cross from one side of a sandbox to the other?
//!
//! A stream of frames over a pair of Unix sockets: a length of four bytes, then JSON. Descriptors
//! travel with the first byte of their frame (unix(7), `SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A plan carries variables, arguments and what the files of the sandbox contain; more than this
/// is a fault, not a plan.
const LONGEST: usize = 64 << 20;

/// `SCM_MAX_FD` of the kernel.
pub(super) const MOST_DESCRIPTORS: usize = 253;

const HEADER: usize = 4;

/// Why nothing more comes or goes.
#[derive(Debug, Error)]
pub(crate) enum ChannelError {
    #[error("the other side of the sandbox is gone")]
    Closed,
    #[error("a message of {0} bytes is over the {LONGEST} that one may have")]
    TooLong(usize),
    #[error("a message that makes no sense: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the channel into the sandbox: {0}")]
    Broken(#[from] io::Error),
}

/// One end.
#[derive(Debug)]
pub(super) struct Channel {
    socket: UnixStream,
}

impl Channel {
    pub(super) fn new(socket: UnixStream) -> Channel {
        Channel { socket }
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), ChannelError> {
        self.send_with(message, &[])
    }

    /// Sends a message with at most [`MOST_DESCRIPTORS`] descriptors.
    pub(super) fn send_with(
        &mut self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let frame = encode(message)?;
        let sent = send_with(&self.socket, &frame, descriptors)?;
        self.socket.write_all(&frame[sent..])?;
        Ok(())
    }

    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, ChannelError> {
        Ok(self.receive_with()?.0)
    }

    /// Waits for a message and what comes along with it.
    pub(super) fn receive_with<T: DeserializeOwned>(
        &mut self,
    ) -> Result<(T, Vec<OwnedFd>), ChannelError> {
        let mut header = [0; HEADER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut header)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .map_err(io::Error::from)?;
        let descriptors = control.drain().filter_map(rights).flatten().collect();
        if received.bytes == 0 {
            return Err(ChannelError::Closed);
        }
        self.read_exact(&mut header[received.bytes..])?;
        let mut body = vec![0; body_length(header)?];
        self.read_exact(&mut body)?;
        Ok((serde_json::from_slice(&body)?, descriptors))
    }

    pub(super) fn into_socket(self) -> UnixStream {
        self.socket
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.socket.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ChannelError::Closed,
            _ => error.into(),
        })
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a first part of `frame` with at most [`MOST_DESCRIPTORS`] descriptors; its length.
pub(super) fn send_with(
    socket: impl AsFd,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(sendmsg(socket, &[IoSlice::new(frame)], &mut control, SendFlags::NOSIGNAL)?)
}

/// A message as it goes over the socket.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, ChannelError> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - HEADER;
    let header = u32::try_from(length).ok().filter(|_| length <= LONGEST);
    frame[..HEADER].copy_from_slice(&header.ok_or(ChannelError::TooLong(length))?.to_ne_bytes());
    Ok(frame)
}

/// Takes the first message out of what was read, once all of it is there.
pub(super) fn decode<T: DeserializeOwned>(read: &mut Vec<u8>) -> Result<Option<T>, ChannelError> {
    let Some(header) = read.first_chunk() else { return Ok(None) };
    let end = HEADER + body_length(*header)?;
    let Some(body) = read.get(HEADER..end) else { return Ok(None) };
    let message = serde_json::from_slice(body)?;
    read.drain(..end);
    Ok(Some(message))
}

fn body_length(header: [u8; HEADER]) -> Result<usize, ChannelError> {
    let length = usize::try_from(u32::from_ne_bytes(header)).unwrap_or(usize::MAX);
    if length <= LONGEST { Ok(length) } else { Err(ChannelError::TooLong(length)) }
}

fn rights(message: RecvAncillaryMessage<'_>) -> Option<Vec<OwnedFd>> {
    match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors.collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        (Channel::new(one), Channel::new(other))
    }

    #[test]
    fn carries_a_message_that_is_longer_than_the_sockets_buffer() {
        let (mut one, mut other) = pair();
        let long = "x".repeat(3 << 20);
        let sent = long.clone();
        let sender = thread::spawn(move || one.send(&sent));
        assert_eq!(other.receive::<String>().unwrap(), long);
        sender.join().unwrap().unwrap();
        assert!(matches!(other.receive::<String>(), Err(ChannelError::Closed)));
    }

    #[test]
    fn carries_descriptors_that_no_program_inherits() {
        let (mut one, mut other) = pair();
        let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
        one.send_with(&"three", &descriptors).unwrap();
        one.send(&"none").unwrap();
        let (text, received) = other.receive_with::<String>().unwrap();
        assert_eq!((text.as_str(), received.len()), ("three", 3));
        for (received, sent) in received.into_iter().zip(listeners) {
            let flags = rustix::io::fcntl_getfd(&received).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let received = TcpListener::from(received);
            assert_eq!(received.local_addr().unwrap(), sent.local_addr().unwrap());
        }
        assert!(other.receive_with::<String>().unwrap().1.is_empty());
    }

    #[test]
    fn refuses_a_length_that_no_message_has() {
        let (one, mut other) = pair();
        one.into_socket().write_all(&u32::MAX.to_ne_bytes()).unwrap();
        assert!(matches!(other.receive::<String>(), Err(ChannelError::TooLong(_))));
        assert!(decode::<String>(&mut u32::MAX.to_ne_bytes().to_vec()).is_err());
    }

    #[test]
    fn reads_messages_out_of_pieces() {
        let whole = [encode(&"one").unwrap(), encode(&"two").unwrap()].concat();
        let mut read = Vec::new();
        let mut messages = Vec::new();
        for byte in whole {
            read.push(byte);
            messages.extend(decode::<String>(&mut read).unwrap());
        }
        assert_eq!(messages, ["one", "two"]);
        assert!(read.is_empty());
    }
}
