//! Does what the gateway puts on a request stay out of what comes back?

#[path = "scrubbing/compressed.rs"]
mod compressed;
#[path = "scrubbing/cookies.rs"]
mod cookies;
#[path = "scrubbing/cut.rs"]
mod cut;
#[path = "scrubbing/forms.rs"]
mod forms;
#[path = "credentials/scene.rs"]
mod scene;
#[path = "scrubbing/stored.rs"]
mod stored;
#[path = "scrubbing/streams.rs"]
mod streams;
#[path = "scrubbing/whole.rs"]
mod whole;

use outgate_tests::prelude::*;
use serde_json::Value;

const NAME: &str = "api.example.com";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// An environment that puts `secret` on requests, and scrubs or not.
fn environment(secret: &str, scrub: bool) -> Value {
    json!({"network": {"allowlist": [{
        "domain": NAME, "transform": {"Authorization": format!("Bearer {secret}")}, "scrub": scrub,
    }]}})
}

/// A client within a tunnel to the origin.
fn tunnel(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to(NAME))
}

/// An answer with this head and body.
fn answer(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    [format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n").as_bytes(), body].concat()
}

/// So many stars as the text has bytes.
fn stars(text: &str) -> String {
    "*".repeat(text.len())
}
