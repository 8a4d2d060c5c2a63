//! What answers the requests inside one tunnel?

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::request::Parts;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use outgate_policy::Denial;

use super::Naming;
use super::streams::{Candidate, Streams};
use crate::audit::{Beginning, Record};
use crate::exchange::body::{Place, ReplyBody};
use crate::exchange::reply::Dialect;
use crate::exchange::run::{self, Exchange};
use crate::exchange::serve::Service;
use crate::exchange::{Door, RequestHead, TunnelTarget, Upgrade, named, reply};
use crate::gateway::Gateway;
use crate::snapshot::Environment;

/// Answers requests that all go to one destination.
pub(super) struct TunnelDoor {
    gateway: Arc<Gateway>,
    environment: Arc<Environment>,
    target: Target,
    /// What its audit lines begin with.
    beginning: Beginning,
    /// The tunnel's own line, until a request comes that has one.
    record: Mutex<Option<Record>>,
    upgrade: Mutex<Option<Box<Upgrade>>>,
    streams: Streams,
}

/// The destination of a tunnel's requests, or what is known of it until one of them names it.
pub(super) struct Target {
    known: TunnelTarget,
    naming: Naming,
    named: OnceLock<TunnelTarget>,
}

impl Target {
    pub(super) fn new(known: TunnelTarget, naming: Naming) -> Target {
        Target { known, naming, named: OnceLock::new() }
    }

    fn get(&self) -> &TunnelTarget {
        self.named.get().unwrap_or(&self.known)
    }

    /// The destination, named by this request if by none before.
    fn named_by(&self, parts: &Parts) -> Result<&TunnelTarget, Denial> {
        if self.naming == Naming::Fixed || self.named.get().is_some() {
            return Ok(self.get());
        }
        let destination = named(parts, &self.known)?;
        let target = TunnelTarget::new(destination, self.known.scheme, self.known.trail.clone());
        // Two may come at once over HTTP/2: the later one must then agree.
        Ok(self.named.get_or_init(|| target))
    }
}

impl TunnelDoor {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        environment: Arc<Environment>,
        target: Target,
        beginning: Beginning,
        record: Record,
    ) -> TunnelDoor {
        let (record, upgrade) = (Mutex::new(Some(record)), Mutex::new(None));
        let streams = Streams::default();
        TunnelDoor { gateway, environment, target, beginning, record, upgrade, streams }
    }

    /// The tunnel's own line, if no request came.
    pub(super) fn take_record(&self) -> Option<Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where all its requests go.
    pub(super) fn target(&self) -> &TunnelTarget {
        self.target.get()
    }

    /// The upgrade that the last answer agreed to.
    pub(super) fn take_upgrade(&self) -> Option<Box<Upgrade>> {
        self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The end of the connection has come; that of its streams comes by it.
    pub(super) async fn ended(&self) {
        self.streams.ended().await;
    }

    /// The answer to a request that there is room for.
    async fn judged(
        &self,
        parts: Parts,
        body: Incoming,
        mut record: Record,
        place: Place,
    ) -> Response<ReplyBody> {
        let dialect = Dialect::of(&parts);
        let candidate = Candidate::of(&parts);
        let target = self.target.named_by(&parts);
        let TunnelTarget { destination, scheme, .. } = self.target();
        record.goes_to(destination, Some(*scheme));
        let most = self.gateway.limits().headers;
        let head = RequestHead::count(&parts, most)
            .and(target)
            .and_then(|target| RequestHead::read(parts, Door::Tunnel(target)));
        let head = match head {
            Ok(head) => head,
            Err(denial) => return run::refuse(record, &denial, Some(destination), dialect),
        };
        if candidate.is_some() {
            // What CONNECT stands for here is what is judged.
            record.asks(head.method(), head.path());
        }
        match run::run(&self.gateway, &self.environment, head, body, record).await {
            Exchange::Answered(response) => response.map(|answer| answer.in_place(place)),
            Exchange::Upgraded(response, upgrade) => {
                match candidate {
                    Some(candidate) => {
                        self.streams.begin(candidate, place, *upgrade, &self.gateway);
                    }
                    None => self.hand_over(upgrade),
                }
                response
            }
        }
    }

    fn hand_over(&self, upgrade: Box<Upgrade>) {
        *self.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    }

    /// What an audit line of this tunnel begins with.
    pub(super) fn beginning(&self) -> Beginning {
        self.beginning.clone()
    }
}

impl Service for TunnelDoor {
    async fn answer(&self, request: Request<Incoming>) -> Response<ReplyBody> {
        let (parts, body) = request.into_parts();
        let dialect = Dialect::of(&parts);
        let mut record = match self.gateway.audit().request(self.beginning()).await {
            Ok(record) => record,
            Err(full) => return reply::not_ready(&full, dialect),
        };
        // Now, not at the tunnel's end: it may be cut while this request runs.
        if let Some(of_tunnel) = self.take_record() {
            of_tunnel.discard();
        }
        record.client_speaks(parts.version);
        record.asks(&parts.method, parts.uri.path());
        let place = match parts.version {
            Version::HTTP_2 => self.environment.stream().map(Place::OfStream),
            _ => Ok(Place::OfConnection),
        };
        match place {
            Ok(place) => self.judged(parts, body, record, place).await,
            Err(denial) => {
                let TunnelTarget { destination, scheme, .. } = self.target();
                record.goes_to(destination, Some(*scheme));
                run::refuse(record, &denial, Some(destination), dialect)
            }
        }
    }

    async fn unread(&self, why: &Denial) {
        let Ok(mut record) = self.gateway.audit().request(self.beginning()).await else { return };
        if let Some(of_tunnel) = self.take_record() {
            of_tunnel.discard();
        }
        record.client_speaks(Version::HTTP_2);
        record.goes_to(&self.target().destination, Some(self.target().scheme));
        record.refused(why.reason);
        record.error(why.message.as_str());
        record.finish();
    }
}
