//! How is a client told in TLS that there will be no session?
//!
//! rustls has no way to send these before a session begins.

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::exchange::serve;

/// What the client is told (RFC 8446 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alert {
    AccessDenied = 49,
    DecodeError = 50,
    InternalError = 80,
    /// RFC 6066 §3.
    UnrecognizedName = 112,
}

impl Alert {
    /// Sends it, fatal, as the first record of the connection.
    pub(crate) async fn send<IO: AsyncWrite + Unpin>(self, io: &mut IO) {
        let record = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, self as u8];
        // The client is told if it still listens; nothing depends on it.
        drop(io.write_all(&record).await);
    }

    /// The same, then the close.
    pub(crate) async fn send_and_close<IO: AsyncRead + AsyncWrite + Unpin>(self, mut io: IO) {
        self.send(&mut io).await;
        serve::close(io).await;
    }
}
