//! By which ways does one request come to the explicit proxy?
//!
//! What is refused by one must be refused by all: tests about names, addresses and identities go
//! through every door.

use crate::client::{Hello, RawClient};
use crate::gateway::Gateway;
use crate::http::Response;

/// A way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// CONNECT, then TLS, then the request.
    ConnectTls,
    /// CONNECT, then the request in the clear.
    ConnectPlain,
    /// `GET http://…`.
    AbsoluteHttp,
    /// `GET https://…`: the gateway speaks TLS to the origin alone.
    AbsoluteHttps,
}

impl Door {
    /// Every way in.
    pub const ALL: [Door; 4] =
        [Door::ConnectTls, Door::ConnectPlain, Door::AbsoluteHttp, Door::AbsoluteHttps];

    /// The ways in that lead to an origin over TLS.
    pub const TLS: [Door; 2] = [Door::ConnectTls, Door::AbsoluteHttps];

    /// The port that is meant where none is written.
    pub fn port(self) -> u16 {
        match self {
            Door::ConnectTls | Door::AbsoluteHttps => 443,
            Door::ConnectPlain | Door::AbsoluteHttp => 80,
        }
    }

    /// The answer to `GET /` for this host, written as the client writes it, on a connection of its
    /// own: the origin's, or the refusal, wherever it came.
    ///
    /// # Panics
    /// When no whole, well-formed response comes.
    pub fn get(self, gateway: &Gateway, host: &str) -> Response {
        self.ask(gateway.client(), host, self.port(), "")
    }

    /// The same on another port.
    ///
    /// # Panics
    /// As [`Door::get`].
    pub fn get_port(self, gateway: &Gateway, host: &str, port: u16) -> Response {
        self.ask(gateway.client(), host, port, "")
    }

    /// The same on this connection to the proxy, with more header lines for the proxy, each with
    /// its CR LF.
    ///
    /// # Panics
    /// As [`Door::get`].
    pub fn ask(self, mut client: RawClient, host: &str, port: u16, lines: &str) -> Response {
        let authority =
            if port == self.port() { host.to_owned() } else { format!("{host}:{port}") };
        match self {
            Door::AbsoluteHttp | Door::AbsoluteHttps => {
                let scheme = if self == Door::AbsoluteHttp { "http" } else { "https" };
                client.exchange(format!(
                    "GET {scheme}://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n"
                ))
            }
            Door::ConnectTls | Door::ConnectPlain => {
                let target = format!("{host}:{port}");
                client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{lines}\r\n"));
                let opened = client
                    .try_read_response("CONNECT")
                    .unwrap_or_else(|fault| panic!("no response to CONNECT {target}: {fault}"));
                if opened.status != 200 {
                    return opened;
                }
                if self == Door::ConnectTls {
                    client = client.tls(&Hello::to(host.trim_matches(['[', ']'])));
                }
                client.exchange(format!("GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n"))
            }
        }
    }
}
