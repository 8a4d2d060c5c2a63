//! How do connections come in, and what if they can't?
//!
//! One accept loop per listener and worker. An error of `accept` never ends it: when descriptors
//! run out it waits, says so, and goes on as soon as some are free.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::connection;
use crate::gateway::Gateway;
use crate::ingress::identity::Ownership;
use crate::ingress::interface::{self, Interface};

/// Pauses after a failed accept: long enough not to spin, short enough to be back within 1 s.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// An explicit proxy's listening socket, bound already.
pub struct Listener {
    socket: ListeningSocket,
    owner: Arc<Owner>,
}

/// Whose a listener is.
pub(crate) struct Owner {
    pub(crate) ownership: Ownership,
    /// Others than this machine's processes can reach it: coming in by it proves nothing.
    pub(crate) public: bool,
}

enum ListeningSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// A connection that came in.
pub(crate) struct Accepted {
    pub(crate) socket: Socket,
    /// The client's address; a Unix socket has none.
    pub(crate) client: Option<IpAddr>,
    /// Where on this machine it came in; a Unix socket has no such place.
    pub(crate) interface: Option<Interface>,
    /// Whose listener it came in by.
    pub(crate) owner: Arc<Owner>,
}

/// A client's socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens on `socket`; whoever comes in by it belongs where `ownership` says. On any other
    /// address than loopback, its source address, interface or a token must prove it besides.
    pub fn tcp(socket: std::net::TcpListener, ownership: Ownership) -> io::Result<Listener> {
        let public = !socket.local_addr()?.ip().to_canonical().is_loopback();
        interface::note(&socket)?;
        let owner = Arc::new(Owner { ownership, public });
        Ok(Listener { socket: ListeningSocket::Tcp(socket), owner })
    }

    /// The same over a Unix socket, which proves it alone.
    pub fn unix(socket: std::os::unix::net::UnixListener, ownership: Ownership) -> Listener {
        let owner = Arc::new(Owner { ownership, public: false });
        Listener { socket: ListeningSocket::Unix(socket), owner }
    }

    /// Another handle to the same socket, for another worker.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = match &self.socket {
            ListeningSocket::Tcp(socket) => ListeningSocket::Tcp(socket.try_clone()?),
            ListeningSocket::Unix(socket) => ListeningSocket::Unix(socket.try_clone()?),
        };
        Ok(Listener { socket, owner: Arc::clone(&self.owner) })
    }
}

/// Accepts on all `listeners` until the gateway drains and its connections have ended.
pub(crate) async fn accept_all(gateway: &Arc<Gateway>, listeners: Vec<Listener>) {
    let loops: FuturesUnordered<_> = listeners.into_iter().map(|l| accept(gateway, l)).collect();
    loops.collect::<()>().await;
}

async fn accept(gateway: &Arc<Gateway>, listener: Listener) {
    let Listener { socket, owner } = listener;
    let registered = match socket.register() {
        Ok(registered) => registered,
        Err(error) => {
            tracing::error!(%error, "a listener can't be served");
            return;
        }
    };
    let mut connections = JoinSet::new();
    accept_until_drain(gateway, &owner, registered, &mut connections).await;
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(gateway.limits().drain, ended).await.is_err() {
        tracing::warn!(cut = connections.len(), "drain is over; what still runs is cut");
    }
}

/// Closes the listening socket when it returns: new clients are refused at once.
async fn accept_until_drain(
    gateway: &Arc<Gateway>,
    owner: &Arc<Owner>,
    socket: Registered,
    connections: &mut JoinSet<()>,
) {
    let mut drain = gateway.draining();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = drain.begun() => return,
        };
        match accepted {
            Ok((socket, client, interface)) => {
                pause = SHORTEST_PAUSE;
                let accepted = Accepted { socket, client, interface, owner: Arc::clone(owner) };
                connections.spawn(connection::explicit(Arc::clone(gateway), accepted));
            }
            // The client gave up between its SYN and our accept.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if pause == SHORTEST_PAUSE {
                    tracing::error!(%error, "connections can't be accepted; trying again");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// A listening socket on this worker's event loop.
enum Registered {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListeningSocket {
    fn register(self) -> io::Result<Registered> {
        Ok(match self {
            ListeningSocket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Registered::Tcp(TcpListener::from_std(socket)?)
            }
            ListeningSocket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Registered::Unix(UnixListener::from_std(socket)?)
            }
        })
    }
}

impl Registered {
    async fn accept(&self) -> io::Result<(Socket, Option<IpAddr>, Option<Interface>)> {
        match self {
            Registered::Tcp(listener) => {
                let (stream, client) = listener.accept().await?;
                // Without it answers wait 40 ms for a delayed ACK behind TLS session tickets.
                stream.set_nodelay(true)?;
                let interface = interface::of(&stream, client);
                Ok((Socket::Tcp(stream), Some(client.ip().to_canonical()), Some(interface)))
            }
            Registered::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None, None))
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, to),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, to),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, from),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, from),
            Socket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, from),
        }
    }

    /// Both kinds of socket can.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Sockets keep nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
