//! Do bytes that nobody reads pass only where an entry says so, and whole?

#[path = "splice/any_bytes.rs"]
mod any_bytes;
#[path = "splice/origin_tls.rs"]
mod origin_tls;
#[path = "splice/withdrawn.rs"]
mod withdrawn;

use outgate_tests::prelude::*;

const API: &str = "api.example.com";
const EVIL: &str = "evil.example.test";
const GIT: &str = "api.example.com:2222";

/// What a server that speaks first says.
const BANNER: &[u8] = b"SSH-2.0-origin\r\n";

/// An origin at the address of [`API`], port 2222, that speaks first and then gives back what it
/// gets, and once more all of it when the client has ended.
fn banner_origin() -> Origin {
    Origin::http("11.22.33.44:2222").script(give_back).start()
}

fn give_back(connection: &mut Connection) {
    connection.send(BANNER);
    let mut all = Vec::new();
    loop {
        let bytes = connection.bytes();
        if bytes.is_empty() {
            break;
        }
        all.extend_from_slice(&bytes);
        connection.send(&bytes);
    }
    connection.send(&all);
}

/// [`API`] for any bytes on port 2222.
fn open_to_any_bytes() -> serde_json::Value {
    json!({"network": {"allowlist": [
        {"domain": API},
        {"domain": API, "ports": [2222], "protocol": "tcp"},
    ]}})
}
