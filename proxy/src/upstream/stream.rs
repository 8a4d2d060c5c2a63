//! What carries the bytes to an origin?
//!
//! A socket of its own, or a tunnel that the upstream proxy opened: what came behind the proxy's
//! answer is the origin's, and is read first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::ingress::prefixed::Prefixed;

/// A connection to an origin, nothing of which is read yet.
pub(crate) enum OriginStream {
    /// To the origin itself.
    Direct(TcpStream),
    /// Through an upstream proxy.
    Tunnel(Box<Prefixed<TcpStream>>),
    /// Through one that is spoken to over TLS.
    SecureTunnel(Box<Prefixed<TlsStream<TcpStream>>>),
}

/// The same for each kind of stream.
macro_rules! each {
    ($stream:expr, $io:ident => $does:expr) => {
        match $stream.get_mut() {
            OriginStream::Direct($io) => $does,
            OriginStream::Tunnel($io) => $does,
            OriginStream::SecureTunnel($io) => $does,
        }
    };
}

impl AsyncRead for OriginStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, io => Pin::new(io).poll_read(cx, to))
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => Pin::new(io).poll_write(cx, from))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => Pin::new(io).poll_write_vectored(cx, from))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            OriginStream::Direct(io) => io.is_write_vectored(),
            OriginStream::Tunnel(io) => io.is_write_vectored(),
            OriginStream::SecureTunnel(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => Pin::new(io).poll_shutdown(cx))
    }
}
