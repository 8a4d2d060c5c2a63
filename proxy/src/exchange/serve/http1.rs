//! How is HTTP/1.1 served on a client connection?
//!
//! Until it ends in order, passes its deadlines, can't be parsed, or an answer hands the socket
//! over for a tunnel or another protocol.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use outgate_policy::{Denial, Reason};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Ended, Service};
use crate::exchange::body::Watcher;
use crate::exchange::client_io::{ClientIo, Deadlines, Expired};
use crate::gateway::Drain;
use crate::ingress::prefixed::Prefixed;
use crate::limits::Limits;

/// Serves HTTP/1.1 on `io` until it ends, and gives the socket back.
pub(crate) async fn http1<IO, S>(
    io: IO,
    service: &Arc<S>,
    deadlines: Deadlines,
    limits: &Limits,
    mut drain: Drain,
) -> (Prefixed<IO>, Ended)
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Service,
{
    let client = ClientIo::new(io, deadlines);
    let turn = client.turn();
    let answer = service_fn(|request| {
        let speaking = turn.speak();
        let service = Arc::clone(service);
        // hyper keeps room for the future in every idle connection: boxed, it is a pointer.
        let answer: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
            let response = service.answer(request).await;
            Ok::<_, Infallible>(response.map(|body| body.watched(Watcher::Http1(speaking))))
        });
        answer
    });
    let mut connection = Builder::new()
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_buf_size(limits.request_head_bytes)
        .preserve_header_case(true)
        .title_case_headers(true)
        .serve_connection(client, answer);
    let mut draining = false;
    let result = loop {
        tokio::select! {
            biased;
            result = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break result,
            () = drain.begun(), if !draining => {
                draining = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let parts = connection.into_parts();
    let ended = match result {
        Ok(()) if parts.io.client_left() => Ended::Left,
        Ok(()) => Ended::Done,
        Err(error) => why(&error, &parts.io, limits),
    };
    (Prefixed::new(parts.read_buf, parts.io.into_inner()), ended)
}

fn why<IO>(error: &hyper::Error, io: &ClientIo<IO>, limits: &Limits) -> Ended {
    let denial = match io.expired() {
        Some(Expired::Head) => Denial::new(
            Reason::RequestTimeout,
            format!("the request head was not complete within {:?}", limits.request_head),
        ),
        None if error.is_parse_too_large() => Denial::new(
            Reason::HeadTooLarge,
            format!(
                "the request head has more than {} bytes or {} headers",
                limits.request_head_bytes, limits.headers
            ),
        ),
        // HTTP/2's preface is an error of its own, without an answer of hyper's.
        None if io.held_back() || error.is_parse() => {
            Denial::new(Reason::MalformedRequest, format!("this is not HTTP/1.1: {error}"))
        }
        Some(Expired::Idle | Expired::Stalled) | None => return Ended::Done,
    };
    Ended::Refused(denial)
}
