//! Would what goes on for long begin today?

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use outgate_credentials::{Credentials, Used};
use outgate_policy::{Destination, Named, Request, RequestVerdict, Scheme};
use smallvec::SmallVec;

use super::RequestPermit;
use super::judge::{Judge, barred};
use crate::exchange::Findings;
use crate::exchange::handshake::Handshake;
use crate::snapshot::{Environment, Snapshot};
use crate::upstream::{Peer, ProfileId};

/// What a long-lived exchange asked for, and what it was sent with.
pub(crate) struct Asked {
    destination: Destination,
    scheme: Scheme,
    method: Method,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: SmallVec<[Named; 1]>,
    profile: ProfileId,
    used: Used,
    handshake: Handshake,
    /// What is found in its messages, if they are looked at.
    messages: Option<Arc<Findings>>,
    plaintext: bool,
    scrub: bool,
}

impl Asked {
    /// What `permit` was given for, before credentials are put on it; [`Asked::used`] adds those.
    pub(super) fn of(permit: &RequestPermit, handshake: &Handshake) -> Asked {
        let RequestPermit { head, verdict, snapshot, .. } = permit;
        Asked {
            destination: head.destination().clone(),
            scheme: head.scheme(),
            method: head.method().clone(),
            path: head.path().to_owned(),
            headers: verdict.headers.clone(),
            credentials: verdict.credentials.clone(),
            profile: snapshot.profiles.id_of(verdict.entry),
            used: Used::new(),
            handshake: handshake.clone(),
            messages: verdict.websocket_text.then(|| Arc::new(Findings::new(&Used::new()))),
            plaintext: verdict.allow_plaintext_placeholders,
            scrub: verdict.scrub,
        }
    }

    /// The credentials whose values it carries.
    pub(crate) fn with(self, permit: &RequestPermit) -> Asked {
        let messages = self.messages.map(|_| Arc::new(Findings::new(&permit.used)));
        Asked { used: permit.used.clone(), messages, ..self }
    }

    /// What is found in its messages, if they are looked at.
    pub(crate) fn messages(&self) -> Option<Arc<Findings>> {
        self.messages.clone()
    }

    /// What is asked of a message, by what is in force now.
    pub(crate) fn judge(&self, credentials: &Credentials, environment: &Arc<Environment>) -> Judge {
        Judge {
            credentials: credentials.clone(),
            environment: Arc::clone(environment),
            snapshot: environment.snapshot(),
            destination: self.destination.clone(),
            barred: barred(&self.destination, &self.method, self.scheme, self.plaintext),
            sought: None,
        }
    }

    fn is_covered_by(&self, today: &RequestVerdict) -> bool {
        today.headers == self.headers
            && today.credentials == self.credentials
            && today.websocket_text == self.messages.is_some()
            && (today.allow_plaintext_placeholders || !self.plaintext)
            && (self.scrub || !today.scrub)
    }

    fn carries_current(&self, credentials: &Credentials) -> bool {
        credentials.are_current(&self.used)
            && self.messages.as_ref().is_none_or(|found| credentials.are_current(&found.used()))
    }

    /// How it was asked for.
    pub(crate) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    fn request(&self) -> Request<'_> {
        Request {
            destination: &self.destination,
            scheme: self.scheme,
            method: self.method.as_str(),
            path: &self.path,
        }
    }
}

/// Ready once what was begun as `asked`, over a connection to `peer`, would not begin so today:
/// it is no longer permitted, its address is shut, its origin would be met otherwise, or what was
/// injected has changed.
pub(crate) async fn revoked(
    environment: &Environment,
    credentials: &Credentials,
    asked: &Asked,
    peer: Peer,
) {
    let mut changes = environment.changes();
    let mut secrets = credentials.changes();
    loop {
        let Snapshot { policy, addresses, profiles } = &*environment.snapshot();
        let permitted = policy.judge_request(&asked.request()).is_ok_and(|verdict| {
            asked.is_covered_by(&verdict) && profiles.id_of(verdict.entry) == asked.profile
        });
        if !permitted || !peer.is_permitted(addresses) || !asked.carries_current(credentials) {
            return;
        }
        let changed = tokio::select! {
            changed = changes.changed() => changed,
            changed = secrets.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}
