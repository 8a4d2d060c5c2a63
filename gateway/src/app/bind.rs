//! Where do clients come in, and whose are they there?

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::socket::{Backlog, listen};
use outgate_proxy::{Environments, Listener, Ownership};

use crate::config::{BindAddress, Settings};
use crate::environments::ownership;
use crate::failure::Failure;
use crate::management::bind_unix;

/// Every explicit listener, bound.
#[derive(Default)]
pub(super) struct Sockets {
    pub(super) listeners: Vec<Listener>,
    /// Where they really listen.
    pub(super) addresses: Vec<BindAddress>,
}

impl Sockets {
    /// Binds all of them, or fails.
    pub(super) fn bind(
        settings: &Settings,
        environments: &Environments,
    ) -> Result<Sockets, Failure> {
        let mut sockets = Sockets::default();
        for listener in &settings.explicit {
            let owner = ownership(listener, environments, &settings.environments)?;
            match &listener.bind {
                BindAddress::Tcp(address) => sockets.add_tcp(*address, owner)?,
                BindAddress::Unix(path) => sockets.add_unix(path, owner)?,
            }
        }
        Ok(sockets)
    }

    fn add_tcp(&mut self, wanted: SocketAddr, owner: Ownership) -> Result<(), Failure> {
        let failed = |error| Failure::start(format_args!("listener {wanted}: {error}"));
        let (socket, bound) = listen_tcp(wanted).map_err(failed)?;
        self.listeners.push(Listener::tcp(socket, owner).map_err(failed)?);
        self.addresses.push(BindAddress::Tcp(bound));
        Ok(())
    }

    fn add_unix(&mut self, path: &Path, owner: Ownership) -> Result<(), Failure> {
        let socket = listen_unix(path)?;
        self.listeners.push(Listener::unix(socket, owner));
        self.addresses.push(BindAddress::Unix(path.to_owned()));
        Ok(())
    }
}

fn listen_tcp(wanted: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(wanted)?;
    // std asks for a short queue; a burst of clients would meet dropped SYNs.
    listen(&socket, Backlog::MAXCONN)?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// The group may come in too: a sandbox often runs as another user of one group.
fn listen_unix(path: &Path) -> Result<UnixListener, Failure> {
    let socket = bind_unix(path, 0o660).map_err(Failure::start)?;
    fs::set_permissions(path, Permissions::from_mode(0o660))
        .and_then(|()| listen(&socket, Backlog::MAXCONN).map_err(io::Error::from))
        .map_err(|error| {
            Failure::start(format_args!("listener unix:{}: {error}", path.display()))
        })?;
    Ok(socket)
}
