//! How does a probe get in when clients have taken every descriptor?
//!
//! One is kept back. It is given up to accept a caller, and taken again as soon as that one has
//! left, so that the gateway can always say what it lacks.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Between two tries where there is nothing to give up either.
const PAUSE: Duration = Duration::from_millis(500);

/// A descriptor that is good for nothing but to be given up.
#[derive(Debug)]
pub(super) struct Reserve(Mutex<Option<File>>);

/// A listening socket of the management API.
pub(super) trait Door {
    /// What a caller speaks over.
    type Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static;

    /// The next caller.
    async fn next(&self) -> io::Result<Self::Io>;
}

impl Reserve {
    pub(super) fn new() -> Reserve {
        let reserve = Reserve(Mutex::new(None));
        reserve.fill();
        reserve
    }

    /// Takes a descriptor again, if one is free.
    pub(super) fn fill(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = File::open("/dev/null").ok();
        }
    }

    /// The next caller at `door`, whatever it takes.
    pub(super) async fn accept<D: Door>(&self, door: &D) -> D::Io {
        loop {
            match door.next().await {
                Ok(io) => return io,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) if self.give_up() => {}
                Err(error) => {
                    tracing::warn!(%error, "the management API can't be reached; trying again");
                    tokio::time::sleep(PAUSE).await;
                    self.fill();
                }
            }
        }
    }

    fn give_up(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

impl Door for TcpListener {
    type Io = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }
}

impl Door for UnixListener {
    type Io = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}
