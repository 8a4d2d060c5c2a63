//! How do bytes pass both ways without being looked at?
//!
//! Half-close is kept: the end of one direction is passed on while the other flows. A silent relay
//! holds no buffer: bytes are read into the stack and kept only while the other side can't take
//! them, and nothing more is read meanwhile.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// One read.
const CHUNK: usize = 16 << 10;

/// What the audit line says of a relay that a new policy ended.
pub(crate) const REVOKED: &str = "closed: a new policy does not permit it any more";

/// Why a relay ended otherwise than in order, and by whom.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    /// The client broke it off.
    #[error("the client left: {0}")]
    Client(io::Error),
    /// The origin did.
    #[error("the origin broke off: {0}")]
    Origin(io::Error),
    /// Nobody said anything.
    #[error("silent for too long")]
    Silent,
    /// It must not go on.
    #[error("{REVOKED}")]
    Revoked,
}

/// Relays between `client` and `origin` until both are done, one fails, or neither has said
/// anything for `idle`. `passed` is told how many bytes went up and down so far: a relay may be
/// cut from outside.
pub(crate) async fn relay<C, O>(
    mut client: C,
    mut origin: O,
    idle: Duration,
    mut passed: impl FnMut(u64, u64),
) -> Result<(), RelayError>
where
    C: AsyncRead + AsyncWrite + Unpin,
    O: AsyncRead + AsyncWrite + Unpin,
{
    let mut up = Direction::default();
    let mut down = Direction::default();
    let mut silence = Box::pin(tokio::time::sleep(idle));
    poll_fn(|cx| {
        let before = (up.bytes, down.bytes);
        let up_done = up.poll(cx, &mut client, &mut origin);
        let down_done = down.poll(cx, &mut origin, &mut client);
        let moved = before != (up.bytes, down.bytes);
        if moved {
            passed(up.bytes, down.bytes);
        }
        if is_gone(&up_done, &down) || is_gone(&down_done, &up) {
            return Poll::Ready(Ok(()));
        }
        // Both are asked: a direction that failed ends it, also while the other waits.
        let (up_done, down_done) =
            (up_done.map_err(Broken::upwards)?, down_done.map_err(Broken::downwards)?);
        if up_done.is_ready() && down_done.is_ready() {
            return Poll::Ready(Ok(()));
        }
        poll_silence(cx, silence.as_mut(), idle, moved)
    })
    .await
}

/// Whether a direction failed only because its receiver, which had said all that it had to say
/// `the_other` way, has closed altogether.
fn is_gone(done: &Poll<Result<(), Broken>>, the_other: &Direction) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    let Poll::Ready(Err(Broken::From(error) | Broken::To(error))) = done else { return false };
    the_other.ended && matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

fn poll_silence(
    cx: &mut Context<'_>,
    mut silence: Pin<&mut Sleep>,
    idle: Duration,
    moved: bool,
) -> Poll<Result<(), RelayError>> {
    if moved {
        silence.as_mut().reset(Instant::now() + idle);
    }
    ready!(silence.poll(cx));
    Poll::Ready(Err(RelayError::Silent))
}

/// Which end of a direction failed.
enum Broken {
    From(io::Error),
    To(io::Error),
}

impl Broken {
    fn upwards(self) -> RelayError {
        match self {
            Broken::From(error) => RelayError::Client(error),
            Broken::To(error) => RelayError::Origin(error),
        }
    }

    fn downwards(self) -> RelayError {
        match self {
            Broken::From(error) => RelayError::Origin(error),
            Broken::To(error) => RelayError::Client(error),
        }
    }
}

#[derive(Default)]
struct Direction {
    bytes: u64,
    /// What was read and could not be written yet.
    kept: Vec<u8>,
    unflushed: bool,
    ended: bool,
    shut: bool,
}

impl Direction {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
    ) -> Poll<Result<(), Broken>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            ready!(self.poll_kept(cx, to)).map_err(Broken::To)?;
            if self.ended {
                return self.poll_shut(cx, to).map_err(Broken::To);
            }
            let mut chunk = [std::mem::MaybeUninit::uninit(); CHUNK];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            match Pin::new(&mut *from).poll_read(cx, &mut chunk) {
                Poll::Ready(result) => result.map_err(Broken::From)?,
                Poll::Pending => {
                    ready!(self.poll_flush(cx, to)).map_err(Broken::To)?;
                    return Poll::Pending;
                }
            }
            let read = chunk.filled();
            self.bytes += read.len() as u64;
            self.ended = read.is_empty();
            let written = match Pin::new(&mut *to).poll_write(cx, read) {
                Poll::Ready(written) => written.map_err(Broken::To)?,
                Poll::Pending => 0,
            };
            self.unflushed = true;
            self.kept.extend_from_slice(&read[written..]);
        }
    }

    fn poll_kept<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.kept.is_empty() {
            match ready!(Pin::new(&mut *to).poll_write(cx, &self.kept))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(self.kept.drain(..written)),
            }
            if self.kept.is_empty() {
                self.kept = Vec::new();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(Pin::new(to).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shut<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(Pin::new(to).poll_shutdown(cx))?;
            self.shut = true;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const IDLE: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn half_close_is_passed_on_while_the_answer_still_flows() {
        let (mut client, client_side) = duplex(64);
        let (mut origin, origin_side) = duplex(64);
        let relayed = tokio::spawn(async move {
            let mut passed = (0, 0);
            let end = relay(client_side, origin_side, IDLE, |up, down| passed = (up, down)).await;
            end.map(|()| passed)
        });
        client.write_all(b"question").await.expect("open");
        client.shutdown().await.expect("open");
        let mut asked = Vec::new();
        origin.read_to_end(&mut asked).await.expect("the half-close arrives");
        assert_eq!(asked, b"question");
        let answer = vec![7; 100_000];
        let writer = tokio::spawn(async move {
            origin.write_all(&answer).await.expect("open");
        });
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.expect("open");
        writer.await.expect("no panic");
        assert_eq!(read.len(), 100_000);
        let passed = relayed.await.expect("no panic").expect("both sides end in order");
        assert_eq!(passed, (8, 100_000));
    }

    #[tokio::test(start_paused = true)]
    async fn who_closes_altogether_leaves_in_order() {
        let (client, client_side) = duplex(64);
        let (mut origin, origin_side) = duplex(64);
        let relayed = tokio::spawn(relay(client_side, origin_side, IDLE, |_, _| {}));
        drop(client);
        origin.read_to_end(&mut Vec::new()).await.expect("the half-close arrives");
        origin.write_all(b"to nobody").await.expect("open");
        assert!(relayed.await.expect("no panic").is_ok());
    }

    /// What is read from it breaks off.
    struct Resetting;

    impl AsyncRead for Resetting {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
    }

    impl AsyncWrite for Resetting {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_breaks_off_ends_it_while_the_other_side_is_silent() {
        let begun = Instant::now();
        let (_silent, side) = duplex(64);
        let broken = relay(side, Resetting, IDLE, |_, _| {}).await;
        assert!(matches!(broken, Err(RelayError::Origin(_))), "{broken:?}");
        let (_silent, side) = duplex(64);
        let broken = relay(Resetting, side, IDLE, |_, _| {}).await;
        assert!(matches!(broken, Err(RelayError::Client(_))), "{broken:?}");
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_it_and_a_byte_postpones_that() {
        let (mut client, client_side) = duplex(64);
        let (_origin, origin_side) = duplex(64);
        let begun = Instant::now();
        let idle = Duration::from_secs(10);
        let relayed = tokio::spawn(relay(client_side, origin_side, idle, |_, _| {}));
        tokio::time::sleep(Duration::from_secs(6)).await;
        client.write_all(b"ping").await.expect("open");
        let relayed = relayed.await.expect("no panic");
        assert!(matches!(relayed, Err(RelayError::Silent)), "{relayed:?}");
        assert_eq!(begun.elapsed().as_secs(), 16);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_holds_the_writer_back() {
        let (mut client, client_side) = duplex(64);
        let (_origin, origin_side) = duplex(64);
        let relayed = tokio::spawn(relay(client_side, origin_side, IDLE, |_, _| {}));
        let flood = vec![1; 1 << 20];
        let flooded = tokio::time::timeout(Duration::from_secs(5), client.write_all(&flood)).await;
        assert!(flooded.is_err(), "the relay took more than it could pass on");
        relayed.abort();
    }
}
