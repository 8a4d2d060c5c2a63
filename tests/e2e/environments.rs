//! Is every environment alone in the gateway, from its first request to its last?

#[path = "environments/alone.rs"]
mod alone;
#[path = "environments/counted.rs"]
mod counted;
#[path = "environments/folder.rs"]
mod folder;
#[path = "environments/interface.rs"]
mod interface;

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

const API: &str = "api.example.com";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// Environments `e1` and `e2` that may go to the same origin, each with a token of its own.
struct Pair {
    gateway: Gateway,
    tokens: [String; 2],
}

impl Pair {
    /// With this besides in the operator's file.
    fn start(world: &World, more: &str) -> Pair {
        let folder = network::folder();
        let tokens = [canary(32), canary(32)];
        let mut file = "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n".to_owned();
        for (token, id) in tokens.iter().zip(["e1", "e2"]) {
            let path = |kind| folder.join(format!("{id}.{kind}"));
            fs::write(path("json"), allowing(API)).expect("writable");
            fs::write(path("token"), token).expect("writable");
            let (json, token) = (path("json"), path("token"));
            file += &format!("[[environment]]\nfile = {json:?}\ntoken_file = {token:?}\n");
        }
        let builder = world.gateway_builder().configuration(&(file + more));
        Pair { gateway: builder.listeners_from_configuration().start(), tokens }
    }

    /// The answer to CONNECT as the environment of this number, and the client.
    fn connect(&self, number: usize, name: &str) -> (Response, RawClient) {
        let claim = STANDARD.encode(format!("e{number}:{}", self.tokens[number - 1]));
        let mut client = self.gateway.client();
        client.send(format!(
            "CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\
             Proxy-Authorization: Basic {claim}\r\n\r\n"
        ));
        (client.try_read_response("CONNECT").expect("an answer to CONNECT"), client)
    }

    /// A tunnel to the origin.
    fn tunnel(&self, number: usize, hello: &Hello) -> RawClient {
        let (answer, client) = self.connect(number, API);
        assert_eq!(answer.status, 200, "{answer:?}");
        client.tls(hello)
    }

    /// One request by a tunnel of its own.
    fn ask(&self, number: usize) {
        assert_eq!(self.tunnel(number, &Hello::to(API)).exchange(GET).status, 200);
    }
}

/// The text of an environment that may go to this name alone.
fn allowing(name: &str) -> String {
    json!({"network": {"allowlist": [{"domain": name}]}}).to_string()
}
