//! What does the "internet" of a test look like before the test adds to it?

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::Value;

use crate::command::{Finished, outgate};
use crate::dns::Server;
use crate::gateway::{self, Gateway};
use crate::network;
use crate::origin::{self, Http2Origin, Origin, SilentListener};
use crate::pki::Pki;
use crate::run::Run;

/// Global-looking addresses: those that the address rules must refuse would prove nothing.
const NAMES: [(&str, &str); 3] = [
    ("api.example.com", "11.22.33.44"),
    ("a.ok.example.test", "11.22.33.55"),
    ("evil.example.test", "11.22.33.66"),
];

/// A name server, a CA for origins, and the program under test. Made inside
/// [`isolated`](crate::isolated), once per test.
pub struct World {
    /// The name server, to be told more.
    pub dns: Server,
    /// The CA of the origins.
    pub pki: Pki,
    program: PathBuf,
    names: Mutex<HashMap<String, String>>,
}

impl World {
    /// A world with `api.example.com` at 11.22.33.44, `a.ok.example.test` at 11.22.33.55 and
    /// `evil.example.test` at 11.22.33.66. The macro `world!()` names the program.
    ///
    /// # Panics
    /// Outside `isolated`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let world = Self {
            dns: Server::start(),
            pki: Pki::new(&network::folder()),
            program: program.into(),
            names: Mutex::default(),
        };
        for (name, address) in NAMES {
            world.name(name, address);
        }
        world
    }

    /// Gives a name one address, in the name server and for [`World::https`].
    ///
    /// # Panics
    /// When the address is none.
    pub fn name(&self, name: &str, address: &str) {
        self.dns.name(name, &[address]);
        let mut names = self.names.lock().expect("an insert never panics");
        names.insert(name.to_owned(), address.to_owned());
    }

    /// A TLS origin at the address of `name`, port 443, with a good certificate.
    ///
    /// # Panics
    /// When the name has no address.
    pub fn https(&self, name: &str) -> origin::Builder {
        Origin::https(&self.pki, name, &self.address(name))
    }

    /// A plain origin at the address of `name`, port 80.
    ///
    /// # Panics
    /// When the name has no address.
    pub fn http(&self, name: &str) -> origin::Builder {
        Origin::http(&self.address(name))
    }

    /// An HTTP/2 origin over TLS at the address of `name`, port 443, with a good certificate.
    ///
    /// # Panics
    /// When the name has no address.
    pub fn http2(&self, name: &str) -> origin::Http2Builder {
        Http2Origin::https(&self.pki, name, &self.address(name))
    }

    /// An HTTP/2 origin in clear text at the address of `name`, port 80.
    ///
    /// # Panics
    /// When the name has no address.
    pub fn h2c(&self, name: &str) -> origin::Http2Builder {
        Http2Origin::http(&self.address(name))
    }

    /// A listener at `ADDRESS:PORT` that must see no connection.
    ///
    /// # Panics
    /// When the address is none, or taken.
    pub fn silent(&self, address: &str) -> SilentListener {
        SilentListener::start(address)
    }

    /// A running gateway with this environment.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn gateway(&self, environment: Value) -> Gateway {
        self.gateway_builder().environment(&environment).start()
    }

    /// A gateway that trusts the CA of the origins, with everything else still to be said.
    pub fn gateway_builder(&self) -> gateway::Builder {
        Gateway::builder(&self.program).origin_roots(self.pki.roots())
    }

    /// A sandbox around a command still to be said, whose gateway trusts the CA of the origins.
    pub fn run(&self) -> Run {
        Run::new(&self.program).argument("--origin-roots").argument(self.pki.roots())
    }

    /// Another subcommand, run to its end.
    ///
    /// # Panics
    /// When it is still running after 20 s.
    pub fn outgate(&self, arguments: &[&str]) -> Finished {
        outgate(&self.program, arguments)
    }

    fn address(&self, name: &str) -> String {
        let names = self.names.lock().expect("a look never panics");
        let address = names.get(name).unwrap_or_else(|| {
            panic!("{name} has no address in this world: give it one with `world.name`")
        });
        address.clone()
    }
}
