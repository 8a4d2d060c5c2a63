//! What does a request look like when it arrives?
//!
//! The demo's servers, on loopback: an HTTPS origin with a CA of its own, and a plain service that
//! nobody in a sandbox should meet. They remember the head of every request. Small and blocking,
//! one thread per connection.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use outgate_certs::{Authority, CertsError, ClientTls, Leaves};
use rustls::pki_types::ServerName;
use rustls::server::{Accepted, Acceptor};
use rustls::{ServerConnection, Stream};

use crate::failure::Failure;

/// Nothing here takes longer; a thread that waits for ever would outlive the demo's steps.
const PATIENCE: Duration = Duration::from_secs(30);
/// The demo's requests have a head of a few hundred bytes.
const HEAD_BYTES: usize = 16 << 10;

/// A server, and what it has been sent so far.
pub(super) struct Origin {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

/// The head of a request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Received(String);

impl Origin {
    /// Starts an HTTPS server whose CA is `ca.pem` in `folder`. Every answer is `answer`.
    pub(super) fn https(folder: &Path, answer: &'static str) -> Result<Origin, Failure> {
        let identity = Identity::new(folder).map_err(Failure::start)?;
        Origin::start(move |mut socket, seen| {
            let mut connection = identity.accept(hello(&mut socket)?)?;
            converse(&mut Stream::new(&mut connection, &mut socket), seen, answer)
        })
    }

    /// Starts a server without TLS.
    pub(super) fn plain(answer: &'static str) -> Result<Origin, Failure> {
        Origin::start(move |mut socket, seen| converse(&mut socket, seen, answer))
    }

    fn start(
        serve: impl Fn(TcpStream, &Mutex<Vec<Received>>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Origin, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::start)?;
        let port = listener.local_addr().map_err(Failure::start)?.port();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (serve, seen) = (Arc::new(serve), Arc::clone(&received));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (serve, seen) = (Arc::clone(&serve), Arc::clone(&seen));
                thread::spawn(move || {
                    let prepared = socket
                        .set_nodelay(true)
                        .and_then(|()| socket.set_read_timeout(Some(PATIENCE)));
                    // A peer that hangs up early shows in the step that expected an answer.
                    let _ = prepared.and_then(|()| serve(socket, &seen));
                });
            }
        });
        Ok(Origin { port, received })
    }

    /// Its port on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Takes the requests that arrived since the last call.
    pub(super) fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut lock(&self.received))
    }
}

impl Received {
    /// Every value of a header.
    pub(super) fn header(&self, name: &str) -> Vec<&str> {
        let lines = self.0.lines().filter_map(|line| line.split_once(':'));
        let named = lines.filter(|(given, _)| given.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect()
    }
}

/// Whoever the SNI asks for.
struct Identity {
    leaves: Leaves,
    tls: ClientTls,
}

impl Identity {
    fn new(folder: &Path) -> Result<Identity, CertsError> {
        let authority = Arc::new(Authority::open_or_create(folder)?);
        Ok(Identity { leaves: Leaves::new(authority, 16)?, tls: ClientTls::new(&[b"http/1.1"])? })
    }

    fn accept(&self, hello: Accepted) -> io::Result<ServerConnection> {
        let name = hello.client_hello().server_name().unwrap_or_default().to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let leaf = self.leaves.leaf(&name).map_err(io::Error::other)?;
        hello.into_connection(self.tls.config(leaf)).map_err(|(error, _)| io::Error::other(error))
    }
}

fn hello(socket: &mut TcpStream) -> io::Result<Accepted> {
    let mut acceptor = Acceptor::default();
    loop {
        if acceptor.read_tls(socket)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, _)) => return Err(io::Error::other(error)),
        }
    }
}

fn converse(
    io: &mut (impl Read + Write),
    seen: &Mutex<Vec<Received>>,
    answer: &str,
) -> io::Result<()> {
    while let Some(head) = read_head(io)? {
        lock(seen).push(Received(head));
        let length = answer.len();
        write!(
            io,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{answer}"
        )?;
        io.flush()?;
    }
    Ok(())
}

/// A head without a body, `None` where the client hung up instead. The demo sends no bodies.
fn read_head(from: &mut impl Read) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES {
        match from.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

fn lock(received: &Mutex<Vec<Received>>) -> MutexGuard<'_, Vec<Received>> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}
