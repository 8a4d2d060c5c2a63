//! What was a company's proxy asked, byte by byte, and what did it do?
//!
//! It speaks CONNECT and nothing else. It dials whatever it is asked for, private or not: what holds
//! it back must be whoever asks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::pki::Identity;

/// More than any head has.
const LONGEST_HEAD: usize = 64 << 10;

/// The answer that opens a tunnel.
const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n";

/// A running proxy. Dropped, it accepts no more.
pub struct UpstreamProxy {
    address: SocketAddr,
    seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A proxy about to be started.
pub struct Builder {
    address: SocketAddr,
    identity: Option<Identity>,
    names: HashMap<String, SocketAddr>,
    answer: Box<Answering>,
}

/// What it does when it was asked.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Dials what it was asked for, and says so.
    Tunnel,
    /// The same, its word and the first that the origin says in one piece.
    TunnelWithBanner,
    /// Says this and closes.
    Say(Vec<u8>),
    /// Says this one byte at a time.
    Drip(Vec<u8>, Duration),
    /// Says nothing, and keeps the connection.
    Silence,
}

type Answering = dyn Fn(&str) -> Reply + Send + Sync;

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

struct Server {
    seen: Arc<Seen>,
    tls: Option<TlsAcceptor>,
    names: HashMap<String, SocketAddr>,
    answer: Box<Answering>,
}

impl UpstreamProxy {
    /// A proxy at `ADDRESS:PORT` that opens every tunnel.
    ///
    /// # Panics
    /// When the address is none.
    pub fn at(address: &str) -> Builder {
        Builder {
            address: address.parse().unwrap_or_else(|_| panic!("{address} is no address")),
            identity: None,
            names: HashMap::new(),
            answer: Box::new(|_| Reply::Tunnel),
        }
    }

    /// How many connections were opened to it.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Every head that it was sent, whole.
    pub fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().expect("a push never panics").clone()
    }

    /// What it was asked to connect to, in order.
    pub fn asked(&self) -> Vec<String> {
        let target = |head: &String| head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.heads().iter().map(target).collect()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for UpstreamProxy {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // Its panic would have failed the test by another way.
            let _ = thread.join();
        }
    }
}

impl Builder {
    /// Speaks TLS, with this certificate.
    #[must_use]
    pub fn tls(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Knows where `AUTHORITY` is, which it is asked for by name.
    ///
    /// # Panics
    /// When the address is none.
    #[must_use]
    pub fn knows(mut self, authority: &str, address: &str) -> Self {
        self.names.insert(authority.to_owned(), address.parse().expect("an address with a port"));
        self
    }

    /// Does this when it is asked; the whole head is given.
    #[must_use]
    pub fn answer(mut self, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        self.answer = Box::new(answer);
        self
    }

    /// Binds and accepts.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn start(self) -> UpstreamProxy {
        let seen = Arc::new(Seen::default());
        let tls = self.identity.map(acceptor);
        let server =
            Server { seen: Arc::clone(&seen), tls, names: self.names, answer: self.answer };
        let (stop, stopped) = oneshot::channel();
        let (bound, listening) = std::sync::mpsc::channel();
        let address = self.address;
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::bind(address).await.expect("the address is free");
                bound.send(()).expect("the test waits");
                tokio::select! {
                    () = Arc::new(server).accept(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        listening.recv().unwrap_or_else(|_| panic!("cannot listen on {address}"));
        UpstreamProxy { address, seen, stop: Some(stop), thread: Some(thread) }
    }
}

impl Server {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (socket, _) = listener.accept().await.expect("descriptors are left");
            self.seen.connections.fetch_add(1, Ordering::SeqCst);
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                match &server.tls {
                    None => server.serve(socket).await,
                    Some(tls) => {
                        if let Ok(session) = tls.accept(socket).await {
                            server.serve(session).await;
                        }
                    }
                }
            });
        }
    }

    async fn serve<IO: AsyncRead + AsyncWrite + Unpin>(&self, mut io: IO) {
        let Some(head) = read_head(&mut io).await else { return };
        self.seen.heads.lock().expect("a push never panics").push(head.clone());
        match (self.answer)(&head) {
            Reply::Tunnel => self.tunnel(io, &head, false).await,
            Reply::TunnelWithBanner => self.tunnel(io, &head, true).await,
            Reply::Say(bytes) => {
                // Whoever asked may have gone.
                let _ = io.write_all(&bytes).await;
                let _ = io.shutdown().await;
            }
            Reply::Drip(bytes, pause) => {
                for byte in bytes {
                    if io.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                }
            }
            Reply::Silence => {
                let _ = io.read_u8().await;
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a proxy of the test's own dials what it is asked"
    )]
    async fn tunnel<IO: AsyncRead + AsyncWrite + Unpin>(&self, mut io: IO, head: &str, late: bool) {
        let target = head.split(' ').nth(1).unwrap_or_default();
        let known = self.names.get(target).copied().or_else(|| target.parse().ok());
        let dialled = match known {
            Some(address) => TcpStream::connect(address).await.ok(),
            None => None,
        };
        let Some(mut origin) = dialled else {
            let _ = io.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
            return;
        };
        let mut word = OPEN.to_vec();
        if late {
            let mut banner = vec![0; 1 << 10];
            let length = origin.read(&mut banner).await.unwrap_or(0);
            word.extend_from_slice(&banner[..length]);
        }
        if io.write_all(&word).await.is_ok() {
            let _ = copy_bidirectional(&mut io, &mut origin).await;
        }
    }
}

async fn read_head<IO: AsyncRead + Unpin>(io: &mut IO) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
        assert!(head.len() < LONGEST_HEAD, "no head is that long");
    }
    Some(String::from_utf8(head).expect("heads are text"))
}

fn acceptor(identity: Identity) -> TlsAcceptor {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .expect("the key belongs to the leaf");
    TlsAcceptor::from(Arc::new(config))
}
