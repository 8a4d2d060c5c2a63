//! When is the other end of a WebSocket gone?
//!
//! hyper reads RST_STREAM with CANCEL, RFC 8441's word for a broken connection, as an end in order,
//! after which the other direction might still flow; only writing fails then. Such a relay would
//! stand until it is idle for too long, so an end is looked at once more before it is believed.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Turns of the event loop that the writing half may take to hear of a reset: it was woken by the
/// same frame, before the reading half.
const TURNS: u8 = 2;

/// Bytes of an HTTP/1.1 connection or an HTTP/2 stream that was handed over.
pub(crate) struct Switched {
    io: TokioIo<Upgraded>,
    turns: u8,
}

impl Switched {
    pub(crate) fn new(upgraded: Upgraded) -> Switched {
        Switched { io: TokioIo::new(upgraded), turns: 0 }
    }
}

impl AsyncRead for Switched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = to.filled().len();
        if this.turns == 0 {
            ready!(Pin::new(&mut this.io).poll_read(cx, to)).map_err(plain)?;
            if to.filled().len() > before || to.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        if this.turns < TURNS {
            this.turns += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match Pin::new(&mut this.io).poll_flush(cx) {
            Poll::Ready(Err(error)) => {
                let error = plain(error).to_string();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, error)))
            }
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Switched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, from).map_err(plain)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx).map_err(plain)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx).map_err(plain)
    }
}

/// An error of a stream in words of our own: those of the codec may be its peer's, and hold what was
/// put on the request.
fn plain(error: io::Error) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = error.get_ref().map(|cause| cause as _);
    let mut of_stream = false;
    while let Some(next) = cause {
        if let Some(reset) = next.downcast_ref::<h2::Error>() {
            let reason = reset.reason().unwrap_or(h2::Reason::INTERNAL_ERROR);
            let why = format!("the stream was reset: {}", reason.description());
            return io::Error::new(error.kind(), why);
        }
        of_stream |= next.is::<hyper::Error>();
        cause = next.source();
    }
    match of_stream {
        true => io::Error::new(error.kind(), "the stream was closed"),
        false => error,
    }
}
