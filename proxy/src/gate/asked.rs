//! Would what goes on for long begin today?

use http::{HeaderName, HeaderValue, Method};
use outgate_credentials::{Credentials, Used};
use outgate_policy::{Destination, Named, Request, Scheme};
use smallvec::SmallVec;

use super::RequestPermit;
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
}

impl Asked {
    /// What `permit` was given for, before credentials are put on it; [`Asked::used`] adds those.
    pub(super) fn of(permit: &RequestPermit) -> Asked {
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
        }
    }

    /// The credentials whose values it carries.
    pub(crate) fn with(self, permit: &RequestPermit) -> Asked {
        Asked { used: permit.used.clone(), ..self }
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
            verdict.headers == asked.headers
                && verdict.credentials == asked.credentials
                && profiles.id_of(verdict.entry) == asked.profile
        });
        if !permitted || !peer.is_permitted(addresses) || !credentials.are_current(&asked.used) {
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
