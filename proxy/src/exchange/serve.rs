//! How are requests read off a client connection, and how does it end?
//!
//! hyper parses and frames. `http1` and `http2` drive it: deadlines, drain, and for HTTP/1.1 the
//! hand-over of the socket and a readable refusal for what can't be parsed. Either way the close
//! lets the client read the last answer.

mod frames;
mod http1;
mod http2;
mod ledger;
mod watched;

use http::{Request, Response};
use hyper::body::Incoming;
use outgate_policy::Denial;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) use self::http1::http1;
pub(crate) use self::http2::http2;
use super::body::ReplyBody;
use super::reply::raw_refusal;
use crate::limits::{LINGER, LINGER_BYTES};

/// What answers the requests of one connection.
pub(crate) trait Service: Send + Sync + 'static {
    /// The answer to one request.
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<ReplyBody>> + Send;

    /// Keeps account of an HTTP/2 request that was refused before it could be read as one.
    fn unread(&self, _why: &Denial) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// How HTTP on a connection ended.
pub(crate) enum Ended {
    /// In order. If an answer handed the socket over, it is the time now.
    Done,
    /// The client has closed its side, and waits for nothing.
    Left,
    /// By something the client is owed a sentence for.
    Refused(Denial),
}

/// Tells the client why, then closes.
pub(crate) async fn refuse_and_close<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: IO,
    denial: &Denial,
) {
    let told = tokio::time::timeout(LINGER, io.write_all(&raw_refusal(denial))).await;
    if matches!(told, Ok(Ok(()))) {
        close(io).await;
    }
}

/// Ends our side, then reads a little more: closing a socket with unread input resets it, and the
/// client could not read our last answer.
pub(crate) async fn close<IO: AsyncRead + AsyncWrite + Unpin>(mut io: IO) {
    let lingering = async {
        io.shutdown().await?;
        let mut left = LINGER_BYTES;
        // On the heap: this future is part of every connection's, and few get here.
        let mut thrown_away = vec![0; 4096];
        while left > 0 {
            match io.read(&mut thrown_away).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        std::io::Result::Ok(())
    };
    // Whatever goes wrong now, the socket is closed when this returns.
    drop(tokio::time::timeout(LINGER, lingering).await);
}
