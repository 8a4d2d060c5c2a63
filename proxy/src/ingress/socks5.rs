//! Where does a SOCKS5 client want to connect, and whose is it?
//!
//! CONNECT alone, with a name or an address (RFC 1928). Whose it is, is known from the connection,
//! or said by user (the environment's id) and password (its token), by the same rules as in
//! `Proxy-Authorization`. A tunnel that is refused is told by the reply, a request inside by its 403.

mod message;

use std::sync::Arc;

use outgate_policy::{Denial, Destination, Reason};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

pub(crate) use self::message::request;
use self::message::{Fault, Method, Reply};
use super::Ingress;
use super::identity::{Provenance, Unidentified};
use super::meaning::meant;
use super::prefixed::Prefixed;
use crate::audit::{Beginning, Record};
use crate::exchange::serve;
use crate::gateway::Gateway;
use crate::listener::{Accepted, Socket};
use crate::snapshot::Environment;
use crate::tunnel::{self, Naming, NotAdmitted, Tunnel};
use crate::upstream::Trail;

/// A client that has not asked for anything yet.
struct Client {
    gateway: Arc<Gateway>,
    accepted: Accepted,
    provenance: Provenance,
    /// Its environment's, or a stranger's.
    place: Option<OwnedSemaphorePermit>,
}

/// Why nothing was asked.
enum Refusal {
    /// The client closed before it said a word.
    Silence,
    Fault(Fault),
    /// It can't be told whose it is, or there are too many; the client knows by now.
    Denied(Denial),
}

/// Serves one connection until it is closed.
pub(crate) async fn serve(gateway: Arc<Gateway>, accepted: Accepted) {
    let Accepted { owner, client, interface, .. } = &accepted;
    let provenance = gateway.environments().of_connection(owner, *client, *interface);
    let wait = gateway.limits().client_handshake;
    let mut client = Client { gateway, accepted, provenance, place: None };
    let asked = timeout(wait, Box::pin(client.asked())).await.unwrap_or_else(|_| {
        let message = format!("the client did not ask for anything within {wait:?}");
        Err(Refusal::Denied(Denial::new(Reason::RequestTimeout, message)))
    });
    match asked {
        Ok((environment, destination)) => client.open(environment, destination).await,
        Err(refusal) => client.refuse(refusal).await,
    }
}

impl Client {
    /// Whose the client is and where it wants to go.
    async fn asked(&mut self) -> Result<(Arc<Environment>, Destination), Refusal> {
        self.take_place().await?;
        let environment = self.identify().await?;
        let destination = request(self.socket()).await?;
        if self.provenance.known().is_none() {
            self.place = match environment.place() {
                Ok(place) => Some(place),
                Err(denial) => return Err(self.deny(denial).await),
            };
        }
        Ok((environment, destination))
    }

    /// A client that says nothing holds a socket too.
    async fn take_place(&mut self) -> Result<(), Refusal> {
        let place = match self.provenance.known() {
            Some(environment) => environment.place(),
            None => self.gateway.stranger(),
        };
        match place {
            Ok(place) => self.place = Some(place),
            Err(denial) => {
                drop(message::choose(self.socket(), Method::Unacceptable).await);
                return Err(Refusal::Denied(denial));
            }
        }
        Ok(())
    }

    async fn identify(&mut self) -> Result<Arc<Environment>, Refusal> {
        let offered = message::greeting(self.socket()).await?.ok_or(Refusal::Silence)?;
        // Java offers both and sends the name of its user if it is let.
        let is_known = self.provenance.known().is_some();
        let method = match offered.contains(&(Method::Nothing as u8)) && is_known {
            true => Method::Nothing,
            false if offered.contains(&(Method::Claim as u8)) => Method::Claim,
            false => Method::Unacceptable,
        };
        message::choose(self.socket(), method).await.map_err(Fault::Broken)?;
        let claim = match method {
            Method::Nothing => None,
            Method::Claim => Some(message::claim(self.socket()).await?),
            Method::Unacceptable => return Err(Refusal::Denied(unidentified())),
        };
        let environments = self.gateway.environments();
        let identified = environments.of_claim(&self.provenance, claim.as_ref());
        if claim.is_some() {
            let judged = message::judge(self.socket(), identified.is_ok()).await;
            judged.map_err(Fault::Broken)?;
        }
        identified.map_err(|Unidentified| Refusal::Denied(unidentified()))
    }

    /// Opens the tunnel that was asked for, or says why not.
    async fn open(mut self, environment: Arc<Environment>, destination: Destination) {
        let Ok(mut record) = self.record(Some(&environment)).await else {
            return self.reply(Reply::Failed).await;
        };
        let (destination, held) = match meant(&destination.host, &environment) {
            Some((host, held)) => (Destination { host, ..destination }, Some(held)),
            None => (destination, None),
        };
        record.goes_to(&destination, None);
        let (ingress, client, naming) = (Ingress::Socks, self.accepted.client, Naming::Fixed);
        let trail = Trail::default();
        let mut tunnel =
            Tunnel { ingress, environment, destination, naming, client, held, trail, record };
        match Box::pin(tunnel.admit(&self.gateway)).await {
            Ok(passage) => {
                // A client that has gone is met again by whoever reads from it.
                drop(message::answer(self.socket(), Reply::Succeeded).await);
                let Client { gateway, accepted, place: _place, .. } = self;
                let io = Prefixed::new(Default::default(), accepted.socket);
                Box::pin(tunnel::run(gateway, tunnel, passage, io)).await;
            }
            Err(NotAdmitted { denial, .. }) => {
                tunnel.record.finish();
                self.reply(reply_to(denial.reason)).await;
            }
        }
    }

    /// Says what there is to say, and keeps account of it.
    async fn refuse(self, refusal: Refusal) {
        let (reason, message, reply) = match refusal {
            Refusal::Silence => return,
            Refusal::Fault(fault) => (fault.reason(), fault.to_string(), fault.reply()),
            Refusal::Denied(denial) => (Some(denial.reason), denial.message, None),
        };
        let known = self.provenance.known().cloned();
        if let Ok(mut record) = self.record(known.as_ref()).await {
            if let Some(reason) = reason {
                record.refused(reason);
            }
            tunnel::close(record, &message);
        }
        match reply {
            Some(reply) => self.reply(reply).await,
            None => serve::close(self.accepted.socket).await,
        }
    }

    /// Denies a request that was read.
    async fn deny(&mut self, denial: Denial) -> Refusal {
        drop(message::answer(self.socket(), Reply::Failed).await);
        Refusal::Denied(denial)
    }

    /// The last answer, and the close.
    async fn reply(mut self, reply: Reply) {
        drop(message::answer(self.socket(), reply).await);
        serve::close(self.accepted.socket).await;
    }

    async fn record(
        &self,
        of: Option<&Arc<Environment>>,
    ) -> Result<Record, crate::audit::SinkFull> {
        let environment = of.map(|environment| environment.id().clone());
        let beginning =
            Beginning { ingress: Ingress::Socks, client: self.accepted.client, environment };
        self.gateway.audit().tunnel(beginning).await
    }

    fn socket(&mut self) -> &mut Socket {
        &mut self.accepted.socket
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

/// RFC 1928 §6 has few words for the reasons there are.
fn reply_to(reason: Reason) -> Reply {
    match reason {
        Reason::OriginDns => Reply::HostUnreachable,
        Reason::OriginConnect => Reply::ConnectionRefused,
        _ => Reply::NotAllowed,
    }
}

fn unidentified() -> Denial {
    Denial::new(
        Reason::ProxyAuthenticationRequired,
        "neither the connection nor a user (the environment's id) and password (its token) say \
         which environment this is",
    )
}
