//! May this leave?
//!
//! The only place that asks policy on the data path, and the only maker of the two values that say
//! yes: a [`TunnelGrant`] for a tunnel, a [`RequestPermit`] for one request. Whatever forwards
//! demands one of them.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use outgate_policy::{Denial, Destination, Reason, Request, Scheme};

use crate::audit::Record;
use crate::exchange::RequestHead;
use crate::snapshot::{Environment, Snapshot};

/// Proof that a tunnel may be opened, under one snapshot.
pub(crate) struct TunnelGrant {
    snapshot: Arc<Snapshot>,
}

/// Proof that a request may be sent, with what is put on it.
pub(crate) struct RequestPermit {
    head: RequestHead,
    snapshot: Arc<Snapshot>,
    injections: Vec<(HeaderName, HeaderValue)>,
}

/// Judges a tunnel.
pub(crate) fn admit(
    destination: &Destination,
    environment: &Environment,
) -> Result<TunnelGrant, Denial> {
    let snapshot = environment.snapshot();
    match snapshot.policy.judge_tunnel(destination) {
        Ok(_) => Ok(TunnelGrant { snapshot }),
        Err(denial) => Err(denial.in_environment(environment.id())),
    }
}

/// Judges a request by what is in force now, and notes the verdict in its record.
pub(crate) fn permit(
    head: RequestHead,
    environment: &Environment,
    record: &mut Record,
) -> Result<RequestPermit, Denial> {
    let snapshot = environment.snapshot();
    let verdict = snapshot
        .policy
        .judge_request(&asked(&head))
        .map_err(|denial| denial.in_environment(environment.id()))?;
    if let Some(credential) = verdict.credentials.first() {
        record.uses_credentials(&verdict.credentials);
        let message = format!(
            "network.allowlist[{}] needs the credential {credential}, which is not stored",
            verdict.entry
        );
        return Err(Denial::new(Reason::CredentialUnavailable, message));
    }
    record.permitted(verdict.entry, verdict.headers.iter().map(|(name, _)| name));
    Ok(RequestPermit { head, snapshot, injections: verdict.headers })
}

/// Ready once what was begun as `asked`, over a connection to `address`, would not begin so today:
/// it is no longer permitted, its address is shut, or what was injected has changed.
pub(crate) async fn revoked(environment: &Environment, asked: &Asked, address: SocketAddr) {
    let mut changes = environment.changes();
    loop {
        let Snapshot { policy, addresses } = &*environment.snapshot();
        let verdict = policy.judge_request(&asked.request());
        let permitted = verdict.is_ok_and(|verdict| verdict.headers == asked.injections);
        if !permitted || addresses.judge(address).is_err() || changes.changed().await.is_err() {
            return;
        }
    }
}

/// What a long-lived exchange asked for, to be judged again.
pub(crate) struct Asked {
    destination: Destination,
    scheme: Scheme,
    method: Method,
    path: String,
    injections: Vec<(HeaderName, HeaderValue)>,
}

impl Asked {
    pub(crate) fn of(head: &RequestHead, injections: &[(HeaderName, HeaderValue)]) -> Asked {
        Asked {
            destination: head.destination().clone(),
            scheme: head.scheme(),
            method: head.method().clone(),
            path: head.path().to_owned(),
            injections: injections.to_vec(),
        }
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

fn asked(head: &RequestHead) -> Request<'_> {
    Request {
        destination: head.destination(),
        scheme: head.scheme(),
        method: head.method().as_str(),
        path: head.path(),
    }
}

impl TunnelGrant {
    /// What is in force for the tunnel.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl RequestPermit {
    /// The head, the rules it was judged by, and what is to be injected.
    pub(crate) fn into_parts(self) -> (RequestHead, Arc<Snapshot>, Vec<(HeaderName, HeaderValue)>) {
        (self.head, self.snapshot, self.injections)
    }
}
