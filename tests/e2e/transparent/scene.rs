//! A sandbox, the gateway and the internet, each at another end of a cable.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::thread;

use outgate_tests::network::Neighbour;
use serde_json::Value;

use super::*;

/// An address that only the client believes in: whatever it stands for, it must not be dialled.
pub(super) const ELSEWHERE: &str = "55.1.2.3";
pub(super) const API_ADDRESS: &str = "11.22.33.4";
const OK_ADDRESS: &str = "11.22.33.5";
const EVIL_ADDRESS: &str = "11.22.33.6";

/// The ports that are led to the gateway.
const PORTS: [u16; 4] = [80, 443, 2222, 8080];

pub(super) struct Scene {
    pub(super) world: World,
    pub(super) sandbox: Neighbour,
    internet: Neighbour,
    pub(super) gateway: Gateway,
}

impl Scene {
    pub(super) fn new(environment: &Value) -> Self {
        Self::with(environment, "")
    }

    /// With more in the operator's file. The sandbox is known by its interface.
    pub(super) fn with(environment: &Value, more: &str) -> Self {
        let world = world!();
        for (name, address) in [(API, API_ADDRESS), (OK, OK_ADDRESS), (EVIL, EVIL_ADDRESS)] {
            world.name(name, address);
        }
        let internet = Neighbour::new("veth-net", [11, 22, 33, 0].into());
        let sandbox = Neighbour::new("veth-box", [10, 20, 1, 0].into());
        let path = network::folder().join("e1.json");
        fs::write(&path, environment.to_string()).expect("the test's folder is writable");
        let mut file = more.to_owned();
        let known = format!("[[environment]]\nfile = {path:?}\ninterface = \"veth-box\"\n");
        file += &known;
        for port in PORTS {
            write!(file, "[[listener]]\nkind = \"transparent\"\nbind = \"0.0.0.0:{port}\"\n")
                .expect("a String takes all");
        }
        file += "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n";
        file += "[[listener]]\nkind = \"dns\"\nbind = \"10.20.1.1:53\"\n";
        let builder = world.gateway_builder().configuration(&file);
        let gateway = builder.listeners_from_configuration().start();
        Self { world, sandbox, internet, gateway }
    }

    /// An origin in the internet.
    pub(super) fn start(&self, origin: origin::Builder) -> Origin {
        self.internet.inside(|| origin.start())
    }

    /// A client in the sandbox that connects to this address.
    pub(super) fn client(&self, address: &str) -> RawClient {
        let address: SocketAddr = address.parse().expect("an address with its port");
        self.sandbox.inside(|| RawClient::connect(address, self.gateway.ca()))
    }

    /// A client in the sandbox that found [`ELSEWHERE`] for every name.
    pub(super) fn tls(&self, hello: &Hello) -> RawClient {
        self.client("55.1.2.3:443").tls(hello)
    }

    /// `curl` in the sandbox, for a URL whose host it found at [`ELSEWHERE`].
    pub(super) fn curl(&self, url: &str) -> outgate_tests::client::Answer {
        let curl = Curl::new(url).ca(self.gateway.ca()).argument("--connect-to");
        self.sandbox.inside(|| curl.argument(format!("::{ELSEWHERE}:")).run())
    }

    /// `curl` in the sandbox, which asks the gateway for names.
    pub(super) fn curl_by_dns(&self, url: &str) -> outgate_tests::client::Answer {
        network::set_resolver("nameserver 10.20.1.1\n");
        let curl = Curl::new(url).ca(self.gateway.ca());
        self.sandbox.inside(|| curl.run())
    }

    /// The address that the gateway's own DNS gives a name in the sandbox.
    pub(super) fn look_up(&self, name: &str) -> String {
        network::set_resolver("nameserver 10.20.1.1\n");
        let target = format!("{name}:1");
        let looked_up = self.sandbox.inside(|| {
            use std::net::ToSocketAddrs;
            // The C library reads its file once per thread.
            thread::scope(|scope| {
                scope
                    .spawn(|| target.to_socket_addrs().map(|mut found| found.next()))
                    .join()
                    .expect("no panic")
            })
        });
        looked_up.expect("the gateway answers").expect("with an address").ip().to_string()
    }
}

/// May go to these names.
pub(super) fn allowing(names: &[&str]) -> Value {
    let entries: Vec<_> = names.iter().map(|name| json!({"domain": name})).collect();
    json!({"network": {"allowlist": entries}})
}
