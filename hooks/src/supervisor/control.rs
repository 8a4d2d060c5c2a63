//! What do the gateway and the supervisor say to each other? One job, then single bytes.
//!
//! gateway → supervisor: the length of the job (4 bytes, big-endian) with the descriptors beside
//! it, the job as JSON, then orders of one byte. supervisor → gateway: one report of five bytes.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sandbox::Sandbox;

/// Above the largest command of a hooks file, with its variables.
const MAX_JOB: u32 = 16 << 20;

/// Stdin, a process, its root, and one namespace of each kind.
const MAX_DESCRIPTORS: usize = 10;

/// What is to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// For `/bin/sh -c`.
    pub(crate) command: String,
    /// Where; in `/` if that can't be.
    pub(crate) directory: String,
    /// All of its environment.
    pub(crate) env: Vec<(String, String)>,
    /// The kinds of the namespaces (clone(2)) to enter first, whose descriptors come along.
    pub(crate) enter: Vec<i32>,
}

/// How the command ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// With a status.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It was never started, for this errno.
    NotStarted(i32),
    /// The sandbox could not be entered, for this errno.
    NotEntered(i32),
}

/// What the gateway wants.
pub(super) enum Order {
    /// Ask everything to end.
    Terminate,
    /// End everything. Also said by a socket that closes.
    Kill,
}

const TERMINATE: u8 = b'T';
const KILL: u8 = b'K';

/// The gateway's end.
pub(crate) struct Gateway(tokio::net::UnixStream);

impl Gateway {
    /// A socket to a supervisor that is about to start, and the end that becomes its descriptor 0.
    pub(crate) fn pair() -> io::Result<(Gateway, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Gateway(tokio::net::UnixStream::from_std(ours)?), theirs.into()))
    }

    /// Hands over the job, the command's stdin and the sandbox to enter.
    pub(crate) async fn hand_over(
        &mut self,
        mut job: Job,
        stdin: OwnedFd,
        enter: Option<&Sandbox>,
    ) -> io::Result<()> {
        let mut descriptors: Vec<RawFd> = vec![stdin.as_raw_fd()];
        if let Some(sandbox) = enter {
            descriptors.push(sandbox.process().as_raw_fd());
            descriptors.push(sandbox.root_folder().as_raw_fd());
            for (kind, namespace) in sandbox.namespaces() {
                job.enter.push(kind.bits());
                descriptors.push(namespace.as_raw_fd());
            }
        }
        let job = serde_json::to_vec(&job)?;
        let len = u32::try_from(job.len()).ok().filter(|len| *len <= MAX_JOB);
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?.to_be_bytes();
        let beside = [ControlMessage::ScmRights(&descriptors)];
        // Four bytes always fit the buffer of a fresh socket.
        let sent = sendmsg::<()>(
            self.0.as_raw_fd(),
            &[IoSlice::new(&len)],
            &beside,
            MsgFlags::empty(),
            None,
        )?;
        if sent < len.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.write_all(&job).await
    }

    pub(crate) async fn terminate(&mut self) -> io::Result<()> {
        self.0.write_all(&[TERMINATE]).await
    }

    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        self.0.write_all(&[KILL]).await
    }

    /// Ready when the supervisor has ended.
    pub(crate) async fn closed(&mut self) {
        // A report that nobody waits for any longer may come before the end.
        while let Ok(1..) = self.0.read(&mut [0; 8]).await {}
    }

    /// How the command ended.
    pub(crate) async fn report(&mut self) -> io::Result<Report> {
        let mut bytes = [0; 5];
        self.0.read_exact(&mut bytes).await?;
        let [tag, number @ ..] = bytes;
        let number = i32::from_be_bytes(number);
        match tag {
            b'E' => Ok(Report::Exited(number)),
            b'S' => Ok(Report::Signalled(number)),
            b'F' => Ok(Report::NotStarted(number)),
            b'N' => Ok(Report::NotEntered(number)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The supervisor's end.
pub(super) struct Supervisor(UnixStream);

/// A job with its descriptors.
pub(super) struct Received {
    pub(super) job: Job,
    pub(super) stdin: OwnedFd,
    pub(super) sandbox: Option<Inside>,
}

/// What to enter.
pub(super) struct Inside {
    /// The process whose sandbox it is.
    pub(super) process: OwnedFd,
    /// Its root folder.
    pub(super) root: OwnedFd,
    /// Of the kinds that the job says.
    pub(super) namespaces: Vec<OwnedFd>,
}

impl Supervisor {
    /// Reads the job from descriptor 0.
    pub(super) fn receive() -> io::Result<(Supervisor, Received)> {
        // A copy that is closed on exec; descriptor 0 itself is the command's to replace.
        let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (len, descriptors) = receive_len(&socket)?;
        if len > MAX_JOB {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut job = vec![0; len as usize];
        socket.read_exact(&mut job)?;
        let mut descriptors = descriptors.into_iter();
        let stdin = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
        let sandbox = match descriptors.next() {
            Some(process) => {
                let root = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
                Some(Inside { process, root, namespaces: descriptors.collect() })
            }
            None => None,
        };
        let received = Received { job: serde_json::from_slice(&job)?, stdin, sandbox };
        Ok((Supervisor(socket), received))
    }

    pub(super) fn order(&mut self) -> Order {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(1) if byte[0] == TERMINATE => Order::Terminate,
            _ => Order::Kill,
        }
    }

    pub(super) fn report(&mut self, report: Report) -> io::Result<()> {
        let (tag, number) = match report {
            Report::Exited(code) => (b'E', code),
            Report::Signalled(signal) => (b'S', signal),
            Report::NotStarted(errno) => (b'F', errno),
            Report::NotEntered(errno) => (b'N', errno),
        };
        let mut bytes = [tag; 5];
        bytes[1..].copy_from_slice(&number.to_be_bytes());
        self.0.write_all(&bytes)
    }
}

impl AsFd for Supervisor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn receive_len(socket: &UnixStream) -> io::Result<(u32, Vec<OwnedFd>)> {
    let mut len = [0; 4];
    let mut space = nix::cmsg_space!([RawFd; MAX_DESCRIPTORS]);
    let mut into = [IoSliceMut::new(&mut len)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_WAITALL;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut space), flags)?;
    let received = message.bytes;
    let mut descriptors = Vec::new();
    for beside in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = beside {
            descriptors.extend(raw.into_iter().map(own));
        }
    }
    if received < len.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((u32::from_be_bytes(len), descriptors))
}

#[expect(unsafe_code, reason = "descriptors arrive as numbers")]
fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel made this descriptor for this message; nothing else knows its number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}
