//! How is one request put on a connection, and what if that fails?

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use outgate_policy::{Destination, Scheme};

use super::connect::connect;
use super::error::UpstreamError;
use super::frame::Framing;
use super::lease::{Lease, SendError};
use super::pool::{Offer, Origin};
use super::profile::OriginClient;
use super::websocket;
use crate::audit::{Milestone, Record};
use crate::exchange::body::{Progress, RequestBody};
use crate::exchange::expect::Release;
use crate::exchange::reply::Dialect;
use crate::gateway::Gateway;
use crate::snapshot::{Environment, Snapshot};

/// Where a permitted request goes, under which rules, and what its framing depends on.
pub(crate) struct Route<'a> {
    pub(crate) environment: &'a Arc<Environment>,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) destination: &'a Destination,
    pub(crate) profile: &'a OriginClient,
    pub(crate) framing: &'a Framing,
}

/// Sends `request` and waits for the head of its answer.
pub(crate) async fn send(
    gateway: &Gateway,
    route: &Route<'_>,
    mut request: Request<RequestBody>,
    release: Option<&Release>,
    record: &mut Record,
) -> Result<(Response<Incoming>, Lease), UpstreamError> {
    let origin = route.origin(route.offer(route.framing.by_http2));
    let upload = request.body().progress();
    let mut pooled = true;
    loop {
        let mut lease;
        if let Some(handshake) = &route.framing.websocket {
            let leasing = websocket::lease(gateway, route, handshake, pooled, record);
            (lease, pooled) = Box::pin(leasing).await?;
        } else {
            let reused = match pooled {
                true => route.environment.pool.take(&origin, &route.snapshot.addresses).await,
                false => None,
            };
            pooled = reused.is_some();
            lease = match reused {
                Some(lease) => lease,
                // Boxed: a handshake's state is large, and most requests need none.
                None => Box::pin(connect(gateway, route, origin.clone(), record)).await?,
            };
        }
        if route.framing.dialect == Dialect::Grpc && matches!(lease, Lease::Exclusive(..)) {
            route.environment.pool.give_back(lease);
            return Err(UpstreamError::OnlyHttp1);
        }
        record.dialled(lease.peer());
        let spare = if pooled { copy_if_harmless(&request) } else { None };
        let sent = tokio::select! {
            sent = lease.send(route.framing, request, release) => sent,
            waited = answer_late(&upload, gateway.limits().response_head) => {
                return Err(UpstreamError::Timeout(waited));
            }
        };
        match sent {
            Ok(response) => {
                record.reached(Milestone::Answered);
                check_count(&response, gateway.limits().headers)?;
                return Ok((response, lease));
            }
            // A connection that had rested may have been closed under our hands: once more, on a
            // fresh one, if not one byte was sent or if saying it twice does nothing twice.
            Err(SendError::Broken(mut failed)) => match failed.take_message().or(spare) {
                Some(unsent) if pooled => {
                    request = unsent;
                    pooled = false;
                }
                _ => return Err(why(&upload, &failed.into_error())),
            },
            Err(SendError::Flood) => {
                return Err(UpstreamError::Protocol("a flood of interim answers".to_owned()));
            }
        }
    }
}

/// Over HTTP/2 the codec tells nothing of an upload that failed.
fn why(upload: &Progress, error: &hyper::Error) -> UpstreamError {
    match upload.breach() {
        Some(breach) => UpstreamError::Upload(breach),
        None => UpstreamError::of_exchange(error),
    }
}

impl Route<'_> {
    pub(super) fn origin(&self, offer: Offer) -> Origin {
        let scheme = self.framing.scheme;
        let profile = self.profile.id_for(scheme);
        let trail = self.framing.trail.clone();
        Origin { scheme, destination: self.destination.clone(), offer, profile, trail }
    }

    /// What is offered where HTTP/2 would do: in clear text it needs to be known.
    pub(super) fn offer(&self, known_http2: bool) -> Offer {
        match self.framing.scheme {
            Scheme::Https => Offer::Either,
            Scheme::Http if known_http2 => Offer::Http2,
            Scheme::Http => Offer::Http1,
        }
    }
}

/// Bounds the fields of an HTTP/2 answer, which its codec bounds by size alone.
fn check_count(response: &Response<Incoming>, most: usize) -> Result<(), UpstreamError> {
    let fields = response.headers().len();
    if fields <= most {
        return Ok(());
    }
    Err(UpstreamError::Protocol(format!("an answer with {fields} headers, more than {most}")))
}

/// A copy to send again, if the request is idempotent (RFC 9110 §9.2.2) and carries no body.
fn copy_if_harmless(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let harmless = [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE];
    if !harmless.contains(request.method()) {
        return None;
    }
    let mut copy = Request::new(request.body().empty_copy()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Ready when the answer is overdue. The wait begins when the upload ends; while it moves, there
/// is nothing to wait for.
async fn answer_late(upload: &Progress, limit: Duration) -> Duration {
    let mut seen = 0;
    loop {
        let uploading = !upload.is_finished();
        tokio::time::sleep(limit).await;
        let moved = upload.bytes();
        if !uploading || (moved == seen && upload.is_on_its_way()) {
            return limit;
        }
        seen = moved;
    }
}
