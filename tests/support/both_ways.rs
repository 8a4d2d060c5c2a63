//! Does a request fare the same as one of the forward proxy's port and inside a tunnel?

use std::fmt;

use serde_json::Value;

use crate::client::{Hello, RawClient};
use crate::gateway::Gateway;
use crate::http::Response;
use crate::origin::{Origin, Script};
use crate::world::World;

/// Whom everything here asks for.
const NAME: &str = "api.example.com";

/// How a request comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// With an absolute target on the forward proxy's port, for an `http` origin.
    Forward,
    /// Inside TLS inside a tunnel, for an `https` origin.
    Tunnel,
}

/// A gateway that can be asked for `api.example.com` by both ways. In requests `@/` stands for the
/// start of the target: `GET @/a HTTP/1.1`.
pub struct BothWays {
    /// What stands between.
    pub gateway: Gateway,
    forward: Origin,
    tunnel: Origin,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::Forward, Way::Tunnel];

    /// The request as it is written by this way.
    pub fn write(self, template: impl AsRef<[u8]>) -> Vec<u8> {
        let start: &[u8] = match self {
            Way::Forward => b"http://api.example.com/",
            Way::Tunnel => b"/",
        };
        let mut written = Vec::new();
        let mut rest = template.as_ref();
        while let Some(at) = rest.windows(2).position(|pair| pair == b"@/") {
            written.extend_from_slice(&rest[..at]);
            written.extend_from_slice(start);
            rest = &rest[at + 2..];
        }
        written.extend_from_slice(rest);
        written
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Way::Forward => "forward proxy",
            Way::Tunnel => "tunnel",
        })
    }
}

impl BothWays {
    /// A gateway with this environment, and origins that do what `script` makes.
    ///
    /// # Panics
    /// When something doesn't start.
    pub fn start(world: &World, environment: Value, script: impl Fn() -> Box<Script>) -> Self {
        let forward = world.http(NAME).script(script()).start();
        let tunnel = world.https(NAME).script(script()).start();
        let gateway = world.gateway(environment);
        Self { gateway, forward, tunnel }
    }

    /// The origin at the end of this way.
    pub fn origin(&self, way: Way) -> &Origin {
        match way {
            Way::Forward => &self.forward,
            Way::Tunnel => &self.tunnel,
        }
    }

    /// A client whose next bytes are a request.
    ///
    /// # Panics
    /// When a tunnel is refused.
    pub fn client(&self, way: Way) -> RawClient {
        let client = self.gateway.client();
        match way {
            Way::Forward => client,
            Way::Tunnel => client.connect_tunnel("api.example.com:443").tls(&Hello::to(NAME)),
        }
    }

    /// A client that has sent these bytes, with `@/` filled in.
    ///
    /// # Panics
    /// When a tunnel is refused.
    pub fn sent(&self, way: Way, template: impl AsRef<[u8]>) -> RawClient {
        let mut client = self.client(way);
        client.send(way.write(template));
        client
    }

    /// The answer to this request on a connection of its own.
    ///
    /// # Panics
    /// When no whole, well-formed answer comes.
    pub fn ask(&self, way: Way, template: impl AsRef<[u8]>) -> Response {
        let template = template.as_ref();
        self.sent(way, template).try_read_response("GET").unwrap_or_else(|fault| {
            panic!("{way}: no answer to {:?}: {fault}", template.escape_ascii().to_string())
        })
    }

    /// Fails unless these bytes are refused with `status` and `reason` by both ways and no origin is
    /// called.
    ///
    /// # Panics
    /// When they are not.
    pub fn refuses(&self, template: impl AsRef<[u8]>, status: u16, reason: &str) {
        for way in Way::ALL {
            drop(self.refused(way, template.as_ref(), status, reason));
        }
    }

    /// [`BothWays::refuses`], and the connection ends.
    ///
    /// # Panics
    /// When they are not refused, or the connection goes on.
    pub fn refuses_and_closes(&self, template: impl AsRef<[u8]>, status: u16, reason: &str) {
        let template = template.as_ref();
        for way in Way::ALL {
            let mut client = self.refused(way, template, status, reason);
            assert!(client.is_closed(), "{way}: {}: it goes on", template.escape_ascii());
        }
    }

    fn refused(&self, way: Way, template: &[u8], status: u16, reason: &str) -> RawClient {
        let shown = format!("{way}: {}", template[..template.len().min(300)].escape_ascii());
        let before = self.origin(way).connections();
        let mut client = self.sent(way, template);
        let answer = client
            .try_read_response("GET")
            .unwrap_or_else(|fault| panic!("{shown}: no answer: {fault}"));
        let said = (answer.status, answer.header("outgate-reason"));
        assert_eq!(said, (status, Some(reason)), "{shown}");
        assert_eq!(self.origin(way).connections(), before, "{shown}: the origin was called");
        client
    }

    /// Fails unless a plain request works by both ways: what a refusal is worth without.
    ///
    /// # Panics
    /// When one doesn't.
    pub fn still_works(&self) {
        for way in Way::ALL {
            let answer = self.ask(way, "GET @/control HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(answer.status, 200, "{way}: {answer:?}");
        }
    }

    /// Drains the gateway and fails unless it wrote `count` audit lines.
    ///
    /// # Panics
    /// When it wrote more or fewer.
    pub fn audited(mut self, count: usize) -> Vec<Value> {
        let audit = self.gateway.final_audit();
        assert_eq!(audit.len(), count, "{audit:#?}");
        audit
    }
}
