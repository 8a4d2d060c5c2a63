//! Who may ask the gateway about itself, and what is answered?
//!
//! An HTTP API on a Unix socket (default) or a loopback address, behind a key. Only `/healthz` and
//! `/readyz` need none: they say nothing that a supervisor's probe may not know.

mod answer;
mod api;
mod connection;
mod credentials;
mod environments;
mod explain;
mod hooks;
mod key;
mod page;
mod reserve;
mod sent;
mod socket;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use outgate_credentials::{Asker, Credentials};
use outgate_hooks::{Answer, Phase};
use outgate_policy::AddressRules;
use outgate_proxy::{AuditSink, Gateway};
use tokio::sync::watch;

pub(crate) use self::key::ManagementKey;
use self::reserve::Reserve;
pub(crate) use self::socket::{SocketError, bind_unix};
use crate::config::BindAddress;
use crate::hooks::Unasked;
use crate::reload::Rereads;

/// What the API shows of the gateway, as it is when asked.
#[derive(Clone)]
pub(crate) struct Shown {
    /// What it lacks to be ready.
    pub(crate) missing: View<Vec<&'static str>>,
    /// What it can't use, though it serves.
    pub(crate) problems: View<Vec<String>>,
    /// The text for Prometheus.
    pub(crate) metrics: View<String>,
    /// Whether a tool call of an environment may run: the environment's id, when, the event.
    pub(crate) hooks: Arc<dyn Fn(String, Phase, Bytes) -> Asked + Send + Sync>,
}

/// What hooks answer, in time.
pub(crate) type Asked = Pin<Box<dyn Future<Output = Result<Answer, Unasked>> + Send>>;

/// What the API changes.
#[derive(Clone)]
pub(crate) struct Changed {
    pub(crate) credentials: Credentials,
    pub(crate) audit: AuditSink,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) rules: watch::Receiver<AddressRules>,
    /// `None` where no environment is made.
    pub(crate) rereads: Option<Rereads>,
}

type View<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// The bound management address.
#[derive(Debug)]
pub(crate) struct Management {
    socket: Socket,
    address: BindAddress,
    /// From the first on, before clients can take what there is.
    reserve: Reserve,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf },
}

impl Management {
    /// Binds the address; a Unix socket is for the gateway's user alone.
    pub(crate) fn bind(address: &BindAddress) -> Result<Management, SocketError> {
        match address {
            BindAddress::Tcp(wanted) => {
                let failed = |error| SocketError::Bind { address: address.to_string(), error };
                let listener = TcpListener::bind(wanted).map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                Ok(Management::new(Socket::Tcp(listener), BindAddress::Tcp(bound)))
            }
            BindAddress::Unix(path) => {
                let listener = bind_unix(path, 0o600)?;
                let socket = Socket::Unix { listener, path: path.clone() };
                Ok(Management::new(socket, address.clone()))
            }
        }
    }

    fn new(socket: Socket, address: BindAddress) -> Management {
        Management { socket, address, reserve: Reserve::new() }
    }

    /// Where it really listens.
    pub(crate) fn address(&self) -> &BindAddress {
        &self.address
    }

    /// Answers until `stop` turns true or its sender is gone; the socket file goes with it.
    pub(crate) async fn serve(
        self,
        key: ManagementKey,
        shown: Shown,
        changed: Changed,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let asker = match self.socket {
            Socket::Tcp(_) => Asker::Remote,
            Socket::Unix { .. } => Asker::Local,
        };
        let api = api::router(key, shown, changed, asker);
        match self.socket {
            Socket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                connection::accept(listener, self.reserve, api, stop).await;
            }
            Socket::Unix { listener, path } => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::UnixListener::from_std(listener)?;
                connection::accept(listener, self.reserve, api, stop).await;
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
