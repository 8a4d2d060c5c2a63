//! How does a WebSocket pass?
//!
//! Bytes are relayed only after the origin has answered 101 for the very protocol that the client
//! asked for. Until then everything on the connection is HTTP and is judged.

use std::io;
use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::ReplyBody;
use super::forward::Underway;
use super::hop_by_hop::{self, has_member};
use super::serve;
use super::websocket::{Messages, Searched};
use crate::audit::Record;
use crate::gate::{self, Asked};
use crate::gateway::Gateway;
use crate::snapshot::Environment;
use crate::tunnel::REVOKED;
use crate::tunnel::relay::relay;
use crate::upstream::Lease;

/// An agreed upgrade, waiting for the client's side of the connection.
pub(crate) struct Upgrade {
    origin: OnUpgrade,
    lease: Lease,
    record: Record,
    environment: Arc<Environment>,
    asked: Arc<Asked>,
}

/// RFC 6455 §4.1: the answer names the protocol in both fields, and no extension that nobody asked
/// for: none was, where messages are read.
pub(super) fn is_agreed(response: &Response<Incoming>, asked: &Asked) -> bool {
    let headers = response.headers();
    names_websocket(headers)
        && (asked.messages().is_none() || !headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS))
}

/// Both fields, and no other protocol beside it.
pub(super) fn names_websocket(headers: &HeaderMap) -> bool {
    let mut to = headers.get_all(header::UPGRADE).iter();
    let only = match (to.next(), to.next()) {
        (Some(only), None) => only.as_bytes(),
        _ => return false,
    };
    only.eq_ignore_ascii_case(b"websocket") && has_member(headers, &header::CONNECTION, "upgrade")
}

/// The 101 for the client, and what comes after it.
pub(super) fn accept(
    mut response: Response<Incoming>,
    underway: Underway,
    asked: Asked,
) -> (Response<ReplyBody>, Upgrade) {
    let Underway { mut record, lease, environment, .. } = underway;
    record.answered(StatusCode::SWITCHING_PROTOCOLS.as_u16());
    record.origin_speaks(response.version());
    let origin = hyper::upgrade::on(&mut response);
    let mut headers = std::mem::take(response.headers_mut());
    hop_by_hop::strip(&mut headers);
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
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
            upgrade.relayed(&mut client, gateway).await.finish();
        }
        Some(messages) => {
            let mut client = Searched::new(client, messages);
            let mut record = Box::pin(upgrade.relayed(&mut client, gateway)).await;
            let refused = client.into_refused(&mut record);
            record.finish();
            if let Some(client) = refused {
                // It is to read why.
                serve::close(client).await;
            }
        }
    }
}

impl Upgrade {
    /// Relays, and gives the record of it.
    async fn relayed<IO>(self, client: &mut IO, gateway: &Gateway) -> Record
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let (limits, credentials) = (gateway.limits(), gateway.credentials());
        let Upgrade { origin, lease, mut record, environment, asked } = self;
        match tokio::time::timeout(limits.origin_handshake, origin).await {
            Ok(Ok(origin)) => {
                let peer = lease.peer();
                lease.upgraded();
                let note = |up, down| record.moved(up, down);
                let relayed = tokio::select! {
                    relayed = relay(client, TokioIo::new(origin), limits.idle_upgraded, note) => relayed,
                    () = gate::revoked(&environment, credentials, &asked, peer) => Err(io::Error::other(REVOKED)),
                };
                if let Err(error) = relayed {
                    record.error(error.to_string());
                }
            }
            Ok(Err(error)) => record.error(format!("the origin did not switch: {error}")),
            Err(_) => record.error("the origin did not switch in time"),
        }
        record
    }
}
