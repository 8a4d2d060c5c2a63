//! What can a script do with one connection?

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use super::record::{Handshake, Record};
use crate::http::{Head, Incoming, ReadFault, Request};
use crate::transport::{Plain, Transport, shake_hands};

/// A script waits no longer than this for bytes that don't come.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// One connection to an origin, in the hands of its script. It ends with the script: over TLS with
/// `close_notify`, unless [`Connection::cut`] or [`Connection::reset`] was called.
pub struct Connection {
    source: Recorded,
    incoming: Incoming,
    ending: Ending,
}

/// Everything that is read goes into the record first.
struct Recorded {
    transport: Box<dyn Transport>,
    record: Arc<Record>,
}

#[derive(PartialEq, Eq)]
enum Ending {
    Clean,
    Cut,
}

impl Connection {
    pub(super) fn accept(
        socket: TcpStream,
        tls: Option<&Arc<ServerConfig>>,
        record: &Arc<Record>,
    ) -> Option<Self> {
        let mut plain = Plain::new(socket, READ_TIMEOUT);
        record.watch_wire(plain.seen());
        let transport: Box<dyn Transport> = match tls {
            None => Box::new(plain),
            Some(config) => {
                let mut tls = ServerConnection::new(Arc::clone(config))
                    .expect("this configuration makes connections");
                let outcome = shake_hands(&mut tls, &mut plain);
                record.shook_hands(
                    outcome.as_ref().map(|()| handshake(&tls)).map_err(ToString::to_string),
                );
                outcome.ok()?;
                Box::new(StreamOwned::new(tls, plain))
            }
        };
        let source = Recorded { transport, record: Arc::clone(record) };
        Some(Self { source, incoming: Incoming::default(), ending: Ending::Clean })
    }

    /// A TLS session that was agreed on elsewhere.
    pub(super) fn over(
        session: StreamOwned<ServerConnection, Plain>,
        record: &Arc<Record>,
    ) -> Self {
        let source = Recorded { transport: Box::new(session), record: Arc::clone(record) };
        Self { source, incoming: Incoming::default(), ending: Ending::Clean }
    }

    /// The next request; `None` when there is none to come, or when what came is none.
    pub fn request(&mut self) -> Option<Request> {
        self.incoming.request(&mut self.source).ok()
    }

    /// The head of the next request, with its body still to come: see [`Connection::body`].
    pub fn head(&mut self) -> Option<Head> {
        self.incoming.head(&mut self.source).ok()
    }

    /// The request whose head was read.
    ///
    /// # Errors
    /// When its body does not come, whole and well-formed.
    pub fn body(&mut self, head: Head) -> Result<Request, ReadFault> {
        self.incoming.request_body(&mut self.source, head)
    }

    /// The next bytes, whatever they are; none at the end of the connection.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.incoming.some(&mut self.source).unwrap_or_default()
    }

    /// Sends bytes as they are. Whether the peer still took them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let transport = &mut self.source.transport;
        transport.write_all(bytes.as_ref()).and_then(|()| transport.flush()).is_ok()
    }

    /// Waits longer, or less long, for what the client sends from here on.
    ///
    /// # Panics
    /// When `time` is zero.
    pub fn wait_up_to(&mut self, time: Duration) {
        let socket = self.source.transport.socket();
        socket.set_read_timeout(Some(time)).expect("a timeout above zero can be set");
    }

    /// Does nothing for a while.
    pub fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    /// From here on the connection is not HTTP: what the client sends is no request.
    pub fn upgrade(&mut self) {
        let record = &self.source.record;
        let unread = self.incoming.take();
        record.upgrade_at(record.raw().len() - unread.len());
        self.incoming.put_back(unread);
    }

    /// Says that nothing more will be sent, and goes on reading.
    pub fn finish(&mut self) {
        // The peer may have gone first.
        let _ = self.source.transport.finish();
    }

    /// Ends with RST.
    ///
    /// # Panics
    /// When the socket refuses the option.
    pub fn reset(&mut self) {
        SockRef::from(self.source.transport.socket())
            .set_linger(Some(Duration::ZERO))
            .expect("TCP has this option");
        self.ending = Ending::Cut;
    }

    /// Ends without `close_notify`, where a clean end of TLS has one.
    pub fn cut(&mut self) {
        self.ending = Ending::Cut;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.ending == Ending::Clean {
            // The peer may have gone first.
            let _ = self.source.transport.finish();
        }
    }
}

impl Read for Recorded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let received = self.transport.read(into)?;
        self.record.add(&into[..received]);
        Ok(received)
    }
}

pub(super) fn handshake(tls: &ServerConnection) -> Handshake {
    Handshake {
        server_name: tls.server_name().map(str::to_owned),
        alpn: tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
        resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
    }
}
