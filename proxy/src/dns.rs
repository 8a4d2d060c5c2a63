//! How are the names of a sandbox answered?
//!
//! By the gateway itself: no question is forwarded, so that none carries anything out. `message`
//! reads and writes, `zone` knows the answers, `udp` and `tcp` are the two ways to ask. Whose
//! question it is, is known as for any connection; who belongs to nobody is refused.
//!
//! There is no audit line of a question: it has no effect that a line could tell of, and what a
//! name is then used for has its own. Questions are counted by the kind of their answer.

mod count;
mod datagrams;
mod message;
mod tcp;
mod udp;
pub(crate) mod zone;

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use outgate_policy::EnvironmentId;
use tokio::task::JoinSet;

pub(crate) use self::count::Answers;
use self::zone::Zone;
use crate::gateway::Gateway;
use crate::ingress::identity::Ownership;
use crate::ingress::interface;
use crate::listener::Owner;
use crate::snapshot::Environment;

/// After a failed receive or accept: long enough not to spin, short enough not to be missed.
const PAUSE: Duration = Duration::from_millis(100);

/// A name server's sockets, bound already.
pub struct DnsListener {
    udp: UdpSocket,
    tcp: TcpListener,
    owner: Arc<Owner>,
}

impl DnsListener {
    /// Answers on `udp` and `tcp`; whoever asks there belongs where `ownership` says. On any other
    /// address than loopback, the source address or the interface must prove it besides.
    pub fn new(udp: UdpSocket, tcp: TcpListener, ownership: Ownership) -> io::Result<DnsListener> {
        let reachable = |address: io::Result<std::net::SocketAddr>| {
            address.map(|address| !address.ip().to_canonical().is_loopback())
        };
        let public = reachable(udp.local_addr())? || reachable(tcp.local_addr())?;
        DnsListener::over(udp, tcp, Owner { ownership, public })
    }

    /// The same for sockets inside one sandbox: nobody else can reach them.
    pub fn sealed(udp: UdpSocket, tcp: TcpListener, id: EnvironmentId) -> io::Result<DnsListener> {
        DnsListener::over(udp, tcp, Owner { ownership: Ownership::Named(id), public: false })
    }

    fn over(udp: UdpSocket, tcp: TcpListener, owner: Owner) -> io::Result<DnsListener> {
        datagrams::prepare(&udp)?;
        interface::note(&tcp)?;
        Ok(DnsListener { udp, tcp, owner: Arc::new(owner) })
    }

    /// Another handle to the same sockets, for another worker.
    pub fn try_clone(&self) -> io::Result<DnsListener> {
        Ok(DnsListener {
            udp: self.udp.try_clone()?,
            tcp: self.tcp.try_clone()?,
            owner: Arc::clone(&self.owner),
        })
    }
}

/// Answers on all `listeners` until the set is dropped.
pub(crate) fn answer_all(gateway: &Arc<Gateway>, listeners: Vec<DnsListener>) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    for DnsListener { udp, tcp, owner } in listeners {
        loops.spawn(udp::answer(Arc::clone(gateway), Arc::clone(&owner), udp));
        loops.spawn(tcp::answer(Arc::clone(gateway), owner, tcp));
    }
    loops
}

/// The answer to a message from a client of `environment`; `None` where none is due.
fn answer(gateway: &Gateway, environment: Option<&Environment>, message: &[u8]) -> Option<Vec<u8>> {
    let zone = environment.and_then(|environment| Zone::of(environment, gateway.captures_ipv6()));
    let (answer, kind) = message::respond(message, zone.as_ref())?;
    gateway.dns_answers().count(kind);
    Some(answer)
}

/// The answer to a message in a sandbox that has asked nothing before, for fuzz targets.
#[cfg(any(test, fuzzing))]
pub(crate) fn answer_alone(message: &[u8]) -> Option<Vec<u8>> {
    let names = crate::names::Names::new(2);
    message::respond(message, Some(&Zone::new(&names, true))).map(|(answer, _)| answer)
}
