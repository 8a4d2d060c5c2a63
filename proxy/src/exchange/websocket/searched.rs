//! What is a client's stream when placeholders in its text messages are replaced?
//!
//! What is read from it are frames for the origin; what is written to it passes as it is. When it
//! must not go on, both sides are told by a close frame, each behind its last whole frame.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::boundary::Boundary;
use super::decode::{Decoder, Said};
use super::message::{Messages, Refusal};
use super::room::Room;
use super::{Close, encode};
use crate::audit::Record;
use crate::limits::LINGER;

/// One read.
const CHUNK: usize = 8 << 10;

/// A client's stream, in which messages are searched.
pub(crate) struct Searched<IO> {
    io: IO,
    messages: Arc<Messages>,
    decoder: Decoder,
    room: Room,
    /// For the origin.
    ready: Bytes,
    frame: Option<Framing>,
    /// How far what the origin says has come.
    boundary: Boundary,
    end: Option<End>,
    left: bool,
}

type Framing = Pin<Box<dyn Future<Output = Result<Bytes, Refusal>> + Send>>;

/// It must not go on.
struct End {
    refusal: Refusal,
    farewell: Bytes,
    /// For the origin's frame to end, and the client to take its last word.
    patience: Pin<Box<Sleep>>,
}

impl<IO> Searched<IO> {
    pub(crate) fn new(io: IO, messages: Messages) -> Searched<IO> {
        let (decoder, room) = (Decoder::new(messages.most()), messages.room());
        Searched {
            io,
            messages: Arc::new(messages),
            decoder,
            room,
            ready: Bytes::new(),
            frame: None,
            boundary: Boundary::default(),
            end: None,
            left: false,
        }
    }

    /// Notes what was found in it, and why it ended here, if it did. The client's own stream, if it
    /// is still to be closed.
    pub(crate) fn into_refused(self, record: &mut Record) -> Option<IO> {
        self.messages.findings().note(record);
        let End { refusal, .. } = self.end?;
        record.cut(refusal.denial.reason);
        record.error(refusal.denial.message);
        Some(self.io)
    }

    fn refuse(&mut self, refusal: Refusal) {
        let reason = refusal.denial.reason.code();
        let farewell = encode::close_for_client(refusal.close, reason);
        // Without randomness there is no frame for the origin: its connection just ends.
        self.ready = encode::close_for_origin(Close::GoingAway).unwrap_or_default();
        let patience = Box::pin(tokio::time::sleep(LINGER));
        self.end = Some(End { refusal, farewell, patience });
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Searched<IO> {
    /// Takes the next step towards bytes for the origin.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(frame) = &mut self.frame {
            let framed = ready!(frame.as_mut().poll(cx));
            self.frame = None;
            match framed {
                Ok(frame) => self.ready = frame,
                Err(refusal) => self.refuse(refusal),
            }
            return Poll::Ready(Ok(()));
        }
        match self.decoder.next() {
            Ok(Said::Bytes(bytes)) => self.ready = bytes,
            Ok(Said::Text(text)) => {
                let messages = Arc::clone(&self.messages);
                self.frame = Some(Box::pin(async move { messages.frame(text).await }));
            }
            Ok(Said::Nothing) => match self.room.cover(self.decoder.held()) {
                Ok(()) => return self.poll_more(cx),
                Err(refusal) => self.refuse(refusal),
            },
            Err(violation) => self.refuse(violation.into()),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut chunk = [std::mem::MaybeUninit::uninit(); CHUNK];
        let mut chunk = ReadBuf::uninit(&mut chunk);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut chunk))?;
        self.left = chunk.filled().is_empty();
        self.decoder.push(chunk.filled());
        Poll::Ready(Ok(()))
    }

    /// Ready with the error that ends it, once the client was told or did not want to be.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(end) = &mut self.end else { return Poll::Pending };
        while self.boundary.is_reached() && !end.farewell.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, &end.farewell) {
                Poll::Ready(Ok(written)) if written > 0 => end.farewell.advance(written),
                Poll::Ready(_) => end.farewell.clear(),
                Poll::Pending => break,
            }
        }
        let told = end.farewell.is_empty() && Pin::new(&mut self.io).poll_flush(cx).is_ready();
        if told || end.patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(io::Error::other(end.refusal.denial.message.clone()));
        }
        Poll::Pending
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Searched<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.ready.is_empty() {
            if this.end.is_some() {
                return this.poll_end(cx).map(Err);
            }
            if this.left {
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_step(cx))?;
        }
        let length = this.ready.len().min(buf.remaining());
        buf.put_slice(&this.ready.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Searched<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let length = match this.end {
            // The last word is ours: what the origin begins now is for nobody.
            Some(_) if this.boundary.is_reached() => return Poll::Ready(Ok(buf.len())),
            Some(_) => this.boundary.within(buf),
            None => buf.len(),
        };
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, &buf[..length]))?;
        this.boundary.pass(&buf[..written]);
        if this.end.is_some() && this.boundary.is_reached() {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.end {
            // The client is still to be told.
            Some(_) => Poll::Ready(Ok(())),
            None => Pin::new(&mut this.io).poll_shutdown(cx),
        }
    }
}
