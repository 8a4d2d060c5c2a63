//! How do connections come in, and what if they can't?
//!
//! One accept loop per listener and worker. An error of `accept` never ends it: when descriptors
//! run out it waits, says so, and goes on as soon as some are free.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use outgate_policy::EnvironmentId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::connection;
use crate::gateway::Gateway;
use crate::ingress::Ingress;
use crate::ingress::identity::Ownership;
use crate::ingress::interface::{self, Interface};

/// Pauses after a failed accept: long enough not to spin, short enough to be back within 1 s.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A listening socket for clients, bound already.
pub struct Listener {
    ingress: Ingress,
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
    pub(crate) ingress: Ingress,
    pub(crate) socket: Socket,
    /// The client's address; a Unix socket has none.
    pub(crate) client: Option<IpAddr>,
    /// Where on this machine it came in; a Unix socket has no such place.
    pub(crate) interface: Option<Interface>,
    /// Where its listener listens; a Unix socket has no address.
    pub(crate) listener: Option<SocketAddr>,
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
    pub fn tcp(
        ingress: Ingress,
        socket: std::net::TcpListener,
        ownership: Ownership,
    ) -> io::Result<Listener> {
        let public = !socket.local_addr()?.ip().to_canonical().is_loopback();
        interface::note(&socket)?;
        let owner = Arc::new(Owner { ownership, public });
        Ok(Listener { ingress, socket: ListeningSocket::Tcp(socket), owner })
    }

    /// The same for a socket inside one sandbox: nobody else can reach it.
    pub fn sealed(
        ingress: Ingress,
        socket: std::net::TcpListener,
        id: EnvironmentId,
    ) -> io::Result<Listener> {
        interface::note(&socket)?;
        let owner = Arc::new(Owner { ownership: Ownership::Named(id), public: false });
        Ok(Listener { ingress, socket: ListeningSocket::Tcp(socket), owner })
    }

    /// The same over a Unix socket, which proves it alone.
    pub fn unix(
        ingress: Ingress,
        socket: std::os::unix::net::UnixListener,
        ownership: Ownership,
    ) -> Listener {
        let owner = Arc::new(Owner { ownership, public: false });
        Listener { ingress, socket: ListeningSocket::Unix(socket), owner }
    }

    /// Whether connections to any IPv6 address may be led here.
    pub fn captures_ipv6(&self) -> bool {
        match &self.socket {
            ListeningSocket::Tcp(socket) if self.ingress == Ingress::Transparent => {
                socket.local_addr().is_ok_and(|address| address.is_ipv6())
            }
            ListeningSocket::Tcp(_) | ListeningSocket::Unix(_) => false,
        }
    }

    /// Another handle to the same socket, for another worker.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = match &self.socket {
            ListeningSocket::Tcp(socket) => ListeningSocket::Tcp(socket.try_clone()?),
            ListeningSocket::Unix(socket) => ListeningSocket::Unix(socket.try_clone()?),
        };
        Ok(Listener { ingress: self.ingress, socket, owner: Arc::clone(&self.owner) })
    }
}

/// Accepts on all `listeners` until the gateway drains and its connections have ended.
pub(crate) async fn accept_all(gateway: &Arc<Gateway>, listeners: Vec<Listener>) {
    let loops: FuturesUnordered<_> = listeners.into_iter().map(|l| accept(gateway, l)).collect();
    loops.collect::<()>().await;
}

async fn accept(gateway: &Arc<Gateway>, listener: Listener) {
    let Listener { ingress, socket, owner } = listener;
    let registered = match socket.register() {
        Ok(registered) => registered,
        Err(error) => {
            tracing::error!(%error, "a listener can't be served");
            return;
        }
    };
    let mut connections = JoinSet::new();
    accept_until_drain(gateway, (ingress, &owner), registered, &mut connections).await;
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(gateway.limits().drain, ended).await.is_err() {
        tracing::warn!(cut = connections.len(), "drain is over; what still runs is cut");
    }
}

/// Closes the listening socket when it returns: new clients are refused at once.
async fn accept_until_drain(
    gateway: &Arc<Gateway>,
    (ingress, owner): (Ingress, &Arc<Owner>),
    socket: Registered,
    connections: &mut JoinSet<()>,
) {
    let mut drain = gateway.draining();
    let mut pause = SHORTEST_PAUSE;
    let listener = socket.address();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = drain.begun() => return,
        };
        match accepted {
            Ok((socket, client, interface)) => {
                pause = SHORTEST_PAUSE;
                let owner = Arc::clone(owner);
                let accepted = Accepted { ingress, socket, client, interface, listener, owner };
                connections.spawn(connection::serve(Arc::clone(gateway), accepted));
            }
            // The client gave up between its SYN and our accept.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                gateway.accepting().failed();
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
    fn address(&self) -> Option<SocketAddr> {
        match self {
            Registered::Tcp(listener) => listener.local_addr().ok(),
            Registered::Unix(_) => None,
        }
    }

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
