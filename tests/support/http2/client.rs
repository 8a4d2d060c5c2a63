//! How does a test ask over HTTP/2?

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::ext::Protocol;
use h2::{Error, PingPong};
use http::Request;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::exchange::{Answer, Exchange};
use super::{Background, wait, within};
use crate::client::Hello;
use crate::gateway::Gateway;
use crate::wait::{SOON, wait_until};

/// A connection through a tunnel, about to be made.
pub struct Builder {
    proxy: SocketAddr,
    ca: PathBuf,
    authority: String,
    scheme: &'static str,
    settings: client::Builder,
}

/// An HTTP/2 connection through a tunnel of the gateway. Every stream is an [`Exchange`].
pub struct Http2Client {
    background: Background,
    sender: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), Error>>,
    ping: PingPong,
    origin: String,
}

impl Builder {
    pub(crate) fn new(proxy: SocketAddr, ca: &Path, authority: &str, scheme: &'static str) -> Self {
        let mut settings = client::Builder::new();
        // Out of the way unless a test makes them small.
        settings.initial_window_size(1 << 20).initial_connection_window_size(16 << 20);
        let (ca, authority) = (ca.to_owned(), authority.to_owned());
        Self { proxy, ca, authority, scheme, settings }
    }

    /// With other settings than usual: windows, the size of header lists, streams.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut client::Builder)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Opens the tunnel, and HTTP/2 in it.
    ///
    /// # Panics
    /// When the tunnel is refused, or the gateway doesn't choose HTTP/2.
    pub fn connect(self) -> Http2Client {
        let background = Background::start();
        let socket = self.tunnel();
        let (name, port) = self.authority.rsplit_once(':').expect("the authority has a port");
        let default_port = if self.scheme == "https" { "443" } else { "80" };
        let shown = if port == default_port { name } else { &self.authority };
        let origin = format!("{}://{shown}", self.scheme);
        let (sender, mut connection) = wait(background.handle(), "HTTP/2", async {
            let socket = tokio::net::TcpStream::from_std(socket).expect("it does not block");
            if self.scheme == "http" {
                return start(&self.settings, Box::new(socket)).await;
            }
            let config = Hello::to(name).alpn(&["h2"]).config(&self.ca);
            let server = ServerName::try_from(name.to_owned()).expect("a name of a server");
            let tls = TlsConnector::from(Arc::new(config)).connect(server, socket).await;
            let tls = tls.unwrap_or_else(|fault| panic!("no TLS: {fault}"));
            assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "HTTP/2 was not chosen");
            start(&self.settings, Box::new(tls)).await
        });
        let ping = connection.ping_pong().expect("it is taken once");
        let connection = background.handle().spawn(connection);
        Http2Client { background, sender, connection, ping, origin }
    }

    fn tunnel(&self) -> TcpStream {
        let mut socket = TcpStream::connect_timeout(&self.proxy, SOON)
            .unwrap_or_else(|fault| panic!("cannot connect to {}: {fault}", self.proxy));
        let authority = &self.authority;
        write!(socket, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
            .expect("the gateway takes a CONNECT");
        let mut answer = Vec::new();
        // Byte by byte: what follows is no part of it.
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).expect("CONNECT is answered");
            answer.extend(byte);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200 "), "no tunnel to {authority}: {answer}");
        socket.set_nodelay(true).expect("TCP has this option");
        socket.set_nonblocking(true).expect("TCP has this mode");
        socket
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type Connection = client::Connection<Box<dyn Stream>, Bytes>;

async fn start(
    settings: &client::Builder,
    io: Box<dyn Stream>,
) -> (SendRequest<Bytes>, Connection) {
    settings.handshake(io).await.unwrap_or_else(|fault| panic!("no HTTP/2: {fault}"))
}

impl Http2Client {
    /// A request of this method for a path of the origin that the tunnel leads to.
    ///
    /// # Panics
    /// When the path is none.
    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.origin))
    }

    /// CONNECT for another protocol, such as `websocket` (RFC 8441 §4), once the gateway has said that
    /// it takes that.
    ///
    /// # Panics
    /// When it does not say so.
    pub fn connect_for(&self, protocol: &'static str, path: &str) -> http::request::Builder {
        let takes = || self.sender.is_extended_connect_protocol_enabled();
        assert!(wait_until(SOON, takes), "extended CONNECT is not offered");
        self.request("CONNECT", path).extension(Protocol::from_static(protocol))
    }

    /// A stream that asks for a WebSocket.
    ///
    /// # Panics
    /// As [`Http2Client::connect_for`].
    pub fn open_websocket(&self, path: &str) -> Exchange {
        let asked = self.connect_for("websocket", path);
        self.open(asked.header("sec-websocket-version", "13"))
    }

    /// The answer to a GET.
    ///
    /// # Panics
    /// When none comes.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(self.request("GET", path), b"")
    }

    /// The answer to a whole request.
    ///
    /// # Panics
    /// When none comes.
    pub fn ask(&self, request: http::request::Builder, body: impl AsRef<[u8]>) -> Answer {
        self.try_ask(request, body).unwrap_or_else(|fault| panic!("no answer: {fault}"))
    }

    /// The answer to a whole request.
    ///
    /// # Errors
    /// When the stream or its connection ends without one.
    ///
    /// # Panics
    /// When the request can't be written.
    pub fn try_ask(
        &self,
        request: http::request::Builder,
        body: impl AsRef<[u8]>,
    ) -> Result<Answer, Error> {
        let body = body.as_ref();
        let mut exchange = self.begin(request, body.is_empty())?;
        if !body.is_empty() {
            exchange.send(body);
            exchange.finish();
        }
        exchange.answer()
    }

    /// A stream whose upload is still open.
    ///
    /// # Panics
    /// When it can't be opened.
    pub fn open(&self, request: http::request::Builder) -> Exchange {
        self.begin(request, false).unwrap_or_else(|fault| panic!("no stream: {fault}"))
    }

    /// A stream with a request without a body, whose answer is to be read bit by bit.
    ///
    /// # Panics
    /// When it can't be opened.
    pub fn open_get(&self, path: &str) -> Exchange {
        let begun = self.begin(self.request("GET", path), true);
        begun.unwrap_or_else(|fault| panic!("no stream: {fault}"))
    }

    fn begin(&self, request: http::request::Builder, ended: bool) -> Result<Exchange, Error> {
        let request = request.body(()).expect("a request can be made of it");
        let handle = self.background.handle();
        let sender = self.sender.clone();
        let (response, upload) =
            wait(handle, "a stream", async { sender.ready().await?.send_request(request, ended) })?;
        Ok(Exchange::new(handle.clone(), response, upload))
    }

    /// Sends a PING and waits for its answer.
    ///
    /// # Errors
    /// When the connection ends first.
    pub fn ping(&mut self) -> Result<(), Error> {
        let ping = self.ping.ping(h2::Ping::opaque());
        wait(self.background.handle(), "PONG", ping).map(|_| ())
    }

    /// Whether the gateway said, within 5 s, that it takes no more streams.
    pub fn wait_go_away(&self) -> bool {
        let gone = async {
            loop {
                let sender = self.sender.clone();
                if sender.ready().await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(self.background.handle(), SOON, gone).is_some()
    }

    /// How the connection ends, if it does within `deadline`.
    ///
    /// # Panics
    /// When it was asked before and had ended.
    pub fn ended(&mut self, deadline: Duration) -> Option<Result<(), Error>> {
        let ended = within(self.background.handle(), deadline, &mut self.connection);
        ended.map(|joined| joined.expect("the connection's task is not cut"))
    }
}

impl Gateway {
    /// HTTP/2 over TLS in a tunnel to this name, port 443, trusting the gateway's CA alone.
    pub fn http2(&self, name: &str) -> Builder {
        Builder::new(self.explicit(), self.ca(), &format!("{name}:443"), "https")
    }

    /// HTTP/2 with prior knowledge, in clear text, in a tunnel to this name, port 80.
    pub fn h2c(&self, name: &str) -> Builder {
        Builder::new(self.explicit(), self.ca(), &format!("{name}:80"), "http")
    }
}
