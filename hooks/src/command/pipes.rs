//! How are the three pipes of a command kept moving, so that none waits for another?

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::reason::Reason;

/// Far above any decision with its reason.
pub(super) const MAX_STDOUT: usize = 1 << 20;

/// The first words of stderr are for the log; the rest is read and dropped.
const MAX_STDERR: usize = 512;

/// Our ends.
pub(super) struct Pipes {
    /// Closed once the payload is written, or nobody reads it.
    stdin: Option<Sender>,
    stdout: Receiver,
    stderr: Receiver,
    written: Vec<u8>,
    said: Vec<u8>,
}

/// The command's ends.
pub(super) struct Ends {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// It wrote more than is read.
pub(super) struct TooLarge;

impl Pipes {
    pub(super) fn open() -> io::Result<(Pipes, Ends)> {
        let (stdin, ours) = io::pipe()?;
        let (stdout, out) = io::pipe()?;
        let (stderr, err) = io::pipe()?;
        let pipes = Pipes {
            stdin: Some(Sender::from_owned_fd(ours.into())?),
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
            written: Vec::new(),
            said: Vec::new(),
        };
        let ends = Ends { stdin: stdin.into(), stdout: out.into(), stderr: err.into() };
        Ok((pipes, ends))
    }

    /// Writes the payload and reads what comes. Returns only if that is too much: a pipe that is
    /// closed says nothing about the command's end.
    pub(super) async fn pump(&mut self, payload: &[u8]) -> TooLarge {
        let Pipes { stdin, stdout, stderr, written, said } = self;
        let feed = async {
            if let Some(mut pipe) = stdin.take() {
                // A command that has read enough, or nothing, closes its end: no fault of its own.
                let _ = pipe.write_all(payload).await;
            }
            std::future::pending().await
        };
        let collect = async {
            while let Ok(1..) = stdout.read_buf(written).await {
                if written.len() > MAX_STDOUT {
                    return TooLarge;
                }
            }
            std::future::pending().await
        };
        let listen = async {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = stderr.read(&mut buffer).await {
                keep(said, &buffer[..len]);
            }
            std::future::pending().await
        };
        tokio::select! {
            too_large = feed => too_large,
            too_large = collect => too_large,
            too_large = listen => too_large,
        }
    }

    /// Reads what already lies in the pipes, after the command's end: everything it wrote is
    /// there, and whoever still holds the other end is not waited for.
    pub(super) fn drain(&mut self) -> Result<(), TooLarge> {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = self.stderr.try_read(&mut buffer)
            && self.said.len() < MAX_STDERR
        {
            keep(&mut self.said, &buffer[..len]);
        }
        while self.written.len() <= MAX_STDOUT
            && let Ok(1..) = self.stdout.try_read_buf(&mut self.written)
        {}
        if self.written.len() > MAX_STDOUT { Err(TooLarge) } else { Ok(()) }
    }

    pub(super) fn take_stdout(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    /// A detail for the log, with what the command said about it.
    pub(super) fn with_stderr(&self, detail: String) -> String {
        let said = String::from_utf8_lossy(&self.said);
        match said.trim() {
            "" => detail,
            said => format!("{detail}: {}", Reason::new(said)),
        }
    }
}

fn keep(said: &mut Vec<u8>, more: &[u8]) {
    let room = MAX_STDERR.saturating_sub(said.len());
    said.extend_from_slice(&more[..more.len().min(room)]);
}
