//! What answers the requests inside one tunnel?

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response, Version};
use hyper::body::Incoming;
use outgate_policy::Denial;

use crate::audit::{Beginning, Record};
use crate::exchange::body::ReplyBody;
use crate::exchange::run::{self, Exchange};
use crate::exchange::serve::Service;
use crate::exchange::{Door, RequestHead, TunnelTarget, Upgrade, reply};
use crate::gateway::Gateway;
use crate::ingress::explicit::INGRESS;
use crate::snapshot::Environment;

/// Answers requests that all go to one destination.
pub(super) struct TunnelDoor {
    gateway: Arc<Gateway>,
    environment: Arc<Environment>,
    target: TunnelTarget,
    client: Option<IpAddr>,
    /// The tunnel's own line, until a request comes that has one.
    record: Mutex<Option<Record>>,
    upgrade: Mutex<Option<Box<Upgrade>>>,
}

impl TunnelDoor {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        environment: Arc<Environment>,
        target: TunnelTarget,
        client: Option<IpAddr>,
        record: Record,
    ) -> TunnelDoor {
        let record = Mutex::new(Some(record));
        TunnelDoor { gateway, environment, target, client, record, upgrade: Mutex::new(None) }
    }

    /// The tunnel's own line, if no request came.
    pub(super) fn take_record(&self) -> Option<Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where all its requests go.
    pub(super) fn target(&self) -> &TunnelTarget {
        &self.target
    }

    /// The upgrade that the last answer agreed to.
    pub(super) fn take_upgrade(&self) -> Option<Box<Upgrade>> {
        self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What an audit line of this tunnel begins with.
    pub(super) fn beginning(&self) -> Beginning {
        Beginning {
            ingress: INGRESS,
            client: self.client,
            environment: Some(self.environment.id().clone()),
        }
    }
}

impl Service for TunnelDoor {
    async fn answer(&self, request: Request<Incoming>) -> Response<ReplyBody> {
        let (parts, body) = request.into_parts();
        let mut record = match self.gateway.audit().request(self.beginning()).await {
            Ok(record) => record,
            Err(full) => return reply::not_ready(&full),
        };
        // Now, not at the tunnel's end: it may be cut while this request runs.
        if let Some(of_tunnel) = self.take_record() {
            of_tunnel.discard();
        }
        record.client_speaks(parts.version);
        record.asks(&parts.method, parts.uri.path());
        record.goes_to(&self.target.destination, Some(self.target.scheme));
        let most = self.gateway.limits().headers;
        let head = RequestHead::count(&parts, most)
            .and_then(|()| RequestHead::read(parts, Door::Tunnel(&self.target)));
        let head = match head {
            Ok(head) => head,
            Err(denial) => return run::refuse(record, &denial, Some(&self.target.destination)),
        };
        match run::run(&self.gateway, &self.environment, head, body, record).await {
            Exchange::Answered(response) => response,
            Exchange::Upgraded(response, upgrade) => {
                *self.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
                response
            }
        }
    }

    async fn unread(&self, why: &Denial) {
        let Ok(mut record) = self.gateway.audit().request(self.beginning()).await else { return };
        if let Some(of_tunnel) = self.take_record() {
            of_tunnel.discard();
        }
        record.client_speaks(Version::HTTP_2);
        record.goes_to(&self.target.destination, Some(self.target.scheme));
        record.refused(why.reason);
        record.error(why.message.as_str());
        record.finish();
    }
}
