//! What did an HTTP/2 origin receive on each stream, and what did it answer?

mod serve;
mod stream;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use h2::Reason;
use h2::server;
use rustls::ServerConfig;
use tokio::sync::mpsc::UnboundedSender;

use super::acceptor::Acceptor;
use super::demands::Demands;
use super::record::{Handshake, Record};
use super::{Script, fail_with_scripts, scripts, socket_address};
use crate::http::{self, Request};
use crate::http2::Background;
use crate::pki::{Identity, Pki};
use crate::wait::{SOON, wait_until};

use serve::{Command, serve};

pub use stream::Stream;

/// What an origin does with each stream, on a thread of its own.
type StreamScript = dyn Fn(&mut Stream) + Send + Sync;

/// A running HTTP/2 origin. Dropped, it accepts no more.
pub struct Http2Origin {
    acceptor: Acceptor,
    state: Arc<State>,
}

/// An HTTP/2 origin about to be started. Without a script it answers with [`Stream::echo`].
pub struct Http2Builder {
    address: SocketAddr,
    identity: Option<Identity>,
    alpn: Vec<Vec<u8>>,
    settings: server::Builder,
    script: Box<StreamScript>,
    http1: Box<Script>,
    forgetful: bool,
}

/// One request as it came.
#[derive(Clone, Debug, Default)]
pub struct Http2Request {
    /// The connection that it came by, counted from 0.
    pub connection: usize,
    /// `:method`.
    pub method: String,
    /// `:protocol`, of a CONNECT for another protocol.
    pub protocol: Option<String>,
    /// `:scheme`.
    pub scheme: Option<String>,
    /// `:authority`.
    pub authority: Option<String>,
    /// `:path`.
    pub path: String,
    /// All other fields, in order.
    pub headers: Vec<(String, String)>,
    /// What the script has read of the body.
    pub body: Vec<u8>,
    /// Fields after the body, once the script has read so far.
    pub trailers: Vec<(String, String)>,
    /// How the client broke it off, if the script saw that.
    pub reset: Option<Reason>,
}

struct State {
    tls: Option<Arc<ServerConfig>>,
    settings: server::Builder,
    script: Box<StreamScript>,
    http1: Box<Script>,
    forgetful: bool,
    background: Background,
    connections: Mutex<Vec<Connected>>,
    requests: Mutex<Vec<Arc<Mutex<Http2Request>>>>,
    panics: Mutex<Vec<String>>,
}

/// One connection, over HTTP/2 or, where the client chose so, HTTP/1.1.
struct Connected {
    commands: UnboundedSender<Command>,
    record: Arc<Record>,
}

impl Http2Request {
    /// The values of all fields of this name, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = |field: &&(String, String)| field.0 == name;
        self.headers.iter().filter(named).map(|(_, value)| value.as_str()).collect()
    }

    /// The value of the one field of this name.
    ///
    /// # Panics
    /// When there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.values(name);
        assert!(values.len() < 2, "{name} stands there {} times: {values:?}", values.len());
        values.first().copied()
    }
}

impl Http2Origin {
    pub(crate) fn https(pki: &Pki, name: &str, address: &str) -> Http2Builder {
        let identity = Some(pki.leaf(name).issue());
        Http2Builder { identity, ..Self::http_at(socket_address(address, 443)) }
    }

    pub(crate) fn http(address: &str) -> Http2Builder {
        Self::http_at(socket_address(address, 80))
    }

    fn http_at(address: SocketAddr) -> Http2Builder {
        Http2Builder {
            address,
            identity: None,
            alpn: vec![b"h2".to_vec()],
            settings: server::Builder::new(),
            script: Box::new(Stream::echo),
            http1: scripts::echo(),
            forgetful: false,
        }
    }

    /// How many connections were opened to it until now, those it has not looked at yet included.
    pub fn connections(&self) -> usize {
        self.acceptor.count()
    }

    /// Every request so far, those whose body still comes included.
    ///
    /// # Panics
    /// When a script panicked.
    pub fn requests(&self) -> Vec<Http2Request> {
        fail_with_scripts(&self.state.panics);
        let requests = self.state.requests.lock().expect("no thread panics inside").clone();
        requests.iter().map(|request| lock(request).clone()).collect()
    }

    /// [`Http2Origin::requests`] once there are `count`, or what there is after 5 s.
    ///
    /// # Panics
    /// When a script panicked.
    pub fn wait_requests(&self, count: usize) -> Vec<Http2Request> {
        wait_until(SOON, || self.requests().len() >= count);
        self.requests()
    }

    /// Every whole request that came over HTTP/1.1.
    ///
    /// # Panics
    /// When what came is no request.
    pub fn http1_requests(&self) -> Vec<Request> {
        let of_record = |record: Arc<Record>| {
            if self.state.is_http2(&record) {
                return Vec::new();
            }
            http::requests(&record.http()).expect("well-formed requests")
        };
        self.records().into_iter().flat_map(of_record).collect()
    }

    /// The TLS handshake of each connection, in the order of their opening.
    pub fn handshakes(&self) -> Vec<Handshake> {
        self.records().iter().filter_map(|record| record.handshake()?.ok()).collect()
    }

    /// Says GOAWAY on every connection: what runs is finished, nothing more is taken.
    pub fn go_away(&self) {
        self.command(|| Command::GoAway);
    }

    /// Ends every connection at once, with GOAWAY and this error.
    pub fn abort(&self, reason: Reason) {
        self.command(|| Command::Abort(reason));
    }

    /// Whether all its connections have ended within 5 s.
    pub fn wait_closed(&self) -> bool {
        wait_until(SOON, || self.records().iter().all(|record| record.ended()))
    }

    fn records(&self) -> Vec<Arc<Record>> {
        self.acceptor.count();
        self.state.connected().iter().map(|one| Arc::clone(&one.record)).collect()
    }

    fn command(&self, command: impl Fn() -> Command) {
        // A connection that has ended takes none.
        self.state.connected().iter().for_each(|one| drop(one.commands.send(command())));
    }
}

impl Drop for Http2Origin {
    fn drop(&mut self) {
        if !thread::panicking() {
            fail_with_scripts(&self.state.panics);
        }
    }
}

impl Http2Builder {
    /// Shows this certificate instead.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Offers these protocols instead of `h2` alone, the first that the client knows being chosen.
    /// HTTP/1.1 is answered by [`scripts::echo`], or by [`Http2Builder::http1`].
    #[must_use]
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        self.alpn = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        self
    }

    /// Does this with each connection whose client chose HTTP/1.1.
    #[must_use]
    pub fn http1(mut self, script: Box<Script>) -> Self {
        self.http1 = script;
        self
    }

    /// Keeps nothing of its streams, so that a test may go on for hours.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.forgetful = true;
        self
    }

    /// With other settings than h2's own: windows, streams, size of header lists.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut server::Builder)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Takes CONNECT for WebSockets (RFC 8441 §3).
    #[must_use]
    pub fn takes_websockets(self) -> Self {
        self.settings(|settings| {
            settings.enable_connect_protocol();
        })
    }

    /// Does this with each stream.
    #[must_use]
    pub fn script(mut self, script: impl Fn(&mut Stream) + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Binds and accepts.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn start(self) -> Http2Origin {
        let tls =
            self.identity.map(|identity| Arc::new(Demands::default().config(identity, self.alpn)));
        let state = Arc::new(State {
            tls,
            settings: self.settings,
            script: self.script,
            http1: self.http1,
            forgetful: self.forgetful,
            background: Background::start(),
            connections: Mutex::default(),
            requests: Mutex::default(),
            panics: Mutex::default(),
        });
        let accepted_by = Arc::clone(&state);
        let acceptor = Acceptor::start(self.address, move |socket| serve(&accepted_by, socket));
        Http2Origin { acceptor, state }
    }
}

impl State {
    fn keep(&self, request: &Arc<Mutex<Http2Request>>) {
        if !self.forgetful {
            let mut requests = self.requests.lock().expect("no thread panics inside");
            requests.push(Arc::clone(request));
        }
    }

    fn connected(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.connections.lock().expect("no thread panics inside")
    }

    fn is_http2(&self, record: &Record) -> bool {
        let agreed = record.handshake().and_then(Result::ok).and_then(|hands| hands.alpn);
        self.tls.is_none() || agreed.as_deref() == Some("h2")
    }
}

fn lock(request: &Mutex<Http2Request>) -> MutexGuard<'_, Http2Request> {
    request.lock().expect("no thread panics inside")
}
