//! May this leave?
//!
//! The only place that asks policy on the data path, and the only maker of the two values that say
//! yes: a [`TunnelGrant`] for a tunnel, a [`RequestPermit`] for one request. Whatever forwards
//! demands one of them.

mod asked;
mod equip;
mod judge;
mod sign;
mod way_back;

use std::sync::Arc;

use http::header::SEC_WEBSOCKET_EXTENSIONS;
use http::{HeaderName, HeaderValue};
use outgate_credentials::scrub::{Place, Sought};
use outgate_credentials::{Applied, Secret, Used, holds_placeholders};
use outgate_policy::{
    Denial, Destination, Host, Protocol, Reason, Request, RequestVerdict, TlsMode, TunnelVerdict,
};
use smallvec::SmallVec;

pub(crate) use self::asked::{Asked, revoked};
pub(crate) use self::equip::equip;
pub(crate) use self::judge::Judge;
use self::sign::Signing;
pub(crate) use self::way_back::WayBack;
use crate::audit::Record;
use crate::exchange::RequestHead;
use crate::names::Meaning;
use crate::snapshot::{Environment, Snapshot};
use crate::upstream::Peer;

/// Proof that a tunnel may be opened, under one snapshot.
pub(crate) struct TunnelGrant {
    terms: Terms,
    snapshot: Arc<Snapshot>,
}

/// What a tunnel was opened for, to be judged again.
pub(crate) struct Terms {
    destination: Destination,
    verdict: TunnelVerdict,
}

/// What may pass through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Requests alone; TLS ends here.
    Intercept,
    /// Requests in clear, and TLS that ends at the origin.
    Passthrough,
    /// Any bytes.
    Splice,
}

/// Proof that a request may be sent, with what is put on it.
pub(crate) struct RequestPermit {
    head: RequestHead,
    snapshot: Arc<Snapshot>,
    verdict: RequestVerdict,
    applied: SmallVec<[Applied; 1]>,
    used: Used,
    /// What it has to be signed with before it is sent.
    signing: Option<Box<Signing>>,
    /// What must not come back, where its entries say so.
    sought: Option<Box<Sought>>,
}

/// Judges a tunnel.
pub(crate) fn admit(
    destination: &Destination,
    environment: &Environment,
) -> Result<TunnelGrant, Denial> {
    let snapshot = environment.snapshot();
    let judged = snapshot.policy.judge_tunnel(destination);
    let verdict = under_names(judged, destination, environment)?;
    Ok(TunnelGrant { terms: Terms { destination: destination.clone(), verdict }, snapshot })
}

/// Judges a request by what is in force now, and notes the verdict in its record.
pub(crate) fn permit(
    mut head: RequestHead,
    environment: &Environment,
    record: &mut Record,
) -> Result<RequestPermit, Denial> {
    let snapshot = environment.snapshot();
    let judged = snapshot.policy.judge_request(&asked(&head));
    let verdict = under_names(judged, head.destination(), environment)?;
    record.permitted(verdict.entry, verdict.headers.iter().map(|(name, _)| name));
    if verdict.websocket_text && head.websocket().is_some() {
        if verdict.scrub {
            return Err(way_back::unreadable(head.destination()));
        }
        // Compressed messages can't be read.
        head.headers_mut().remove(SEC_WEBSOCKET_EXTENSIONS);
    }
    Ok(RequestPermit {
        head,
        snapshot,
        verdict,
        applied: SmallVec::new(),
        used: Used::new(),
        signing: None,
        sought: None,
    })
}

/// What policy says of `destination`, unless that is an address of the gateway's own DNS: those that
/// stand for a name were taken for it, so this one stands for none.
fn under_names<T>(
    judged: Result<T, Denial>,
    destination: &Destination,
    environment: &Environment,
) -> Result<T, Denial> {
    let is_disabled = judged.as_ref().is_err_and(|denial| denial.reason == Reason::NetworkDisabled);
    if let Host::Address(address) = destination.host
        && !is_disabled
        && !matches!(environment.names.name_of(address), Meaning::NotSynthetic)
    {
        let message = format!("{address} stands for no name: look the name up again");
        return Err(Denial::new(Reason::AddressNotAllowed, message));
    }
    judged.map_err(|denial| denial.in_environment(environment.id()))
}

/// Ready once a tunnel whose bytes nobody reads, with a connection to `peer`, would not be opened
/// today, or to carry less.
pub(crate) async fn withdrawn(environment: &Environment, terms: &Terms, peer: Peer) {
    let mut changes = environment.changes();
    loop {
        let Snapshot { policy, addresses, .. } = &*environment.snapshot();
        let verdict = policy.judge_tunnel(&terms.destination);
        let permitted = verdict.is_ok_and(|verdict| terms.are_covered_by(&verdict));
        if !permitted || !peer.is_permitted(addresses) || changes.changed().await.is_err() {
            return;
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
    /// Where the tunnel goes.
    pub(crate) fn destination(&self) -> &Destination {
        &self.terms.destination
    }

    /// What is in force for the tunnel.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The entry that decided.
    pub(crate) fn entry(&self) -> usize {
        self.terms.verdict.entry
    }

    /// What may pass.
    pub(crate) fn mode(&self) -> Mode {
        match (self.terms.verdict.protocol, self.terms.verdict.tls) {
            (Protocol::Tcp, _) => Mode::Splice,
            (Protocol::Http, TlsMode::Passthrough) => Mode::Passthrough,
            (Protocol::Http, TlsMode::Intercept) => Mode::Intercept,
        }
    }

    /// Whether a ClientHello that passes may hide its name.
    pub(crate) fn allows_ech(&self) -> bool {
        self.terms.verdict.allow_ech
    }

    /// What outlives the snapshot that it was granted under.
    pub(crate) fn into_terms(self) -> Terms {
        self.terms
    }
}

impl Terms {
    fn are_covered_by(&self, today: &TunnelVerdict) -> bool {
        let granted = &self.verdict;
        (today.protocol, today.tls) == (granted.protocol, granted.tls)
            && (today.allow_ech || !granted.allow_ech)
    }
}

impl RequestPermit {
    /// Whether the entries' own headers are all that is put on it: so it is for most requests.
    pub(crate) fn is_complete(&self) -> bool {
        self.verdict.credentials.is_empty()
            && self.verdict.strip.is_empty()
            && !self.verdict.scrub
            && !holds_placeholders(self.head.headers(), self.head.target())
    }

    /// Whether an origin that refuses it may be answered with another token.
    pub(crate) fn may_be_renewed(&self) -> bool {
        !self.verdict.credentials.is_empty()
    }

    /// The request, as it came before anything is put on it.
    pub(crate) fn head(&self) -> &RequestHead {
        &self.head
    }

    /// What stored credentials put on it.
    pub(crate) fn applied(&self) -> &[Applied] {
        &self.applied
    }

    /// The request's body was read ahead; if `changes`, what is sent may be another.
    pub(crate) fn body_was_read(&mut self, changes: bool) {
        self.head.body_is_here();
        if changes {
            self.head.body_changes();
        }
    }

    /// The credentials whose values it carries so far.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// What a long-lived exchange is judged by again.
    pub(crate) fn asked(&self) -> Option<Asked> {
        self.head.websocket().map(|handshake| Asked::of(self, handshake))
    }

    /// Whether what is put on it is masked in its answer.
    pub(crate) fn scrubs(&self) -> bool {
        self.verdict.scrub
    }

    /// Has these masked too: they may be put into its body.
    pub(crate) fn seek_in_answer(&mut self, values: &[Secret]) -> Result<(), Denial> {
        let mut sought = Sought::default();
        values.iter().for_each(|value| sought.secret(value, Place::Body));
        way_back::look_for(self, sought)
    }

    /// The entry that decided.
    pub(crate) fn entry(&self) -> usize {
        self.verdict.entry
    }

    /// What is to be done with its answer.
    pub(crate) fn way_back(&mut self) -> WayBack {
        let drop_set_cookie = self.verdict.drop_set_cookie;
        WayBack { drop_set_cookie, sought: self.sought.take() }
    }

    /// The head, the rules it was judged by, and what is to be injected.
    pub(crate) fn into_parts(self) -> (RequestHead, Arc<Snapshot>, Vec<(HeaderName, HeaderValue)>) {
        debug_assert!(self.signing.is_none(), "it is signed before it is sent");
        (self.head, self.snapshot, self.verdict.headers)
    }
}
