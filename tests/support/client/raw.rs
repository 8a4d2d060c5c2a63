//! What does the gateway answer to exactly these bytes?

mod records;

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustls::{ClientConnection, HandshakeKind, StreamOwned};
use rustls_pki_types::CertificateDer;
use socket2::{Domain, SockRef, Socket, Type};

use super::fault::TlsFault;
use super::hello::{Hello, PendingTls};
use crate::http::{Incoming, ReadFault, Response};
use crate::transport::{Plain, Transport, shake_hands};
use crate::wait::SOON;

/// What comes at all comes within this, also on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A blocking client that sends bytes exactly as given and reads strictly.
pub struct RawClient {
    carrier: Carrier,
    incoming: Incoming,
    ca: PathBuf,
}

enum Carrier {
    Plain(Plain),
    Tls(Box<StreamOwned<ClientConnection, Plain>>),
}

impl RawClient {
    /// Connects to the explicit proxy, or to any address.
    ///
    /// # Panics
    /// When nothing accepts there.
    pub fn connect(address: SocketAddr, ca: &Path) -> Self {
        let socket = TcpStream::connect_timeout(&address, SOON)
            .unwrap_or_else(|fault| panic!("cannot connect to {address}: {fault}"));
        Self::over(socket, ca)
    }

    /// Connects from this source address.
    ///
    /// # Panics
    /// When nothing accepts there, or the source can't be had.
    pub fn connect_from(source: IpAddr, address: SocketAddr, ca: &Path) -> Self {
        let connect = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.bind(&SocketAddr::new(source, 0).into())?;
            socket.connect_timeout(&address.into(), SOON)?;
            Ok(TcpStream::from(socket))
        };
        let socket = connect().unwrap_or_else(|fault: io::Error| {
            panic!("cannot connect from {source} to {address}: {fault}")
        });
        Self::over(socket, ca)
    }

    fn over(socket: TcpStream, ca: &Path) -> Self {
        let carrier = Carrier::Plain(Plain::new(socket, READ_TIMEOUT));
        Self { carrier, incoming: Incoming::default(), ca: ca.to_owned() }
    }

    /// Waits this long for bytes instead of 10 s.
    ///
    /// # Panics
    /// With a time of zero.
    #[must_use]
    pub fn read_timeout(self, time: Duration) -> Self {
        let socket = self.carrier.transport_ref().socket();
        socket.set_read_timeout(Some(time)).expect("a timeout above zero can be set");
        self
    }

    /// Gives up a write that is not taken within `time`, instead of never.
    ///
    /// # Panics
    /// With a time of zero.
    #[must_use]
    pub fn write_timeout(self, time: Duration) -> Self {
        let socket = self.carrier.transport_ref().socket();
        socket.set_write_timeout(Some(time)).expect("a timeout above zero can be set");
        self
    }

    /// Sends bytes as they are. Whether the gateway still took them: what it answered is to be
    /// read either way.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let transport = self.carrier.transport();
        transport.write_all(bytes.as_ref()).and_then(|()| transport.flush()).is_ok()
    }

    /// Sends bytes in pieces of `length`, each a segment (inside TLS: a record) of its own.
    pub fn send_in_pieces(
        &mut self,
        bytes: impl AsRef<[u8]>,
        length: usize,
        pause: Duration,
    ) -> bool {
        bytes.as_ref().chunks(length).all(|piece| {
            let sent = self.send(piece);
            thread::sleep(pause);
            sent
        })
    }

    /// Says that nothing more will be sent, and goes on reading.
    pub fn finish_sending(&mut self) {
        // The gateway may have gone first.
        let _ = self.carrier.transport().finish();
    }

    /// Ends the connection with RST.
    ///
    /// # Panics
    /// When the socket refuses the option.
    pub fn reset(self) {
        SockRef::from(self.carrier.transport_ref().socket())
            .set_linger(Some(Duration::ZERO))
            .expect("TCP has this option");
    }

    /// The next response, to a request that was not HEAD or CONNECT.
    ///
    /// # Panics
    /// When no whole, well-formed response comes.
    pub fn read_response(&mut self) -> Response {
        self.try_read_response("GET").unwrap_or_else(|fault| panic!("no response: {fault}"))
    }

    /// The next response, to a request with this method.
    ///
    /// # Errors
    /// When no whole, well-formed response comes.
    pub fn try_read_response(&mut self, method: &str) -> Result<Response, ReadFault> {
        self.incoming.response(&mut self.carrier, method)
    }

    /// A request and its response.
    ///
    /// # Panics
    /// As [`RawClient::read_response`].
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.send(request);
        self.read_response()
    }

    /// The next bytes, whatever they are; none at the end.
    ///
    /// # Errors
    /// When nothing comes in time, or the connection breaks.
    pub fn read_some(&mut self) -> Result<Vec<u8>, ReadFault> {
        self.incoming.some(&mut self.carrier)
    }

    /// Exactly `length` bytes.
    ///
    /// # Panics
    /// When fewer come.
    pub fn read_exact(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            match self.read_some() {
                Ok(more) if !more.is_empty() => bytes.extend(more),
                end => panic!("{length} bytes were due, {} came, then {end:?}", bytes.len()),
            }
        }
        self.incoming.put_back(bytes.split_off(length));
        bytes
    }

    /// Puts back what was read too far.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        self.incoming.put_back(bytes);
    }

    /// Every byte until the connection ends.
    ///
    /// # Errors
    /// When it does not end in time, or not cleanly; what came before is in the fault.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>, ReadFault> {
        let mut bytes = Vec::new();
        loop {
            match self.read_some() {
                Ok(more) if more.is_empty() => return Ok(bytes),
                Ok(more) => bytes.extend(more),
                Err(ReadFault::Truncated { .. }) => {
                    return Err(ReadFault::Truncated { body: bytes });
                }
                Err(ReadFault::Reset { .. }) => return Err(ReadFault::Reset { body: bytes }),
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Whether the gateway ends the connection, one way or another, without a further byte.
    pub fn is_closed(&mut self) -> bool {
        match self.read_some() {
            Ok(bytes) => bytes.is_empty(),
            Err(ReadFault::TimedOut) => false,
            Err(_) => true,
        }
    }

    /// Opens a tunnel to `name:port`.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    pub fn connect_tunnel(self, authority: &str) -> Self {
        self.try_connect_tunnel(authority).unwrap_or_else(|refusal| {
            panic!("no tunnel to {authority}: {} {}", refusal.status, refusal.text())
        })
    }

    /// Opens a tunnel to `name:port`, or has the refusal.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// When no whole, well-formed response comes.
    pub fn try_connect_tunnel(mut self, authority: &str) -> Result<Self, Box<Response>> {
        self.send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"));
        let response = self
            .try_read_response("CONNECT")
            .unwrap_or_else(|fault| panic!("no response to CONNECT {authority}: {fault}"));
        if response.status == 200 { Ok(self) } else { Err(Box::new(response)) }
    }

    /// Goes on inside TLS.
    ///
    /// # Panics
    /// When the handshake fails.
    #[must_use]
    pub fn tls(self, hello: &Hello) -> Self {
        self.try_tls(hello).unwrap_or_else(|fault| panic!("no TLS: {fault}"))
    }

    /// Goes on inside TLS, trusting the gateway's CA alone.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn try_tls(mut self, hello: &Hello) -> Result<Self, TlsFault> {
        let pending = self.begin_tls(hello);
        self.send(&pending.client_hello);
        self.complete_tls(pending)
    }

    /// Makes a ClientHello for the test to send, then [`RawClient::complete_tls`].
    pub fn begin_tls(&self, hello: &Hello) -> PendingTls {
        hello.begin(&self.ca)
    }

    /// Does the rest of a handshake whose ClientHello was sent.
    ///
    /// # Errors
    /// When the handshake fails.
    ///
    /// # Panics
    /// Inside TLS.
    pub fn complete_tls(mut self, pending: PendingTls) -> Result<Self, TlsFault> {
        let Carrier::Plain(mut plain) = self.carrier else { panic!("there is TLS already") };
        // What came in one segment with the answer to CONNECT.
        plain.put_back(self.incoming.take());
        let mut connection = pending.connection;
        shake_hands(&mut *connection, &mut plain)?;
        self.carrier = Carrier::Tls(Box::new(StreamOwned::new(connection, plain)));
        Ok(self)
    }

    /// The certificates that the gateway showed, leaf first.
    ///
    /// # Panics
    /// Outside TLS.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        let shown = self.connection().peer_certificates().expect("a server shows a certificate");
        shown.iter().map(|certificate| certificate.clone().into_owned()).collect()
    }

    /// Whether the handshake went on with an earlier session.
    ///
    /// # Panics
    /// Outside TLS.
    pub fn resumed(&self) -> bool {
        self.connection().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The protocol that the gateway chose.
    ///
    /// # Panics
    /// Outside TLS.
    pub fn alpn(&self) -> Option<String> {
        self.connection().alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn connection(&self) -> &ClientConnection {
        match &self.carrier {
            Carrier::Tls(stream) => &stream.conn,
            Carrier::Plain(_) => panic!("there is no TLS yet"),
        }
    }
}

impl Carrier {
    fn transport(&mut self) -> &mut dyn Transport {
        match self {
            Self::Plain(plain) => plain,
            Self::Tls(stream) => stream.as_mut(),
        }
    }

    fn transport_ref(&self) -> &dyn Transport {
        match self {
            Self::Plain(plain) => plain,
            Self::Tls(stream) => stream.as_ref(),
        }
    }
}

impl Read for Carrier {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.transport().read(into)
    }
}
