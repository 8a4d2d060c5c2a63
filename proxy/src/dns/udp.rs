//! How does a question come in as a datagram?
//!
//! Nothing is remembered of a client, and an answer is about as long as its question, so that a
//! flood of them takes time, never memory.

use std::net::UdpSocket;
use std::sync::Arc;

use super::PAUSE;
use super::datagrams::{Datagrams, Path};
use super::message::LONGEST;
use crate::gateway::Gateway;
use crate::listener::Owner;

/// One byte more, so that what was too long can be told from what just fits.
const BUFFER: usize = LONGEST as usize + 1;

/// Answers what comes in by `socket`.
pub(super) async fn answer(gateway: Arc<Gateway>, owner: Arc<Owner>, socket: UdpSocket) {
    let socket = match Datagrams::register(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "a DNS listener can't be served over UDP");
            return;
        }
    };
    let mut buffer = [0; BUFFER];
    let mut failing = false;
    loop {
        match socket.receive(&mut buffer).await {
            Ok((length, path)) => {
                failing = false;
                answer_one(&gateway, &owner, &socket, (&buffer[..length], &path));
            }
            Err(error) => {
                if !failing {
                    tracing::error!(%error, "DNS questions can't be received; trying again");
                }
                failing = true;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn answer_one(
    gateway: &Gateway,
    owner: &Owner,
    socket: &Datagrams,
    (question, path): (&[u8], &Path),
) {
    let environments = gateway.environments();
    let client = path.client.ip().to_canonical();
    let provenance = environments.of_connection(owner, Some(client), Some(path.interface()));
    let environment = provenance.known().map(|environment| &**environment);
    let Some(answer) = super::answer(gateway, environment, question) else { return };
    if let Err(error) = socket.answer(&answer, path) {
        tracing::debug!(%error, "a DNS answer was not sent");
    }
}
