//! What do all connections share?
//!
//! A [`Gateway`] is immutable but for its environments, which are swapped whole, so every
//! connection holds it by a counted pointer and no connection waits for another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use outgate_certs::Leaves;
use outgate_credentials::Credentials;
use outgate_policy::{Denial, Reason};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::accepting::Accepting;
use crate::audit::AuditSink;
use crate::dns::{self, Answers, DnsListener};
use crate::ingress::identity::Environments;
use crate::limits::Limits;
use crate::listener::{Listener, accept_all};
use crate::resolve::Resolver;
use crate::upstream::{Hop, Upstream};

/// How often unused upstream connections are looked through.
const SWEEP: Duration = Duration::from_secs(5);

/// What a gateway is made of.
pub struct Parts {
    /// Every deadline and bound.
    pub limits: Limits,
    /// Whose traffic may come, and what is in force for each.
    pub environments: Environments,
    /// The certificates shown to clients.
    pub leaves: Leaves,
    /// Names to addresses.
    pub resolver: Resolver,
    /// What entries and placeholders mean by the ids of credentials.
    pub credentials: Credentials,
    /// Where audit lines go.
    pub audit: AuditSink,
    /// Where a refused CONNECT is told why.
    pub refusals: Refusals,
    /// How everything that leaves goes out.
    pub upstream: Upstream,
    /// Whether connections to IPv6 addresses come here too: only then DNS answers with some.
    pub captures_ipv6: bool,
}

/// Where a refused CONNECT is told why, `[refusals] connect` in the operator's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusals {
    /// By the status of CONNECT's own answer.
    #[default]
    Status,
    /// By a 403 inside the tunnel, after a completed handshake: for clients that show no more of
    /// a refused CONNECT than that it failed.
    Inside,
}

/// The gateway as every connection sees it.
pub struct Gateway {
    limits: Limits,
    environments: ArcSwap<Environments>,
    leaves: Leaves,
    resolver: Resolver,
    credentials: Credentials,
    audit: AuditSink,
    refusals: Refusals,
    upstream: Upstream,
    hop: Hop,
    captures_ipv6: bool,
    dns_answers: Answers,
    drain: watch::Sender<bool>,
    strangers: Arc<Semaphore>,
    accepting: Accepting,
}

/// Tells a connection when to end; cheap to clone.
#[derive(Clone)]
pub(crate) struct Drain(watch::Receiver<bool>);

impl Gateway {
    /// A gateway that listens nowhere yet.
    pub fn new(parts: Parts) -> Arc<Gateway> {
        let Parts {
            limits,
            environments,
            leaves,
            resolver,
            credentials,
            audit,
            refusals,
            upstream,
            captures_ipv6,
        } = parts;
        let environments = ArcSwap::from_pointee(environments);
        let drain = watch::Sender::new(false);
        let strangers = Arc::new(Semaphore::new(limits.strangers));
        Arc::new(Gateway {
            limits,
            environments,
            leaves,
            resolver,
            credentials,
            audit,
            refusals,
            upstream,
            hop: Hop::new(),
            captures_ipv6,
            dns_answers: Answers::default(),
            drain,
            strangers,
            accepting: Accepting::new(),
        })
    }

    /// Names the gateway's own addresses, once they are bound: they are never dialled.
    pub fn bound(&self, own: Vec<SocketAddr>) {
        self.resolver.own_listeners(own);
    }

    /// Whether the upstream proxy is one of those, so that nothing would ever leave. What its name
    /// means later is looked at each time that it is dialled.
    pub fn is_its_own_upstream(&self) -> bool {
        match &self.upstream {
            Upstream::Direct => false,
            Upstream::Proxy(proxy) => self.resolver.is_own_listener(&proxy.at),
        }
    }

    /// Serves `listeners` on this thread's runtime until [`Gateway::drain`], then lets what runs
    /// end within its deadline; what runs may ask `names` to its end. Every worker thread calls it
    /// with its own clones of both.
    pub async fn serve(self: &Arc<Self>, listeners: Vec<Listener>, names: Vec<DnsListener>) {
        // Dropped with this, also where nobody waits for its end.
        let mut sweeper = JoinSet::new();
        sweeper.spawn(sweep(Arc::clone(self)));
        let names_alone = listeners.is_empty() && !names.is_empty();
        let answering = dns::answer_all(self, names);
        accept_all(self, listeners).await;
        if names_alone {
            self.draining().begun().await;
        }
        drop(answering);
    }

    /// No new connection, no new request on an old one.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }

    /// Whether [`Gateway::drain`] was called.
    pub fn is_draining(&self) -> bool {
        *self.drain.borrow()
    }

    /// Whether clients can't come in: descriptors or memory have run out.
    pub fn refuses_connections(&self) -> bool {
        self.accepting.is_failing()
    }

    pub(crate) fn accepting(&self) -> &Accepting {
        &self.accepting
    }

    /// A place for one more connection that has not said whose it is.
    pub(crate) fn stranger(&self) -> Result<OwnedSemaphorePermit, Denial> {
        Arc::clone(&self.strangers).try_acquire_owned().map_err(|_| {
            Denial::new(
                Reason::TooManyConnections,
                "too many connections have not said whose they are: try again, or raise \
                 limits.strangers",
            )
        })
    }

    pub(crate) fn draining(&self) -> Drain {
        Drain(self.drain.subscribe())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Every environment and how its clients are known.
    pub fn environments(&self) -> Arc<Environments> {
        self.environments.load_full()
    }

    /// Puts another set of environments in force for new connections. One that is left out should
    /// be retired, one that is kept should be the same value, with its pools and sessions.
    pub fn replace_environments(&self, environments: Environments) {
        self.environments.store(Arc::new(environments));
    }

    pub(crate) fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// What the ids of credentials mean.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Where audit lines go.
    pub fn audit(&self) -> &AuditSink {
        &self.audit
    }

    /// Every kind of answer that the gateway's DNS gives, and how often it was given.
    pub fn dns_answers_given(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.dns_answers.iter()
    }

    pub(crate) fn dns_answers(&self) -> &Answers {
        &self.dns_answers
    }

    pub(crate) fn captures_ipv6(&self) -> bool {
        self.captures_ipv6
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub(crate) fn hop(&self) -> &Hop {
        &self.hop
    }

    pub(crate) fn refusals(&self) -> Refusals {
        self.refusals
    }
}

impl Drain {
    /// Of a gateway that never drains while its other half is kept.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn never() -> (watch::Sender<bool>, Drain) {
        let (gateway, drain) = watch::channel(false);
        (gateway, Drain(drain))
    }

    /// Ready once the gateway drains.
    pub(crate) async fn begun(&mut self) {
        if self.0.wait_for(|draining| *draining).await.is_err() {
            // The gateway is gone; so will be this connection's runtime.
            std::future::pending::<()>().await;
        }
    }
}

async fn sweep(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        gateway.environments().iter().for_each(|environment| environment.pool.sweep());
    }
}
