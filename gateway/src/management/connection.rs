//! How many may call, and how long may one take?

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio::time;

use super::reserve::{Door, Reserve};

/// Callers at a time: supervisors and people. The next one waits in the backlog.
const CONNECTIONS: usize = 64;
/// A request's head, and the silence between two requests: probes come every few seconds.
const HEAD: Duration = Duration::from_secs(10);
/// A connection as a whole, so that one that trickles its body holds no place for ever. Hooks of a
/// tool call may take ten minutes each.
const CONNECTION: Duration = Duration::from_secs(3600);
/// Heads are small here: a key and a few names.
const HEAD_BYTES: usize = 16 << 10;

/// Serves every caller until `stop` turns true or its sender is gone.
pub(super) async fn accept<D: Door>(
    door: D,
    reserve: Reserve,
    api: Router,
    mut stop: watch::Receiver<bool>,
) {
    let reserve = Arc::new(reserve);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, reserve.accept(&door).await)
        };
        let (place, io) = tokio::select! {
            accepted = next => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let exchange = answer(io, api.clone());
        let reserve = Arc::clone(&reserve);
        tokio::spawn(async move {
            exchange.await;
            reserve.fill();
            drop(place);
        });
    }
}

async fn answer<Io>(io: Io, api: Router)
where
    Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(api));
    match time::timeout(CONNECTION, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a management connection ended early"),
        Err(_) => tracing::debug!("a management connection took too long"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    /// What a caller who sends `text` and then nothing reads, and how long that takes.
    async fn silent_after(text: &str) -> (String, Duration) {
        let (mut caller, io) = duplex(HEAD_BYTES);
        let api = Router::new().route("/", axum::routing::get(async || "here"));
        tokio::spawn(answer(io, api));
        caller.write_all(text.as_bytes()).await.unwrap();
        let began = Instant::now();
        let mut read = String::new();
        caller.read_to_string(&mut read).await.unwrap();
        (read, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_never_ends_its_head_is_cut() {
        for text in ["", "GET / HTTP/1.1\r\nx: "] {
            let (read, took) = silent_after(text).await;
            assert!(!read.contains("200"), "{read}");
            assert!(took <= HEAD + Duration::from_secs(1), "{text}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_not_used_any_more_is_closed() {
        let (read, took) = silent_after("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(read.ends_with("here"), "{read}");
        assert!(took <= HEAD + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_cut() {
        let head = "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n";
        let (_, took) = silent_after(head).await;
        assert!(took <= CONNECTION + Duration::from_secs(1), "{took:?}");
    }
}
