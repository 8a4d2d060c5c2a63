//! What happens on a connection below the codec?
//!
//! It is looked at for the [`Ledger`]. And it ends so that the client can read the last of it: for
//! as long as the client still sends, as any HTTP/2 client does while it reads, closing the socket
//! would reset the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::frames::Frames;
use super::ledger::Ledger;
use crate::limits::{LINGER, LINGER_BYTES};

/// What is read at a time after the end.
const PIECE: usize = 4096;
/// However the client drips: what is left to read of a last answer is in its own buffers by then.
const LONGEST_LINGER: Duration = Duration::from_secs(10);

/// A client's stream, both of whose directions are looked at.
pub(super) struct Watched<IO> {
    io: IO,
    ledger: Ledger,
    read: Frames,
    written: Frames,
    /// Our side has ended; what still comes is thrown away, up to so many bytes and so long.
    lingering: Option<(Pin<Box<Sleep>>, usize, Instant)>,
}

impl<IO> Watched<IO> {
    pub(super) fn new(io: IO, ledger: Ledger) -> Watched<IO> {
        let (read, written) = (Frames::of_client(), Frames::default());
        Watched { io, ledger, read, written, lingering: None }
    }

    fn wrote(&mut self, from: &[io::IoSlice<'_>], mut written: usize) {
        for slice in from {
            let length = written.min(slice.len());
            self.written.follow(&slice[..length], |frame| self.ledger.went(frame));
            written -= length;
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Watched<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Watched { io, ledger, read, .. } = self.get_mut();
        let before = to.filled().len();
        ready!(Pin::new(io).poll_read(cx, to))?;
        read.follow(&to.filled()[before..], |frame| ledger.came(frame));
        ledger.is_in_head(read.is_in_head());
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(from)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.io).poll_write_vectored(cx, from);
        this.ledger.is_blocked(polled.is_pending());
        let written = ready!(polled)?;
        this.wrote(from, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.io).poll_flush(cx);
        this.ledger.is_blocked(polled.is_pending());
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Watched { io, lingering, .. } = self.get_mut();
        let (silence, left, until) = match lingering {
            Some((silence, left, until)) => (silence, left, *until),
            None => {
                ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
                let until = Instant::now() + LONGEST_LINGER;
                let silence = Box::pin(tokio::time::sleep(LINGER));
                let (silence, left, _) = lingering.insert((silence, LINGER_BYTES, until));
                (silence, left, until)
            }
        };
        while *left > 0 && silence.as_mut().poll(cx).is_pending() {
            let mut thrown_away = [0; PIECE];
            let mut thrown_away = ReadBuf::new(&mut thrown_away);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut thrown_away)) {
                Ok(()) if !thrown_away.filled().is_empty() => {
                    *left = left.saturating_sub(thrown_away.filled().len());
                    silence.as_mut().reset(until.min(Instant::now() + LINGER));
                }
                // The client has ended its side too.
                Ok(()) | Err(_) => *left = 0,
            }
        }
        Poll::Ready(Ok(()))
    }
}
