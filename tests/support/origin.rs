//! What did an origin receive, byte by byte, and what did it answer?

mod acceptor;
mod blackhole;
mod connection;
mod demands;
mod http2;
mod record;
pub mod scripts;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{NamedGroup, RootCertStore, ServerConfig};

use crate::http::{self, Request};
use crate::pki::{Identity, Pki};
use crate::wait::{SOON, wait_until};

use acceptor::Acceptor;
use demands::Demands;

pub use acceptor::SilentListener;
pub use blackhole::Blackhole;
pub use connection::Connection;
pub use http2::{Http2Builder, Http2Origin, Http2Request, Stream};
pub use record::Record;

/// What an origin does with each connection.
pub type Script = dyn Fn(&mut Connection) + Send + Sync;

/// A running origin that records every byte it receives. Dropped, it accepts no more.
pub struct Origin {
    acceptor: Acceptor,
    state: Arc<State>,
    address: SocketAddr,
}

/// An origin about to be started. Without a script it answers each request with [`scripts::echo`].
pub struct Builder {
    address: SocketAddr,
    identity: Option<Identity>,
    alpn: Vec<Vec<u8>>,
    demands: Demands,
    script: Box<Script>,
    forgetful: bool,
}

struct State {
    tls: Option<Arc<ServerConfig>>,
    script: Box<Script>,
    records: Mutex<Vec<Arc<Record>>>,
    /// What a script panicked with, on its own thread: the test fails with it.
    panics: Mutex<Vec<String>>,
}

impl Origin {
    /// A TLS origin with a good certificate for `name`, at `ADDRESS` (port 443) or `ADDRESS:PORT`.
    ///
    /// # Panics
    /// When the address is none.
    pub fn https(pki: &Pki, name: &str, address: &str) -> Builder {
        Builder {
            address: socket_address(address, 443),
            identity: Some(pki.leaf(name).issue()),
            alpn: vec![b"http/1.1".to_vec()],
            demands: Demands::default(),
            script: scripts::echo(),
            forgetful: false,
        }
    }

    /// A plain origin at `ADDRESS` (port 80) or `ADDRESS:PORT`.
    ///
    /// # Panics
    /// When the address is none.
    pub fn http(address: &str) -> Builder {
        Builder {
            address: socket_address(address, 80),
            identity: None,
            alpn: Vec::new(),
            demands: Demands::default(),
            script: scripts::echo(),
            forgetful: false,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were opened to it until now, those it has not looked at yet included.
    pub fn connections(&self) -> usize {
        self.acceptor.count()
    }

    /// What each connection saw and said so far, in the order of their opening.
    pub fn records(&self) -> Vec<Arc<Record>> {
        self.acceptor.count();
        self.state.records().clone()
    }

    /// Every application byte received so far, over all connections.
    pub fn raw(&self) -> Vec<u8> {
        self.records().iter().flat_map(|record| record.raw()).collect()
    }

    /// Every whole request received so far, over all connections.
    ///
    /// # Panics
    /// When a connection received anything but well-formed requests, or a script panicked.
    pub fn requests(&self) -> Vec<Request> {
        self.state.fail_with_scripts();
        let of_record = |record: &Arc<Record>| {
            let bytes = record.http();
            http::requests(&bytes).unwrap_or_else(|fault| {
                panic!("the origin received what no client may send: {fault}\n{}", show(&bytes))
            })
        };
        self.records().iter().flat_map(of_record).collect()
    }

    /// [`Origin::requests`] once there are `count`, or what there is after 5 s.
    ///
    /// # Panics
    /// As [`Origin::requests`].
    pub fn wait_requests(&self, count: usize) -> Vec<Request> {
        wait_until(SOON, || self.requests().len() >= count);
        self.requests()
    }

    /// Whether all its connections have ended within 5 s.
    pub fn wait_closed(&self) -> bool {
        wait_until(SOON, || self.records().iter().all(|record| record.ended()))
    }

    /// Closes the listener: whoever dials now is refused.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.state.fail_with_scripts();
        }
    }
}

impl Builder {
    /// Listens on another port of the same address.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.address.set_port(port);
        self
    }

    /// Shows this certificate instead.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Offers these protocols instead of `http/1.1`; none at all with an empty list.
    #[must_use]
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        self.alpn = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        self
    }

    /// Talks to no client without a certificate by one of these.
    #[must_use]
    pub fn demand_certificate(mut self, by: RootCertStore) -> Self {
        self.demands.client = Some(by);
        self
    }

    /// Knows nothing newer than TLS 1.2.
    #[must_use]
    pub fn only_tls12(mut self) -> Self {
        self.demands.only_tls12 = true;
        self
    }

    /// Knows this key exchange and no other.
    #[must_use]
    pub fn only_group(mut self, group: NamedGroup) -> Self {
        self.demands.group = Some(group);
        self
    }

    /// Does this with each connection.
    #[must_use]
    pub fn script(mut self, script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Keeps nothing of its connections, so that a test may go on for hours.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.forgetful = true;
        self
    }

    /// Answers each request with these bytes.
    #[must_use]
    pub fn respond(self, response: impl Into<Vec<u8>>) -> Self {
        self.script(scripts::respond(response))
    }

    /// Binds and accepts.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn start(self) -> Origin {
        let demands = self.demands;
        let tls = self.identity.map(|shown| Arc::new(demands.config(shown, self.alpn)));
        let state = Arc::new(State {
            tls,
            script: self.script,
            records: Mutex::default(),
            panics: Mutex::default(),
        });
        let (accepted_by, forgetful) = (Arc::clone(&state), self.forgetful);
        let acceptor = Acceptor::start(self.address, move |socket| {
            let record = match forgetful {
                true => Arc::new(Record::forgetful()),
                false => accepted_by.record(),
            };
            let state = Arc::clone(&accepted_by);
            thread::spawn(move || state.serve(socket, &record));
        });
        Origin { acceptor, state, address: self.address }
    }
}

impl State {
    fn serve(&self, socket: std::net::TcpStream, record: &Arc<Record>) {
        if let Some(mut connection) = Connection::accept(socket, self.tls.as_ref(), record) {
            run_script(&self.panics, || (self.script)(&mut connection));
        }
        record.end();
    }

    fn record(&self) -> Arc<Record> {
        let record = Arc::new(Record::default());
        self.records().push(Arc::clone(&record));
        record
    }

    fn records(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Record>>> {
        self.records.lock().expect("no thread panics while it holds the records")
    }

    fn fail_with_scripts(&self) {
        fail_with_scripts(&self.panics);
    }
}

/// Keeps what a script panics with: it runs on a thread that nobody joins.
fn run_script(panics: &Mutex<Vec<String>>, script: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(script)) {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        panics.lock().expect("no thread panics inside").push(text.to_owned());
    }
}

fn fail_with_scripts(panics: &Mutex<Vec<String>>) {
    let panics = panics.lock().expect("no thread panics inside").clone();
    assert!(panics.is_empty(), "the script of an origin panicked: {panics:?}");
}

fn socket_address(text: &str, default_port: u16) -> SocketAddr {
    text.parse()
        .or_else(|_| text.parse().map(|address| SocketAddr::new(address, default_port)))
        .unwrap_or_else(|_| panic!("{text} is no address for an origin, as 11.22.33.44:443 is"))
}

fn show(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        writeln!(text, "  {}", line.escape_ascii()).expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests;
