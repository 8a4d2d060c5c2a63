//! What do the entries that match a request add to it, together?

use http::{HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::Request;
use super::denials::Refusing;
use crate::destination::Scheme;
use crate::entry::{Entry, Strip};
use crate::verdict::{Denial, Named, RequestVerdict};

/// The sum of entries, fed from the strongest to the weakest.
#[derive(Default)]
pub(super) struct Merged {
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: SmallVec<[Named; 1]>,
    refuses_plaintext: bool,
    scrub: bool,
    drop_set_cookie: bool,
    websocket_text: bool,
    strip: Vec<Strip>,
}

impl Merged {
    pub(super) fn add(&mut self, entry: &Entry) {
        let behind = self.headers.len();
        let before = behind + self.credentials.len();
        for (name, value) in &entry.headers {
            if !self.headers.iter().any(|(known, _)| known == name) {
                self.headers.push((name.clone(), value.clone()));
            }
        }
        if let Some(credential) = &entry.credential
            && !self.credentials.iter().any(|named| named.id == *credential)
        {
            self.credentials.push(Named { id: credential.clone(), behind });
        }
        // An entry whose every header a stronger one sets adds nothing, so it has no say.
        let adds = self.headers.len() + self.credentials.len() > before;
        self.refuses_plaintext |= adds && !entry.allow_plaintext;
        self.scrub |= entry.scrub;
        self.drop_set_cookie |= entry.drop_set_cookie;
        self.websocket_text |= entry.websocket_text;
        self.strip.extend(entry.strip.iter().cloned());
    }

    /// Refuses what must not carry injected values.
    pub(super) fn into_verdict(
        self,
        entry: usize,
        allow_plaintext_placeholders: bool,
        request: &Request<'_>,
    ) -> Result<RequestVerdict, Denial> {
        let verdict = RequestVerdict {
            entry,
            headers: self.headers,
            credentials: self.credentials,
            allow_plaintext: !self.refuses_plaintext,
            allow_plaintext_placeholders,
            scrub: self.scrub,
            drop_set_cookie: self.drop_set_cookie,
            websocket_text: self.websocket_text,
            strip: self.strip,
        };
        let refusing = Refusing(request.destination);
        if verdict.injects() && request.method == "TRACE" {
            return Err(refusing.trace());
        }
        if request.scheme == Scheme::Http && verdict.injects() && !verdict.allow_plaintext {
            return Err(refusing.plaintext());
        }
        Ok(verdict)
    }
}
