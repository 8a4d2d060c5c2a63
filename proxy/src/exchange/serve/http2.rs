//! How is HTTP/2 served on a client connection?
//!
//! Every stream is a request of its own, judged by itself: one that is refused leaves the others
//! alone. What a client may pile up is bounded by windows, streams, header lists and resets.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outgate_policy::{Denial, Reason};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Service;
use super::ledger::Ledger;
use super::watched::Watched;
use crate::exchange::body::{ReplyBody, Watcher};
use crate::exchange::client_io::Deadlines;
use crate::exchange::pulse::Pulses;
use crate::gateway::Drain;
use crate::limits::{HTTP2_MOST_WINDOW, HTTP2_PING, HTTP2_PONG, Limits};

/// What a stream may send before its request is read on: the memory of a stalled upload.
const STREAM_WINDOW: u32 = 64 << 10;
/// What waits in memory for a client that reads slowly, for each stream.
const SEND_BUFFER: usize = 128 << 10;
/// Streams reset by the client before they were answered, at a time (CVE-2023-44487).
const PENDING_RESETS: usize = 32;
/// Streams that we had to reset for the client's faults before the connection is closed.
const FAULTY_STREAMS: usize = 256;

/// Serves HTTP/2 on `io` until it ends.
pub(crate) async fn http2<IO, S>(
    io: IO,
    service: &Arc<S>,
    deadlines: Deadlines,
    limits: &Limits,
    mut drain: Drain,
) -> hyper::Result<()>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let pulse = Pulses::default();
    let ledger = Ledger::default();
    let io = TokioIo::new(Watched::new(io, ledger.clone()));
    let (streams, opened) = (pulse.clone(), ledger.clone());
    let accountant = Arc::clone(service);
    let answer = service_fn(move |request| {
        opened.served();
        answer(Arc::clone(service), request, &streams)
    });
    let mut connection = pin!(builder(limits, pulse.clone()).serve_connection(io, answer));
    let mut stopped = pin!(pulse.stopped(deadlines.idle, deadlines.stalled));
    let mut late = pin!(ledger.late_head(limits.request_head));
    let mut ending = false;
    let result = loop {
        tokio::select! {
            biased;
            result = &mut connection => break result,
            denial = ledger.refused() => accountant.unread(&denial).await,
            // Inside a head nothing else can be read: the other streams stand still too.
            denial = &mut late => {
                accountant.unread(&denial).await;
                break Ok(());
            }
            () = drain.begun(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
                // It waits for a word of the client's, which may be gone for good.
                stopped.set(pulse.stopped(LAST_WORDS, deadlines.stalled));
            }
            // The first time it is asked to end; if nothing moves even then, it is cut.
            () = &mut stopped => {
                if ending {
                    break Ok(());
                }
                ending = true;
                connection.as_mut().graceful_shutdown();
                stopped.set(pulse.stopped(LAST_WORDS, LAST_WORDS));
            }
        }
    };
    while let Some(denial) = ledger.next_refused() {
        accountant.unread(&denial).await;
    }
    if let Some(denial) = result.as_ref().err().and_then(fault_of_client) {
        accountant.unread(&denial).await;
    }
    result
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, Infallible>> + Send>>;

/// The answer to the request of one stream; both live while it moves.
fn answer<S: Service>(service: Arc<S>, mut request: Request<Incoming>, pulse: &Pulses) -> Answer {
    let stream = pulse.stream();
    request.extensions_mut().insert(stream.pulse());
    Box::pin(async move {
        let response = service.answer(request).await;
        Ok(response.map(|body| body.watched(Watcher::Http2(stream))))
    })
}

/// Why the codec closed the connection, where it was for what the client sent.
fn fault_of_client(error: &hyper::Error) -> Option<Denial> {
    let cause = std::error::Error::source(error)?.downcast_ref::<h2::Error>()?;
    let ours = cause.is_go_away() && cause.is_library();
    ours.then(|| {
        Denial::new(Reason::MalformedRequest, format!("the connection was closed: {cause}"))
    })
}

/// How long a connection that was told to end may take for it.
const LAST_WORDS: Duration = Duration::from_secs(5);

fn builder(limits: &Limits, tasks: Pulses) -> Builder<Pulses> {
    let streams = u32::try_from(limits.streams).unwrap_or(u32::MAX);
    let mut builder = Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(streams)
        .initial_stream_window_size(STREAM_WINDOW)
        // All streams' windows at once: one stalled upload takes nothing from the others.
        .initial_connection_window_size(
            STREAM_WINDOW.saturating_mul(streams).min(HTTP2_MOST_WINDOW),
        )
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(limits.request_head_bytes).unwrap_or(u32::MAX))
        .enable_connect_protocol()
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(FAULTY_STREAMS)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HTTP2_PONG);
    builder
}
