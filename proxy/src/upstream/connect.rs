//! How is a fresh connection to an origin made?
//!
//! Pinned addresses, a dialled socket, TLS verified for the judged name, then HTTP/1.1 or HTTP/2:
//! by what was offered, and by what the origin chose of it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use outgate_policy::{Destination, Scheme};
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::UpstreamError;
use super::lease::{Exclusive, Lease, Shared};
use super::pool::{Offer, Origin};
use super::reach::{Peer, reach, turn};
use super::send::Route;
use super::settings::{self, Said, Settings};
use super::tls::secure;
use crate::audit::{Milestone, Record};
use crate::exchange::body::RequestBody;
use crate::gateway::Gateway;
use crate::limits::{HTTP2_MOST_WINDOW, HTTP2_PING, HTTP2_PONG, Limits};

/// What an origin may send on one stream before its client reads on.
const STREAM_WINDOW: u32 = 256 << 10;

/// A fresh connection to `origin`; one that others may share is in the pool when this returns.
pub(super) async fn connect(
    gateway: &Gateway,
    route: &Route<'_>,
    origin: Origin,
    record: &mut Record,
) -> Result<Lease, UpstreamError> {
    let Destination { host, .. } = route.destination;
    let limits = gateway.limits();
    let turn = turn(route.environment, limits).await?;
    let rules = &route.snapshot.addresses;
    let (stream, peer) = reach(gateway, route.destination, rules, &origin.trail).await?;
    drop(turn);
    record.dialled(peer);
    record.reached(Milestone::Connected);
    if origin.scheme == Scheme::Http {
        return match origin.offer {
            Offer::Http2 => share(stream, peer, route, &origin, limits).await,
            Offer::Http1 | Offer::Either => exclusive(stream, peer, origin, limits).await,
        };
    }
    let session = secure(stream, host, route.profile, origin.offer, limits).await?;
    record.reached(Milestone::Secured);
    match session.get_ref().1.alpn_protocol() {
        Some(b"h2") => share(session, peer, route, &origin, limits).await,
        _ => exclusive(session, peer, origin, limits).await,
    }
}

/// Starts HTTP/1.1; a task of its own drives the connection.
async fn exclusive<IO>(
    io: IO,
    peer: Peer,
    origin: Origin,
    limits: &Limits,
) -> Result<Lease, UpstreamError>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_headers(limits.headers)
        .max_buf_size(limits.request_head_bytes)
        // Picky origins compare names by case; names of our own are written the usual way.
        .preserve_header_case(true)
        .title_case_headers(true)
        .handshake::<_, RequestBody>(TokioIo::new(io))
        .await
        .map_err(|error| UpstreamError::of_exchange(&error))?;
    // Its errors reach whoever waits for an answer; an idle connection that ends concerns nobody.
    let task = tokio::spawn(async move { drop(connection.with_upgrades().await) });
    let connection = Exclusive::new(sender, task.abort_handle(), peer);
    Ok(Lease::Exclusive(connection, origin))
}

/// Starts HTTP/2, and lets the environment's other requests use it too.
async fn share<IO>(
    io: IO,
    peer: Peer,
    route: &Route<'_>,
    origin: &Origin,
    limits: &Limits,
) -> Result<Lease, UpstreamError>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams = u32::try_from(limits.streams).unwrap_or(u32::MAX);
    let settings = Settings::default();
    let (sender, connection) = http2::Builder::new(settings.clone())
        .timer(TokioTimer::new())
        .initial_max_send_streams(settings::UNHEARD)
        .initial_stream_window_size(STREAM_WINDOW)
        // All streams' windows at once: one client that reads slowly holds up no other.
        .initial_connection_window_size(
            STREAM_WINDOW.saturating_mul(streams).min(HTTP2_MOST_WINDOW),
        )
        .max_header_list_size(u32::try_from(limits.request_head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HTTP2_PONG)
        .handshake::<_, RequestBody>(TokioIo::new(io))
        .await
        .map_err(|error| UpstreamError::of_exchange(&error))?;
    // It alone knows how many streams the origin takes, so the task can't have it for itself.
    let connection = Arc::new(Mutex::new(Some(connection)));
    let asked = Arc::downgrade(&connection);
    settings.are_said_by(move || match asked.upgrade() {
        Some(connection) => said(&connection),
        None => Said::NOTHING,
    });
    let task = tokio::spawn(poll_fn(move |cx| {
        let mut place = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(connection) = place.as_mut() else { return Poll::Ready(()) };
        let polled = Pin::new(connection).poll(cx).map(drop);
        if polled.is_ready() {
            // Requests that still wait in it learn of its end by its drop.
            *place = None;
        }
        polled
    }));
    let connection = Shared::new(sender, task.abort_handle(), peer, settings);
    Ok(route.environment.pool.share(connection, origin))
}

/// An HTTP/2 connection until it ends.
type Driven<IO> = Mutex<Option<http2::Connection<TokioIo<IO>, RequestBody, Settings>>>;

fn said<IO>(connection: &Driven<IO>) -> Said
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.as_ref().map_or(Said::NOTHING, |connection| Said {
        streams: connection.current_max_send_streams(),
        websockets: connection.is_extended_connect_protocol_enabled(),
    })
}
