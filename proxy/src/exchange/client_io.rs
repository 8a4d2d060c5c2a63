//! Who is speaking on a client connection, and for how long has nobody?
//!
//! hyper answers what it can't parse by itself, with an empty body, and closes late heads without
//! a word. This IO sits below it and knows whether an answer of ours is under way: whatever hyper
//! writes on its own is held back, so that the client can be given a refusal it can read. The same
//! knowledge tells an idle connection from a slow head, which have different deadlines.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::last_byte::LastByte;
use crate::limits::Limits;

/// No request is under way.
const IDLE: u8 = 0;
/// A request was handed over; until its answer is complete, what is written is ours.
const SPEAKING: u8 = 1;
/// The answer's last byte was handed to hyper, which flushes it.
const SPOKEN: u8 = 2;

/// A client's stream below hyper.
pub(crate) struct ClientIo<IO> {
    io: TokioIo<LastByte<IO>>,
    turn: Turn,
    deadlines: Deadlines,
    sleep: Pin<Box<Sleep>>,
    /// The last progress; while a head is read, its first byte.
    since: Instant,
    head_begun: bool,
    /// No request was handed over yet.
    unused: bool,
    held_back: bool,
    expired: Option<Expired>,
}

/// Shared with the service: whose turn it is.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<AtomicU8>);

/// Our answer is under way until this is dropped.
pub(crate) struct Speaking(Turn);

/// Which deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing was asked for too long.
    Idle,
    /// A request head began and did not end.
    Head,
    /// In the middle of an exchange nothing moved for too long.
    Stalled,
}

/// The deadlines of one client connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    first: Duration,
    pub(super) idle: Duration,
    head: Duration,
    pub(super) stalled: Duration,
}

impl Deadlines {
    /// For a connection that may be silent for `idle` between requests.
    pub(crate) fn new(idle: Duration, limits: &Limits) -> Deadlines {
        // Later than the wait for an answer, which ends in a 504 instead of a cut.
        let stalled = limits.idle_tunnel.max(limits.response_head + Duration::from_secs(5));
        Deadlines { first: idle, idle, head: limits.request_head, stalled }
    }

    /// The same, but the first request must begin as soon as a head must end: nobody connects to a
    /// proxy to say nothing.
    pub(crate) fn promptly(self) -> Deadlines {
        Deadlines { first: self.idle.min(self.head), ..self }
    }
}

impl Turn {
    /// A request was handed over: from now on it is our turn.
    pub(crate) fn speak(&self) -> Speaking {
        self.0.store(SPEAKING, Ordering::Relaxed);
        Speaking(self.clone())
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        self.0.0.store(SPOKEN, Ordering::Relaxed);
    }
}

impl<IO> ClientIo<IO> {
    pub(crate) fn new(io: IO, deadlines: Deadlines) -> ClientIo<IO> {
        let now = Instant::now();
        ClientIo {
            io: TokioIo::new(LastByte::new(io)),
            turn: Turn::default(),
            deadlines,
            sleep: Box::pin(tokio::time::sleep_until(now + deadlines.first)),
            since: now,
            head_begun: false,
            unused: true,
            held_back: false,
            expired: None,
        }
    }

    pub(crate) fn turn(&self) -> Turn {
        self.turn.clone()
    }

    /// Whether hyper wanted to say something of its own.
    pub(crate) fn held_back(&self) -> bool {
        self.held_back
    }

    /// Whether the client has closed its side.
    pub(crate) fn client_left(&self) -> bool {
        self.io.inner().passed()
    }

    /// The deadline that ended the connection, if one did.
    pub(crate) fn expired(&self) -> Option<Expired> {
        self.expired
    }

    pub(crate) fn into_inner(self) -> IO {
        self.io.into_inner().into_inner()
    }

    fn is_idle(&self) -> bool {
        self.turn.get() == IDLE
    }

    fn moved(&mut self) {
        // A head that drips in gains no time by it.
        if !(self.head_begun && self.is_idle()) {
            self.since = Instant::now();
        }
    }

    /// Ready with an error once the deadline of the present state has passed. The timer is set
    /// anew only when it fires, not at every byte.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let (limit, state) = match self.is_idle() {
            true if self.head_begun => (self.deadlines.head, Expired::Head),
            true if self.unused => (self.deadlines.first, Expired::Idle),
            true => (self.deadlines.idle, Expired::Idle),
            false => (self.deadlines.stalled, Expired::Stalled),
        };
        let deadline = self.since + limit;
        if deadline < self.sleep.deadline() {
            self.sleep.as_mut().reset(deadline);
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                self.expired = Some(state);
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl<IO: AsyncRead + Unpin> Read for ClientIo<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.io).poll_read(cx, to) {
            Poll::Ready(Ok(())) => {
                this.moved();
                this.head_begun |= this.is_idle();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => this.poll_deadline(cx).map(Err),
        }
    }
}

impl<IO: AsyncWrite + Unpin> Write for ClientIo<IO> {
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
        if this.is_idle() {
            this.held_back = true;
            return Poll::Ready(Ok(from.iter().map(|slice| slice.len()).sum()));
        }
        match Pin::new(&mut this.io).poll_write_vectored(cx, from) {
            Poll::Ready(written) => {
                this.moved();
                Poll::Ready(written)
            }
            Poll::Pending => this.poll_deadline(cx).map(Err),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.io).poll_flush(cx))?;
        // hyper flushes only once its own buffer is written out.
        if this.turn.get() == SPOKEN {
            this.turn.0.store(IDLE, Ordering::Relaxed);
            this.head_begun = false;
            this.unused = false;
            this.moved();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn deadlines() -> Deadlines {
        let seconds = Duration::from_secs;
        Deadlines {
            first: seconds(120),
            idle: seconds(120),
            head: seconds(30),
            stalled: seconds(600),
        }
    }

    async fn read(io: &mut ClientIo<DuplexStream>) -> io::Result<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); 16];
        let mut buffer = hyper::rt::ReadBuf::uninit(&mut space);
        poll_fn(|cx| Pin::new(&mut *io).poll_read(cx, buffer.unfilled())).await
    }

    async fn write(io: &mut ClientIo<DuplexStream>, bytes: &[u8]) {
        poll_fn(|cx| Pin::new(&mut *io).poll_write(cx, bytes)).await.expect("open");
        poll_fn(|cx| Pin::new(&mut *io).poll_flush(cx)).await.expect("open");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_idle_for_as_long_as_it_may() {
        let (_client, server) = duplex(64);
        let begun = Instant::now();
        let mut io = ClientIo::new(server, deadlines());
        assert!(read(&mut io).await.is_err());
        assert_eq!((io.expired(), begun.elapsed().as_secs()), (Some(Expired::Idle), 120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_client_asks_as_soon_as_a_head_must_end() {
        let (_client, server) = duplex(64);
        let begun = Instant::now();
        let mut io = ClientIo::new(server, deadlines().promptly());
        assert!(read(&mut io).await.is_err());
        assert_eq!((io.expired(), begun.elapsed().as_secs()), (Some(Expired::Idle), 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drips_in_gains_no_time() {
        let (mut client, server) = duplex(64);
        let mut io = ClientIo::new(server, deadlines());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                if client.write_all(b"x").await.is_err() {
                    return;
                }
            }
        });
        let begun = Instant::now();
        while read(&mut io).await.is_ok() {}
        assert_eq!((io.expired(), begun.elapsed().as_secs()), (Some(Expired::Head), 35));
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_moves_is_never_late() {
        let (mut client, server) = duplex(64);
        let mut io = ClientIo::new(server, deadlines());
        client.write_all(b"head").await.expect("open");
        read(&mut io).await.expect("open");
        let _speaking = io.turn().speak();
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(300)).await;
            client.write_all(b"body").await.expect("open");
            read(&mut io).await.expect("an upload that moves goes on");
        }
        assert!(read(&mut io).await.is_err());
        assert_eq!(io.expired(), Some(Expired::Stalled));
    }

    #[tokio::test]
    async fn only_our_own_answers_reach_the_client() {
        let (mut client, server) = duplex(64);
        let mut io = ClientIo::new(server, deadlines());
        let speaking = io.turn().speak();
        write(&mut io, b"ours").await;
        drop(speaking);
        write(&mut io, b", the end").await;
        assert!(!io.held_back());
        write(&mut io, b"hyper's own").await;
        assert!(io.held_back());
        drop(io);
        let mut seen = String::new();
        client.read_to_string(&mut seen).await.expect("open");
        assert_eq!(seen, "ours, the end");
    }
}
