//! How do questions come in over a connection (RFC 7766)?
//!
//! Many on one connection, each behind its length, answered in their order. A connection is one of
//! its environment's, and ends when it is silent or its client does not take the answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PAUSE;
use super::message::LONGEST;
use crate::gateway::Gateway;
use crate::ingress::interface;
use crate::limits::DNS_IDLE;
use crate::listener::Owner;

/// Answers what comes in by `socket`.
pub(super) async fn answer(
    gateway: Arc<Gateway>,
    owner: Arc<Owner>,
    socket: std::net::TcpListener,
) {
    let registered = socket.set_nonblocking(true).and_then(|()| TcpListener::from_std(socket));
    let socket = match registered {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "a DNS listener can't be served over TCP");
            return;
        }
    };
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, client)) => {
                failing = false;
                connections.spawn(serve(Arc::clone(&gateway), Arc::clone(&owner), stream, client));
            }
            // The client gave up between its SYN and our accept.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !failing {
                    tracing::error!(%error, "DNS connections can't be accepted; trying again");
                }
                failing = true;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one connection until it is closed. Whose it is, is told once: it stays so.
async fn serve(gateway: Arc<Gateway>, owner: Arc<Owner>, stream: TcpStream, client: SocketAddr) {
    let came_by = interface::of(&stream, client);
    let client = client.ip().to_canonical();
    let provenance = gateway.environments().of_connection(&owner, Some(client), Some(came_by));
    let environment = provenance.known();
    let place = match environment {
        Some(environment) => environment.connection(),
        None => gateway.stranger().ok(),
    };
    let Some(_place) = place else { return };
    let environment = environment.map(|environment| &**environment);
    let answer = |message: &[u8]| super::answer(&gateway, environment, message);
    // Without it the second of two answers waits for the client's delayed ACK of the first.
    let served = match stream.set_nodelay(true) {
        Ok(()) => converse(stream, answer).await,
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a DNS connection ended");
    }
}

/// Answers every message in its turn, until one has no answer.
async fn converse<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: IO,
    answer: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> io::Result<()> {
    let mut buffer = [0; LONGEST as usize];
    loop {
        let length = timeout(DNS_IDLE, read(&mut io, &mut buffer)).await??;
        let Some(answer) = answer(&buffer[..length]) else { return Ok(()) };
        let announced = u16::try_from(answer.len()).expect("answers are short");
        let framed = [announced.to_be_bytes().as_slice(), &answer].concat();
        timeout(DNS_IDLE, io.write_all(&framed)).await??;
    }
}

/// One message into the start of `buffer` (RFC 1035 §4.2.2).
async fn read(io: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> io::Result<usize> {
    let length = usize::from(io.read_u16().await?);
    let message = buffer
        .get_mut(..length)
        .ok_or_else(|| io::Error::other(format!("{length} bytes are no DNS question")))?;
    io.read_exact(message).await?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::duplex;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Says every message again.
    async fn serve_echo(io: impl AsyncRead + AsyncWrite + Unpin) -> (io::Result<()>, Duration) {
        let began = Instant::now();
        (converse(io, |message| Some(message.to_vec())).await, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn answers_message_after_message_however_they_are_cut() {
        let (mut client, server) = duplex(64);
        let asking = async {
            for piece in [&b"\0"[..], b"\x03a", b"bc\0\x01d\0", b"\x02ef"] {
                client.write_all(piece).await.expect("it reads");
                sleep(Duration::from_secs(4)).await;
            }
            let mut answers = vec![0; 12];
            client.read_exact(&mut answers).await.expect("answered");
            drop(client);
            answers
        };
        let (answers, (ended, _)) = tokio::join!(asking, serve_echo(server));
        assert_eq!(answers, b"\0\x03abc\0\x01d\0\x02ef");
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    }

    #[tokio::test(start_paused = true)]
    async fn hangs_up_on_a_client_that_does_not_finish_its_question() {
        for begun in [&b""[..], b"\0", b"\0\x05abcd"] {
            let (mut client, server) = duplex(64);
            client.write_all(begun).await.expect("room");
            let (ended, after) = serve_echo(server).await;
            assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
            assert_eq!(after, DNS_IDLE, "{begun:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hangs_up_on_a_client_that_does_not_take_its_answers() {
        let (mut client, server) = duplex(4);
        let asking = async {
            // Until the server reads no more, since it can't write.
            while client.write_all(b"\0\x04abcd").await.is_ok() {}
            client
        };
        let (ended, after) = tokio::select! {
            ended = serve_echo(server) => ended,
            _ = asking => panic!("the server hung up before its deadline"),
        };
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert_eq!(after, DNS_IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn hangs_up_on_what_is_no_question() {
        for (message, answer) in [(&b"\xff\xffabc"[..], Some(Vec::new())), (b"\0\x01a", None)] {
            let (mut client, server) = duplex(64);
            client.write_all(message).await.expect("room");
            let began = Instant::now();
            drop(converse(server, |_| answer.clone()).await);
            assert_eq!(began.elapsed(), Duration::ZERO);
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.expect("closed");
            assert_eq!(rest, b"");
        }
    }
}
