//! What becomes of one request whose head was understood?
//!
//! Permitted or not; then prepared, sent, and its answer streamed back, or the tunnel upgraded.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use outgate_credentials::Applied;
use outgate_policy::{Denial, Destination};
use smallvec::SmallVec;

use super::RequestHead;
use super::body::{Progress, ReplyBody, Upload};
use super::expect::{self, Word};
use super::forward::{Underway, forward};
use super::handshake::Outcome;
use super::hop_by_hop;
use super::inject::prepare;
use super::reply::{self, Dialect};
use super::reserved;
use super::scrubbed::{self, Scrubbing};
use super::sign::sign;
use super::substitution;
use super::upgrade::{self, Upgrade};
use crate::audit::Record;
use crate::gate::{self, Asked, RequestPermit, WayBack};
use crate::gateway::Gateway;
use crate::snapshot::Environment;
use crate::upstream::{self, Lease, Route, UpstreamError};

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
    let (destination, dialect) = (head.destination().clone(), head.dialect());
    match attempt(gateway, environment, head, body.into(), record).await {
        Ok(exchange) => exchange,
        Err(denial) => Exchange::Answered(reply::refusal(&denial, Some(&destination), dialect)),
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
    let permitted = permit(gateway, environment, head, body, &mut record).await;
    let Permitted { permit, body, again, asked } = match permitted {
        Ok(permitted) => permitted,
        Err(denial) => {
            note_refusal(record, &denial);
            return Err(denial);
        }
    };
    let (permit, body) = match permit.is_to_be_signed() {
        false => (permit, body),
        true => match Box::pin(sign(gateway, environment, permit, body, &mut record)).await {
            Ok(signed) => signed,
            Err(denial) => {
                note_refusal(record, &denial);
                return Err(denial);
            }
        },
    };
    let Sent { outcome, upload, way_back } = match again {
        None => dispatch(gateway, environment, permit, body, &mut record).await,
        Some(again) => {
            let both = (permit, *again);
            Box::pin(dispatch_again(gateway, environment, both, body, &mut record)).await
        }
    };
    match outcome {
        Ok((response, lease)) => {
            let underway = Underway { record, lease, environment: Arc::clone(environment), upload };
            settle(response, underway, (asked, way_back), &destination)
        }
        Err(error) => {
            record.moved(upload.bytes(), 0);
            if let Some(denial) = upload.note(&mut record) {
                note_refusal(record, denial);
                return Err(denial.clone());
            }
            Err(failed(record, &error, &destination))
        }
    }
}

/// A request that may be sent.
struct Permitted {
    permit: RequestPermit,
    /// Its body, with values in place of placeholders.
    body: Upload,
    /// The request once more, where an origin that refuses it may be sent another token. It is
    /// judged again then: what is in force may be something else by that time.
    again: Option<Box<RequestHead>>,
    /// For what goes on after its answer.
    asked: Option<Asked>,
}

/// What came of sending it.
struct Sent {
    outcome: Result<(Response<Incoming>, Lease), UpstreamError>,
    upload: Arc<Progress>,
    /// What is to be done with its answer.
    way_back: WayBack,
}

async fn permit(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    head: RequestHead,
    body: Upload,
    record: &mut Record,
) -> Result<Permitted, Denial> {
    let search = substitution::search(gateway, environment, &body);
    let permit = gate::permit(head, environment, record)?;
    let asked = permit.asked();
    if permit.is_complete() && search.is_none() {
        return Ok(Permitted { permit, body, again: None, asked });
    }
    // Only what has no body can be sent a second time.
    let may_be_renewed = permit.may_be_renewed() && body.is_end_stream();
    let again = may_be_renewed.then(|| Box::new(permit.head().clone()));
    // Boxed: most requests need none of it.
    let equipping = gate::equip(permit, gateway.credentials(), environment, record);
    let mut permit = Box::pin(equipping).await?;
    let asked = asked.map(|asked| asked.with(&permit));
    let body = match search {
        None => body,
        Some(search) => {
            let both = (body, search);
            let substituted =
                substitution::substituted(gateway, environment, &mut permit, both, record);
            Box::pin(substituted).await?
        }
    };
    Ok(Permitted { permit, body, again, asked })
}

async fn dispatch(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    mut permit: RequestPermit,
    body: Upload,
    record: &mut Record,
) -> Sent {
    let entry = permit.entry();
    let way_back = permit.way_back();
    let (head, snapshot, injections) = permit.into_parts();
    let destination = head.destination().clone();
    let (hold, release) = match head.expects_continue {
        true => Some(expect::hold(gateway.limits().continue_wait)).unzip(),
        false => (None, None),
    };
    let (request, framing) = prepare(head, injections, body, hold);
    let profile = environment.origin_client(&snapshot, entry);
    let (snapshot, destination, framing) = (&*snapshot, &destination, &framing);
    let route = Route { environment, snapshot, destination, profile, framing };
    let upload = request.body().progress();
    let outcome = upstream::send(gateway, &route, request, release.as_ref(), record).await;
    if let Some(release) = release {
        release.say(Word::Final);
    }
    Sent { outcome, upload, way_back }
}

/// Sends the request once more when the origin refuses it for its token, there is another one, and
/// it may leave still. Whatever the answer to that is, it is the client's.
async fn dispatch_again(
    gateway: &Gateway,
    environment: &Arc<Environment>,
    (first, head): (RequestPermit, RequestHead),
    body: Upload,
    record: &mut Record,
) -> Sent {
    let applied = SmallVec::<[Applied; 1]>::from(first.applied());
    let sent = dispatch(gateway, environment, first, body, record).await;
    let is_refused =
        |(response, _): &(Response<Incoming>, _)| response.status() == StatusCode::UNAUTHORIZED;
    if !sent.outcome.as_ref().is_ok_and(is_refused)
        || !gateway.credentials().refused(&applied).await
    {
        return sent;
    }
    let equipped = match gate::permit(head, environment, record) {
        Ok(second) => gate::equip(second, gateway.credentials(), environment, record).await,
        Err(denial) => Err(denial),
    };
    let nothing = Upload::from(Bytes::new());
    let signed = match equipped {
        Ok(permit) => sign(gateway, environment, permit, nothing, record).await,
        Err(denial) => Err(denial),
    };
    match signed {
        Ok((permit, nothing)) => {
            let Sent { way_back: before, .. } = sent;
            let sent = dispatch(gateway, environment, permit, nothing, record).await;
            Sent { way_back: sent.way_back.and(before), ..sent }
        }
        // What the origin said is the better answer.
        Err(_) => sent,
    }
}

/// The answer to a request that is refused, and its audit line.
pub(crate) fn refuse(
    record: Record,
    denial: &Denial,
    destination: Option<&Destination>,
    dialect: Dialect,
) -> Response<ReplyBody> {
    note_refusal(record, denial);
    reply::refusal(denial, destination, dialect)
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
    mut underway: Underway,
    (asked, way_back): (Option<Asked>, WayBack),
    destination: &Destination,
) -> Result<Exchange, Denial> {
    if !hop_by_hop::is_at_most_chunked(response.headers()) {
        let what = "an answer in a transfer coding other than chunked".to_owned();
        let error = UpstreamError::Protocol(what);
        return Err(failed(underway.record, &error, destination));
    }
    let (mut head, incoming) = response.into_parts();
    reserved::strip(&mut head);
    if way_back.drop_set_cookie {
        scrubbed::drop_cookies(&mut head.headers);
    }
    let mut scrubbing = None;
    if let Some(sought) = way_back.sought {
        match Scrubbing::begin(&mut head, &sought, &underway.environment) {
            Ok(begun) => {
                underway.record.reflected(begun.found());
                scrubbing = Some(Box::new(begun));
            }
            Err(why) => return Err(failed(underway.record, &why.into(), destination)),
        }
    }
    let response = Response::from_parts(head, incoming);
    match (upgrade::outcome(asked.as_ref(), &underway.upload, &response), asked) {
        (Outcome::Begun, Some(asked)) => {
            let (response, upgrade) = upgrade::accept(response, underway, asked);
            Ok(Exchange::Upgraded(response, Box::new(upgrade)))
        }
        (Outcome::Broken(what), _) => {
            let error = UpstreamError::Protocol(what.to_owned());
            Err(failed(underway.record, &error, destination))
        }
        (Outcome::Begun | Outcome::Declined, _) => {
            let (head, incoming) = response.into_parts();
            Ok(Exchange::Answered(forward(head, incoming, underway, scrubbing)))
        }
    }
}
