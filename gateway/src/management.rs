//! Who may ask the gateway about itself, and what is answered?
//!
//! An HTTP API on a Unix socket (default) or a loopback address, behind a key. Only `/healthz` and
//! `/readyz` need none: they say nothing that a supervisor's probe may not know.

mod api;
mod connection;
mod key;
mod socket;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

pub(crate) use self::key::ManagementKey;
pub(crate) use self::socket::{SocketError, bind_unix};
use crate::config::BindAddress;

/// What the API shows of the gateway, as it is when asked.
#[derive(Clone)]
pub(crate) struct Shown {
    /// What it lacks to be ready.
    pub(crate) missing: View<Vec<&'static str>>,
    /// What it can't use, though it serves.
    pub(crate) problems: View<Vec<String>>,
    /// The text for Prometheus.
    pub(crate) metrics: View<String>,
}

type View<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// The bound management address.
#[derive(Debug)]
pub(crate) struct Management {
    socket: Socket,
    address: BindAddress,
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
                Ok(Management { socket: Socket::Tcp(listener), address: BindAddress::Tcp(bound) })
            }
            BindAddress::Unix(path) => {
                let listener = bind_unix(path, 0o600)?;
                let socket = Socket::Unix { listener, path: path.clone() };
                Ok(Management { socket, address: address.clone() })
            }
        }
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
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let api = api::router(key, shown);
        match self.socket {
            Socket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                connection::accept(listener, api, stop).await;
            }
            Socket::Unix { listener, path } => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::UnixListener::from_std(listener)?;
                connection::accept(listener, api, stop).await;
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
