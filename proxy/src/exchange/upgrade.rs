//! How does a WebSocket pass?
//!
//! Bytes are relayed only after the origin has agreed to the very protocol that the client asked
//! for. Until then everything on the connection is HTTP and is judged.

use std::sync::Arc;

use http::header::{self, HeaderName};
use http::{Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{Progress, ReplyBody};
use super::forward::Underway;
use super::handshake::Outcome;
use super::hop_by_hop;
use super::serve;
use super::switched::Switched;
use super::websocket::{Messages, Searched};
use crate::audit::Record;
use crate::gate::{self, Asked};
use crate::gateway::Gateway;
use crate::snapshot::Environment;
use crate::tunnel::relay::{RelayError, relay};
use crate::upstream::Lease;

/// An agreed upgrade, waiting for the client's side of the connection.
pub(crate) struct Upgrade {
    origin: OnUpgrade,
    lease: Lease,
    record: Record,
    environment: Arc<Environment>,
    asked: Arc<Asked>,
}

/// What the origin's answer means to who asked so, if anybody asked for a WebSocket, and has said
/// all that belongs to its request.
pub(super) fn outcome(
    asked: Option<&Asked>,
    upload: &Progress,
    response: &Response<Incoming>,
) -> Outcome {
    let Some(asked) = asked else {
        return match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                Outcome::Broken("switched to a protocol that nobody asked for")
            }
            _ => Outcome::Declined,
        };
    };
    match asked.handshake().outcome(response) {
        // RFC 9110 §7.8. The rest would be read as frames here and as a body there.
        Outcome::Begun if !upload.is_finished() => {
            Outcome::Broken("switched to a WebSocket before the request had ended")
        }
        // None was offered, where messages are read.
        Outcome::Begun
            if asked.messages().is_some()
                && response.headers().contains_key(header::SEC_WEBSOCKET_EXTENSIONS) =>
        {
            Outcome::Broken("agreed to an extension of WebSocket that was not offered")
        }
        outcome => outcome,
    }
}

/// The answer that tells the client, and what comes after it.
pub(super) fn accept(
    mut response: Response<Incoming>,
    underway: Underway,
    asked: Asked,
) -> (Response<ReplyBody>, Upgrade) {
    let Underway { mut record, lease, environment, .. } = underway;
    record.origin_speaks(response.version());
    let origin = hyper::upgrade::on(&mut response);
    let mut headers = std::mem::take(response.headers_mut());
    hop_by_hop::strip(&mut headers);
    headers.remove(header::CONTENT_LENGTH);
    // It would lead to QUIC, around the gateway.
    headers.remove(HeaderName::from_static("alt-svc"));
    let status = asked.handshake().told(&mut headers, response.version() == Version::HTTP_2);
    record.answered(status.as_u16());
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    (reply, Upgrade { origin, lease, record, environment, asked: Arc::new(asked) })
}

/// Relays both ways until both sides are done or silent for too long, or must not go on.
pub(crate) async fn splice<IO: AsyncRead + AsyncWrite + Unpin>(
    upgrade: Upgrade,
    client: IO,
    gateway: &Gateway,
) {
    let (limits, credentials) = (gateway.limits(), gateway.credentials());
    let Upgrade { asked, environment, .. } = &upgrade;
    let most = limits.websocket_message_bytes;
    match Messages::of(asked, credentials, environment, most) {
        None => {
            let mut client = client;
            let (record, end) = upgrade.relayed(&mut client, gateway).await;
            finish(record, end);
        }
        Some(messages) => {
            let mut client = Searched::new(client, messages);
            let (mut record, end) = Box::pin(upgrade.relayed(&mut client, gateway)).await;
            // What it was refused for says more than how it ended.
            let refused = client.into_refused(&mut record);
            finish(record, end);
            if let Some(client) = refused {
                // It is to read why.
                serve::close(client).await;
            }
        }
    }
}

/// How a relay ended that should have been.
#[derive(Debug, thiserror::Error)]
enum UpgradeError {
    #[error(transparent)]
    Relay(#[from] RelayError),
    #[error("the origin did not switch: {0}")]
    NotSwitched(hyper::Error),
    #[error("the origin did not switch in time")]
    Late,
}

fn finish(mut record: Record, end: Result<(), UpgradeError>) {
    if let Err(error) = end {
        record.error(error.to_string());
    }
    record.finish();
}

impl Upgrade {
    /// Relays, and gives the record of it, and how it ended.
    async fn relayed<IO>(
        self,
        client: &mut IO,
        gateway: &Gateway,
    ) -> (Record, Result<(), UpgradeError>)
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let (limits, credentials) = (gateway.limits(), gateway.credentials());
        let Upgrade { origin, mut lease, mut record, environment, asked } = self;
        let origin = match tokio::time::timeout(limits.origin_handshake, origin).await {
            Ok(Ok(origin)) => Switched::new(origin),
            Ok(Err(error)) => return (record, Err(UpgradeError::NotSwitched(error))),
            Err(_) => return (record, Err(UpgradeError::Late)),
        };
        let peer = lease.peer();
        lease.upgraded();
        let note = |up, down| record.moved(up, down);
        let relayed = tokio::select! {
            relayed = relay(client, origin, limits.idle_upgraded, note) => relayed,
            () = gate::revoked(&environment, credentials, &asked, peer) => Err(RelayError::Revoked),
        };
        (record, relayed.map_err(UpgradeError::from))
    }

    /// Ends it: the client did not wait for its side.
    pub(crate) fn give_up(mut self) {
        self.record.error("the client left before the answer");
        self.record.finish();
    }
}
