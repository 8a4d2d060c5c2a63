//! A sandbox, the gateway and the internet, each at another end of a cable.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use outgate_tests::client::Answer;
use outgate_tests::dns::RecordType;
use outgate_tests::names::Names;
use outgate_tests::network::Neighbour;
use serde_json::Value;

use super::*;

/// An address that only the client believes in: whatever it stands for, it must not be dialled.
pub(super) const ELSEWHERE: &str = "55.1.2.3";
pub(super) const API_ADDRESS: &str = "11.22.33.4";
pub(super) const OK_ADDRESS: &str = "11.22.33.5";
pub(super) const EVIL_ADDRESS: &str = "11.22.33.6";

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
        let [internet, sandbox] = [("veth-net", [11, 22, 33, 0]), ("veth-box", [10, 20, 1, 0])]
            .map(|(name, network)| {
                let neighbour = Neighbour::new(name, network.into());
                neighbour.address_here(network.into());
                neighbour
            });
        sandbox.lead_here();
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

    /// The same of HTTP/2.
    pub(super) fn start_http2(&self, origin: origin::Http2Builder) -> Http2Origin {
        self.internet.inside(|| origin.start())
    }

    /// A client in the sandbox that connects to this address.
    pub(super) fn client(&self, address: &str) -> RawClient {
        let address: SocketAddr = address.parse().expect("an address with its port");
        self.sandbox.inside(|| RawClient::connect(address, self.gateway.ca()))
    }

    /// A client in the sandbox that found [`ELSEWHERE`] for a name.
    pub(super) fn elsewhere(&self, port: u16) -> RawClient {
        self.client(&format!("{ELSEWHERE}:{port}"))
    }

    /// `curl` in the sandbox, for a URL whose host it found at [`ELSEWHERE`].
    pub(super) fn curl(&self, url: &str) -> Answer {
        let curl = Curl::new(url).ca(self.gateway.ca()).argument("--connect-to");
        self.sandbox.inside(|| curl.argument(format!("::{ELSEWHERE}:")).run())
    }

    /// `curl` in the sandbox, which asks this address for / in HTTP/1.0 and names no host.
    pub(super) fn curl_without_host(&self, address: &str) -> Answer {
        let curl = Curl::new(&format!("http://{address}/")).argument("--http1.0");
        self.sandbox.inside(|| curl.argument("--header").argument("Host:").run())
    }

    /// The address that the gateway's own DNS gives a name in the sandbox.
    pub(super) fn look_up(&self, name: &str) -> IpAddr {
        let names = Names::of("10.20.1.1:53".parse().expect("an address"));
        self.sandbox.inside(|| names.address(name, RecordType::A))
    }

    /// The last audit line, once there are `count` and no more.
    pub(super) fn line(&self, count: usize) -> Value {
        let audit = self.gateway.wait_audit(count);
        assert_eq!(audit.len(), count, "{audit:#?}");
        audit[count - 1].clone()
    }
}

/// May go to these names.
pub(super) fn allowing(names: &[&str]) -> Value {
    let entries: Vec<_> = names.iter().map(|name| json!({"domain": name})).collect();
    json!({"network": {"allowlist": entries}})
}
