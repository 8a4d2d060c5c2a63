//! What becomes of one request whose head was understood?
//!
//! Permitted or not; then prepared, sent, and its answer streamed back, or the tunnel upgraded.

use std::sync::Arc;

use http::{Response, StatusCode};
use hyper::body::Incoming;
use outgate_policy::{Denial, Destination};

use super::RequestHead;
use super::body::{ReplyBody, Upload};
use super::expect::{self, Word};
use super::forward::{Underway, forward};
use super::hop_by_hop;
use super::inject::prepare;
use super::reply;
use super::upgrade::{self, Upgrade};
use crate::audit::Record;
use crate::gate::{self, Asked};
use crate::gateway::Gateway;
use crate::snapshot::Environment;
use crate::upstream::{self, Route, UpstreamError};

/// How an exchange goes on once its head is answered.
pub(crate) enum Exchange {
    /// The answer streams to the client.
    Answered(Response<ReplyBody>),
    /// Both sides agreed to speak something else.
    Upgraded(Response<ReplyBody>, Box<Upgrade>),
}

/// Judges and sends one request of a client, and answers it in every case; `record` is finished
/// now or with the answer's body.
pub(crate) async fn run(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    head: RequestHead,
    body: Incoming,
    record: Record,
) -> Exchange {
    let destination = head.destination().clone();
    match attempt(gateway, environment, head, body.into(), record).await {
        Ok(exchange) => exchange,
        Err(denial) => Exchange::Answered(reply::refusal(&denial, Some(&destination))),
    }
}

/// The same, where what is refused or fails is for the caller to tell.
pub(crate) async fn attempt(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    head: RequestHead,
    body: Upload,
    mut record: Record,
) -> Result<Exchange, Denial> {
    let destination = head.destination().clone();
    record.goes_to(&destination, Some(head.scheme()));
    let permit = match gate::permit(head, environment, &mut record) {
        Ok(permit) => permit,
        Err(denial) => {
            note_refusal(record, &denial);
            return Err(denial);
        }
    };
    let (head, snapshot, injections) = permit.into_parts();
    let asked = head.websocket.then(|| Asked::of(&head, &injections));
    let (hold, release) = match head.expects_continue {
        true => Some(expect::hold(gateway.limits().continue_wait)).unzip(),
        false => (None, None),
    };
    let (request, framing) = prepare(head, injections, body, hold);
    let route =
        Route { environment, snapshot: &snapshot, destination: &destination, framing: &framing };
    let upload = request.body().progress();
    let sent = upstream::send(gateway, &route, request, release.as_ref(), &mut record).await;
    if let Some(release) = release {
        release.say(Word::Final);
    }
    match sent {
        Ok((response, lease)) => {
            let underway = Underway { record, lease, environment: Arc::clone(environment), upload };
            settle(response, underway, asked, &destination)
        }
        Err(error) => {
            record.moved(upload.bytes(), 0);
            Err(failed(record, &error, &destination))
        }
    }
}

/// The answer to a request that is refused, and its audit line.
pub(crate) fn refuse(
    record: Record,
    denial: &Denial,
    destination: Option<&Destination>,
) -> Response<ReplyBody> {
    note_refusal(record, denial);
    reply::refusal(denial, destination)
}

/// Writes the line of a request that is refused.
pub(crate) fn note_refusal(mut record: Record, denial: &Denial) {
    record.refused(denial.reason);
    record.finish();
}

/// Writes the line of a request that was permitted but could not be served.
fn failed(mut record: Record, error: &UpstreamError, destination: &Destination) -> Denial {
    error.note(&mut record);
    record.finish();
    error.denial(destination)
}

fn settle(
    response: Response<Incoming>,
    underway: Underway,
    asked: Option<Asked>,
    destination: &Destination,
) -> Result<Exchange, Denial> {
    if !hop_by_hop::is_at_most_chunked(response.headers()) {
        let what = "an answer in a transfer coding other than chunked".to_owned();
        let error = UpstreamError::Protocol(what);
        return Err(failed(underway.record, &error, destination));
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Exchange::Answered(forward(response, underway)));
    }
    if let Some(asked) = asked.filter(|_| upgrade::is_agreed(&response)) {
        let (response, upgrade) = upgrade::accept(response, underway, asked);
        return Ok(Exchange::Upgraded(response, Box::new(upgrade)));
    }
    let error = UpstreamError::Protocol("switched to a protocol that nobody asked for".to_owned());
    Err(failed(underway.record, &error, destination))
}
