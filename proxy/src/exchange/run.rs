//! What becomes of one request whose head was understood?
//!
//! Permitted or not; then prepared, sent, and its answer streamed back, or the tunnel upgraded.

use std::sync::Arc;

use http::{Response, StatusCode};
use hyper::body::Incoming;
use outgate_policy::{Denial, Destination};

use super::RequestHead;
use super::body::ReplyBody;
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

/// Judges and sends one request; `record` is finished in every case, now or with the body.
pub(crate) async fn run(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    head: RequestHead,
    body: Incoming,
    mut record: Record,
) -> Exchange {
    let destination = head.destination().clone();
    record.goes_to(&destination, Some(head.scheme()));
    let permit = match gate::permit(head, environment, &mut record) {
        Ok(permit) => permit,
        Err(denial) => return Exchange::Answered(refuse(record, &denial, Some(&destination))),
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
            Exchange::Answered(fail(record, &error, &destination))
        }
    }
}

/// The answer to a request that is refused, and its audit line.
pub(crate) fn refuse(
    mut record: Record,
    denial: &Denial,
    destination: Option<&Destination>,
) -> Response<ReplyBody> {
    record.refused(denial.reason);
    record.finish();
    reply::refusal(denial, destination)
}

/// The answer to a request that was permitted but could not be served, and its audit line.
fn fail(
    mut record: Record,
    error: &UpstreamError,
    destination: &Destination,
) -> Response<ReplyBody> {
    let denial = error.denial(destination);
    error.note(&mut record);
    record.finish();
    reply::refusal(&denial, Some(destination))
}

fn settle(
    response: Response<Incoming>,
    underway: Underway,
    asked: Option<Asked>,
    destination: &Destination,
) -> Exchange {
    if !hop_by_hop::is_at_most_chunked(response.headers()) {
        let what = "an answer in a transfer coding other than chunked".to_owned();
        let error = UpstreamError::Protocol(what);
        return Exchange::Answered(fail(underway.record, &error, destination));
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Exchange::Answered(forward(response, underway));
    }
    if let Some(asked) = asked.filter(|_| upgrade::is_agreed(&response)) {
        let (response, upgrade) = upgrade::accept(response, underway, asked);
        return Exchange::Upgraded(response, Box::new(upgrade));
    }
    let error = UpstreamError::Protocol("switched to a protocol that nobody asked for".to_owned());
    Exchange::Answered(fail(underway.record, &error, destination))
}
