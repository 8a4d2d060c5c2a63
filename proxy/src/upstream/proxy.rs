//! How does the operator's upstream proxy lead to an origin?
//!
//! By CONNECT (RFC 9110 §9.3.6). The proxy is the operator's own word, so its address may be private
//! or loopback, for this purpose and no other; only the gateway itself it can't be.

mod answer;
mod authorization;
mod hop;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ipnet::IpNet;
use outgate_certs::OriginTls;
use outgate_policy::{Destination, HostPattern};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

pub use self::authorization::ProxyAuthorization;
pub(crate) use self::hop::{Hop, Trail};
use super::dial::{DialError, dial};
use super::stream::OriginStream;
use super::tls::{TlsError, handshake};
use crate::gateway::Gateway;
use crate::ingress::prefixed::Prefixed;
use crate::resolve::ResolveError;

/// How everything that leaves goes out, `[upstream]` in the operator's file.
#[derive(Clone, Debug, Default)]
pub enum Upstream {
    /// To the origins themselves.
    #[default]
    Direct,
    /// Through another proxy.
    Proxy(Arc<UpstreamProxy>),
}

/// The operator's upstream proxy.
#[derive(Debug)]
pub struct UpstreamProxy {
    /// Where it listens.
    pub at: Destination,
    /// How it is spoken to.
    pub security: ProxySecurity,
    /// What it wants to know of us.
    pub authorization: Option<ProxyAuthorization>,
    /// What it is not for.
    pub spared: Vec<Spared>,
    /// It is given names, which it looks up itself: the address rules can't hold for these.
    pub resolves: bool,
}

/// How a proxy is spoken to.
pub enum ProxySecurity {
    /// In clear: so is what it is sent, but for what is inside the tunnel.
    Clear,
    /// Over TLS, verified for its name.
    Tls(OriginTls),
}

/// What is reached directly, though there is a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spared {
    /// These names, on this port or on every.
    Names(HostPattern, Option<u16>),
    /// These addresses, also where a name leads there.
    Addresses(IpNet, Option<u16>),
}

/// Why a proxy leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("can't be looked up: {0}")]
    LookUp(ResolveError),
    #[error("can't be reached: {0}")]
    Connect(Box<DialError>),
    #[error("has no TLS that can be trusted: {0}")]
    Tls(TlsError),
    #[error("broke off: {0}")]
    Io(#[from] io::Error),
    #[error("closed the connection without an answer")]
    Closed,
    #[error("answered something that is not HTTP")]
    NotHttp,
    #[error("answered with a head over {0} bytes")]
    Long(usize),
    #[error("answered {0}{hint}", hint = hint(*.0))]
    Status(u16),
}

impl UpstreamProxy {
    /// Whether `destination` is reached without it, as far as its name tells.
    pub(super) fn spares(&self, destination: &Destination) -> bool {
        self.spared.iter().any(|spared| match spared {
            Spared::Names(pattern, port) => {
                pattern.matches(&destination.host) && is_on(*port, destination.port)
            }
            Spared::Addresses(..) => false,
        })
    }

    /// Whether `address` is reached without it.
    pub(super) fn spares_address(&self, address: SocketAddr) -> bool {
        self.spared.iter().any(|spared| match spared {
            Spared::Names(..) => false,
            Spared::Addresses(block, port) => {
                block.contains(&address.ip()) && is_on(*port, address.port())
            }
        })
    }

    /// A tunnel to `authority` for what came by `trail`. Bounded by whoever waits.
    pub(super) async fn tunnel(
        &self,
        gateway: &Gateway,
        authority: &str,
        trail: &Trail,
    ) -> Result<OriginStream, DialError> {
        self.open(gateway, authority, &gateway.hop().line(trail))
            .await
            .map_err(|error| DialError::Proxy { at: self.at.to_string(), error })
    }

    async fn open(
        &self,
        gateway: &Gateway,
        authority: &str,
        marks: &str,
    ) -> Result<OriginStream, ProxyError> {
        let Destination { host, port } = &self.at;
        let found = gateway.resolver().find_proxy(host, *port).await;
        let limits = gateway.limits();
        let dialled = dial(&found.map_err(ProxyError::LookUp)?, limits).await;
        let (stream, _) = dialled.map_err(|error| ProxyError::Connect(Box::new(error)))?;
        Ok(match &self.security {
            ProxySecurity::Clear => {
                let io = self.connect(stream, authority, marks).await?;
                OriginStream::Tunnel(Box::new(io))
            }
            ProxySecurity::Tls(tls) => {
                let session = handshake(stream, host, tls, limits).await;
                let session = session.map_err(ProxyError::Tls)?;
                let io = self.connect(session, authority, marks).await?;
                OriginStream::SecureTunnel(Box::new(io))
            }
        })
    }

    /// Asks for the tunnel, and for nothing else: what the client sent is for the origin.
    async fn connect<IO: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut io: IO,
        authority: &str,
        marks: &str,
    ) -> Result<Prefixed<IO>, ProxyError> {
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{marks}");
        let mut head = Zeroizing::new(head);
        if let Some(authorization) = &self.authorization {
            authorization.write(&mut head);
        }
        head.push_str("\r\n");
        io.write_all(head.as_bytes()).await?;
        io.flush().await?;
        let rest = answer::read(&mut io).await?;
        Ok(Prefixed::new(rest, io))
    }
}

impl ProxyError {
    /// Whether it would be the same for every destination.
    pub(super) fn is_of_the_proxy(&self) -> bool {
        match self {
            ProxyError::LookUp(_)
            | ProxyError::Connect(_)
            | ProxyError::Tls(_)
            | ProxyError::NotHttp
            | ProxyError::Long(_)
            | ProxyError::Status(407) => true,
            ProxyError::Io(_) | ProxyError::Closed | ProxyError::Status(_) => false,
        }
    }

    /// What a client may know of it: no address, and nothing of what the proxy said but its status.
    pub(super) fn said_to_client(&self) -> String {
        match self {
            ProxyError::LookUp(_) => "can't be looked up".to_owned(),
            ProxyError::Connect(_) => "can't be reached".to_owned(),
            ProxyError::Tls(_) => "has no TLS that can be trusted".to_owned(),
            ProxyError::Io(_) => "broke off".to_owned(),
            ProxyError::Closed | ProxyError::NotHttp | ProxyError::Long(_) => self.to_string(),
            ProxyError::Status(status) => format!("answered {status}"),
        }
    }
}

/// The key is a secret, the rest says nothing.
impl fmt::Debug for ProxySecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxySecurity::Clear => "Clear",
            ProxySecurity::Tls(_) => "Tls",
        })
    }
}

fn is_on(wanted: Option<u16>, port: u16) -> bool {
    wanted.is_none_or(|wanted| wanted == port)
}

fn hint(status: u16) -> &'static str {
    match status {
        407 => ": check the user and the password in [upstream] proxy",
        _ => "",
    }
}
