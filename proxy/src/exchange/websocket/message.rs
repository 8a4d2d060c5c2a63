//! What is a text message with values in place of its placeholders?

use std::sync::Arc;

use bytes::Bytes;
use outgate_credentials::{Credentials, Found, Writing};
use outgate_policy::{Denial, Reason};

use super::decode::Violation;
use super::room::Room;
use super::{Close, encode};
use crate::exchange::substitution::Findings;
use crate::gate::Asked;
use crate::snapshot::Environment;
use crate::tunnel::relay::REVOKED;

/// What is asked of the messages of one WebSocket.
pub(crate) struct Messages {
    credentials: Credentials,
    environment: Arc<Environment>,
    asked: Arc<Asked>,
    findings: Arc<Findings>,
    most: usize,
}

/// Why a WebSocket ends here.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) close: Close,
    pub(super) denial: Denial,
}

impl Messages {
    /// Those of a WebSocket that was `asked` for; `None` if they are not looked at. They may have
    /// `most` bytes, before and after.
    pub(crate) fn of(
        asked: &Arc<Asked>,
        credentials: &Credentials,
        environment: &Arc<Environment>,
        most: usize,
    ) -> Option<Messages> {
        Some(Messages {
            credentials: credentials.clone(),
            environment: Arc::clone(environment),
            findings: asked.messages()?,
            asked: Arc::clone(asked),
            most,
        })
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// What all of the environment have in common.
    pub(super) fn room(&self) -> Room {
        Room::new(Arc::clone(&self.environment.body_room))
    }

    /// What was found in them.
    pub(super) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The message as a frame for the origin.
    pub(super) async fn frame(&self, message: Vec<u8>) -> Result<Bytes, Refusal> {
        if std::str::from_utf8(&message).is_err() {
            let why = "a text message that is not UTF-8";
            return Err(Violation { close: Close::NotUtf8, why }.into());
        }
        let message = Bytes::from(message);
        let text = self.swapped(message).await?;
        // A change that came before the value was noted here would have been missed.
        if !self.credentials.are_current(&self.findings.used()) {
            let denial = Denial::new(Reason::PlaceholderNotTrusted, REVOKED);
            return Err(denial.into());
        }
        encode::text(&text).map_err(|_| no_randomness())
    }

    async fn swapped(&self, message: Bytes) -> Result<Bytes, Refusal> {
        let mut search = self.credentials.search_message(self.environment.id());
        let writing = Writing::guess(&message);
        search.push(message.clone());
        search.end();
        let judge = self.asked.judge(&self.credentials, &self.environment);
        let mut text = Vec::new();
        let mut found = false;
        loop {
            match search.step() {
                Found::Nothing => break,
                Found::Text(_) if !found => return Ok(message),
                Found::Text(piece) => text.extend_from_slice(&piece),
                Found::Placeholder(before, tag) => {
                    found = true;
                    let replacement = judge.replacement(&tag).await?;
                    let (before, value) = replacement.write(&before, writing)?;
                    text.extend_from_slice(&before);
                    text.extend_from_slice(&value);
                    self.findings.uses(replacement.used());
                }
            }
            if text.len() > self.most {
                let why = "a text message that is longer than websocket_message_bytes";
                return Err(Violation { close: Close::TooBig, why }.into());
            }
        }
        Ok(Bytes::from(text))
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Refusal {
        Refusal { close: Close::Policy, denial }
    }
}

impl From<Violation> for Refusal {
    fn from(Violation { close, why }: Violation) -> Refusal {
        let reason = match close {
            Close::TooBig => Reason::BodyTooLarge,
            _ => Reason::MalformedRequest,
        };
        Refusal { close, denial: Denial::new(reason, why) }
    }
}

fn no_randomness() -> Refusal {
    let denial = Denial::new(Reason::NotReady, "the system gives no random bytes");
    Refusal { close: Close::Internal, denial }
}
