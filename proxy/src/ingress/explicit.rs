//! What does a client of the forward proxy's port ask for?
//!
//! `CONNECT host:port` opens a tunnel, an absolute URL is one request, anything else is told what
//! a proxy is. Who asks is known from the connection or said with each request.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use outgate_policy::{Authority, Denial, Destination, Reason};
use tokio::sync::OwnedSemaphorePermit;

use super::identity::{Provenance, Unidentified};
use crate::audit::{Beginning, Record};
use crate::exchange::body::ReplyBody;
use crate::exchange::run::{self, Exchange};
use crate::exchange::serve::Service;
use crate::exchange::{Door, RequestHead, Upgrade, reply};
use crate::gate;
use crate::gateway::{Gateway, Refusals};
use crate::listener::Accepted;
use crate::snapshot::Environment;
use crate::tunnel::{Admission, Tunnel};
use crate::upstream::UpstreamError;

/// How audit lines call this way in.
pub(crate) const INGRESS: &str = "explicit";

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
    Tunnel(Box<Tunnel>),
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
        let place = self.gateway.stranger().ok_or_else(|| {
            Denial::new(
                Reason::TooManyConnections,
                "too many connections have not said whose they are: try again, or raise \
                 limits.strangers",
            )
        })?;
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
            ingress: INGRESS,
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
        let place = environment.connection().ok_or_else(|| {
            Denial::new(
                Reason::TooManyConnections,
                "this environment has as many connections as it may: close some, or raise \
                 limits.connections",
            )
        })?;
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
            Err(denial) => return run::refuse(record, &denial, None),
        };
        record.belongs_to(environment.id());
        let head = match RequestHead::read(parts, Door::Forward) {
            Ok(head) => head,
            Err(denial) => return run::refuse(record, &denial, None),
        };
        match run::run(&self.gateway, &environment, head, body, record).await {
            Exchange::Answered(response) => response,
            Exchange::Upgraded(response, upgrade) => {
                self.hand_over(Next::Upgrade(upgrade));
                response
            }
        }
    }

    async fn connect(&self, parts: &Parts, mut record: Record) -> Response<ReplyBody> {
        let environment = match self.identify(&parts.headers) {
            Ok(environment) => environment,
            Err(denial) => return refuse_connect(record, &denial),
        };
        record.belongs_to(environment.id());
        let destination = match target(parts) {
            Ok(destination) => destination,
            Err(denial) => return refuse_connect(record, &denial),
        };
        record.goes_to(&destination, None);
        let admission = match self.admit(&destination, &environment, &mut record).await {
            Ok(()) => Admission::Granted,
            Err(_) if self.gateway.refusals() == Refusals::Inside => Admission::Refused,
            Err(denial) => {
                record.finish();
                return reply::connect_refusal(&denial, Some(&destination));
            }
        };
        let client = self.client;
        let tunnel = Tunnel { environment, destination, admission, client, record };
        self.hand_over(Next::Tunnel(Box::new(tunnel)));
        Response::new(ReplyBody::empty())
    }

    /// Policy, then addresses: what can't be reached is said now, where the client asks.
    async fn admit(
        &self,
        destination: &Destination,
        environment: &Environment,
        record: &mut Record,
    ) -> Result<(), Denial> {
        let grant = gate::admit(destination, environment).inspect_err(|denial| {
            record.refused(denial.reason);
        })?;
        let rules = &grant.snapshot().addresses;
        let resolver = self.gateway.resolver();
        match resolver.pin(&destination.host, destination.port, rules).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = UpstreamError::from(error);
                error.note(record);
                Err(error.denial(destination))
            }
        }
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
            Err(full) => return reply::not_ready(&full),
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

/// The authority-form target (RFC 9110 §9.3.6), with a port and without a body.
fn target(parts: &Parts) -> Result<Destination, Denial> {
    let malformed = |message| Err(Denial::new(Reason::MalformedRequest, message));
    let framing = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    if framing.iter().any(|name| parts.headers.contains_key(name)) {
        return malformed("CONNECT with a body: the bytes of a tunnel come after its answer");
    }
    let (Some(authority), None) = (parts.uri.authority(), parts.uri.path_and_query()) else {
        return malformed("the target of CONNECT must be host:port");
    };
    let authority = authority.as_str().as_bytes();
    let parsed = Authority::from_wire(authority).map_err(|error| error.denial(authority))?;
    let Some(port) = parsed.port else {
        let message = "the target of CONNECT has no port: write host:443";
        return Err(Denial::new(Reason::MalformedPort, message));
    };
    let destination = Destination { host: parsed.host, port };
    check_host(&parts.headers, &destination)?;
    Ok(destination)
}

/// `Host` repeats the target; some clients leave the port out.
fn check_host(headers: &HeaderMap, destination: &Destination) -> Result<(), Denial> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => {
            Err(Denial::new(Reason::MalformedRequest, "more than one Host header"))
        }
        (Some(host), None) => {
            let host = host.as_bytes();
            let said = Authority::from_wire(host).map_err(|error| error.denial(host))?;
            let same_port = said.port.is_none_or(|port| port == destination.port);
            if said.host == destination.host && same_port {
                return Ok(());
            }
            let message = format!("Host says {}, CONNECT says {destination}", said.host);
            Err(Denial::new(Reason::NameMismatch, message))
        }
    }
}

fn unidentified() -> Denial {
    Denial::new(
        Reason::ProxyAuthenticationRequired,
        "say which environment this is: Proxy-Authorization: Basic base64(environment_id:token)",
    )
}
