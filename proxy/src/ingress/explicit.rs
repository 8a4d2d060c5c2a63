//! What does a client of the forward proxy's port ask for?
//!
//! `CONNECT host:port` opens a tunnel, an absolute URL is one request, anything else is told what
//! a proxy is. Who asks is known from the connection or said with each request.

mod target;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use outgate_policy::{Denial, Destination, Reason};
use tokio::sync::OwnedSemaphorePermit;

use self::target::target;
use super::Ingress;
use super::identity::{Provenance, Unidentified};
use super::meaning::meant;
use crate::audit::{Beginning, Record};
use crate::exchange::body::ReplyBody;
use crate::exchange::reply::Dialect;
use crate::exchange::run::{self, Exchange};
use crate::exchange::serve::Service;
use crate::exchange::{Door, RequestHead, Upgrade, reply};
use crate::gateway::{Gateway, Refusals};
use crate::listener::Accepted;
use crate::snapshot::Environment;
use crate::tunnel::{Naming, Passage, Tunnel};

/// Answers the requests of one connection to the forward proxy's port.
pub(crate) struct ExplicitDoor {
    gateway: Arc<Gateway>,
    client: Option<IpAddr>,
    provenance: Provenance,
    /// The environment of the first request, and its place among that environment's connections.
    holder: OnceLock<(Arc<Environment>, OwnedSemaphorePermit)>,
    /// The connection's place until it has an environment.
    stranger: Mutex<Option<OwnedSemaphorePermit>>,
    /// Whether it was asked whose it is, and did not say.
    challenged: AtomicBool,
    next: Mutex<Option<Next>>,
}

/// What the socket is for once HTTP on it is over.
pub(crate) enum Next {
    Tunnel(Box<(Tunnel, Passage)>),
    Upgrade(Box<Upgrade>),
}

impl ExplicitDoor {
    pub(crate) fn new(gateway: Arc<Gateway>, accepted: &Accepted) -> ExplicitDoor {
        let Accepted { client, interface, owner, .. } = accepted;
        let client = *client;
        let provenance = gateway.environments().of_connection(owner, client, *interface);
        let (holder, stranger, next) = (OnceLock::new(), Mutex::default(), Mutex::default());
        let challenged = AtomicBool::new(false);
        ExplicitDoor { gateway, client, provenance, holder, stranger, challenged, next }
    }

    /// Takes the connection's place: among its environment's where that is known already, else
    /// among the strangers'. A client that says nothing holds a socket too.
    pub(crate) fn take_place(&self) -> Result<(), Denial> {
        if let Some(environment) = self.provenance.known() {
            return self.hold(environment);
        }
        let place = self.gateway.stranger()?;
        *self.stranger.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        Ok(())
    }

    /// What the last answer handed the socket over for.
    pub(crate) fn take_next(&self) -> Option<Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What an audit line of this connection begins with.
    pub(crate) fn beginning(&self) -> Beginning {
        let environment = self.holder.get().map(|held| &held.0).or(self.provenance.known());
        Beginning {
            ingress: Ingress::Explicit,
            client: self.client,
            environment: environment.map(|environment| environment.id().clone()),
        }
    }

    /// Whose request it is. A connection serves one environment, and takes one of its places.
    fn identify(&self, headers: &HeaderMap) -> Result<Arc<Environment>, Denial> {
        let environment = self
            .gateway
            .environments()
            .of_request(&self.provenance, headers)
            .map_err(|Unidentified| unidentified())?;
        if self.holder.get().is_none() {
            self.hold(&environment)?;
        }
        match self.holder.get() {
            Some((holder, _)) if Arc::ptr_eq(holder, &environment) => Ok(environment),
            _ => Err(unidentified()),
        }
    }

    fn hold(&self, environment: &Arc<Environment>) -> Result<(), Denial> {
        let place = environment.place()?;
        // Requests of one connection are answered one after the other: nobody came between.
        drop(self.holder.set((Arc::clone(environment), place)));
        *self.stranger.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    async fn forward(
        &self,
        parts: Parts,
        body: Incoming,
        mut record: Record,
    ) -> Response<ReplyBody> {
        let environment = match self.identify(&parts.headers) {
            Ok(environment) => environment,
            Err(denial) => return run::refuse(record, &denial, None, Dialect::Http),
        };
        record.belongs_to(environment.id());
        let mut head = match RequestHead::read(parts, Door::Forward) {
            Ok(head) => head,
            Err(denial) => return run::refuse(record, &denial, None, Dialect::Http),
        };
        let meant = meant(&head.destination().host, &environment);
        if let Some((host, _held)) = &meant {
            head.goes_to(host.clone());
        }
        match run::run(&self.gateway, &environment, head, body, record).await {
            Exchange::Answered(response) => response,
            Exchange::Upgraded(response, upgrade) => {
                self.hand_over(Next::Upgrade(upgrade));
                response
            }
        }
    }

    async fn connect(&self, parts: &Parts, mut record: Record) -> Response<ReplyBody> {
        let trail = match self.gateway.hop().trail(&parts.headers) {
            Ok(trail) => trail,
            Err(denial) => return refuse_connect(record, &denial),
        };
        let environment = match self.identify(&parts.headers) {
            Ok(environment) => environment,
            Err(denial) => return refuse_connect(record, &denial),
        };
        record.belongs_to(environment.id());
        let destination = match target(parts) {
            Ok(destination) => destination,
            Err(denial) => return refuse_connect(record, &denial),
        };
        let (destination, held) = match meant(&destination.host, &environment) {
            Some((host, held)) => (Destination { host, ..destination }, Some(held)),
            None => (destination, None),
        };
        record.goes_to(&destination, None);
        let (ingress, client) = (Ingress::Explicit, self.client);
        let naming = Naming::Fixed;
        let mut tunnel =
            Tunnel { ingress, environment, destination, naming, client, held, trail, record };
        let inside = self.gateway.refusals() == Refusals::Inside;
        let passage = match tunnel.admit(&self.gateway).await {
            Ok(passage) => passage,
            Err(refused) if inside && refused.is_readable_inside => Passage::Refusals,
            Err(refused) => {
                tunnel.record.finish();
                return reply::connect_refusal(&refused.denial, Some(&tunnel.destination));
            }
        };
        self.hand_over(Next::Tunnel(Box::new((tunnel, passage))));
        Response::new(ReplyBody::empty())
    }

    fn hand_over(&self, next: Next) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }
}

impl Service for ExplicitDoor {
    async fn answer(&self, request: Request<Incoming>) -> Response<ReplyBody> {
        let (parts, body) = request.into_parts();
        let audit = self.gateway.audit();
        let tunnel = parts.method == Method::CONNECT;
        let record = match tunnel {
            true => audit.tunnel(self.beginning()).await,
            false => audit.request(self.beginning()).await,
        };
        let mut record = match record {
            Ok(record) => record,
            Err(full) => return reply::not_ready(&full, Dialect::Http),
        };
        record.client_speaks(parts.version);
        record.asks(&parts.method, parts.uri.path());
        let mut response = match tunnel {
            true => self.connect(&parts, record).await,
            false => self.forward(parts, body, record).await,
        };
        // One more try is every client's; more of them would hold a stranger's place for ever.
        let is_challenge = response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        let is_stranger = self.holder.get().is_none();
        if is_challenge && is_stranger && self.challenged.swap(true, Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Refuses a CONNECT that names no destination, or not whose it is.
fn refuse_connect(mut record: Record, denial: &Denial) -> Response<ReplyBody> {
    record.refused(denial.reason);
    record.finish();
    reply::connect_refusal(denial, None)
}

fn unidentified() -> Denial {
    Denial::new(
        Reason::ProxyAuthenticationRequired,
        "say which environment this is: Proxy-Authorization: Basic base64(environment_id:token)",
    )
}
