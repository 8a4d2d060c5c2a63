//! Is a WebSocket over HTTP/2 what one over HTTP/1.1 is, whatever the other leg speaks?

#[path = "websocket_http2/bridges.rs"]
mod bridges;
#[path = "websocket_http2/ends.rs"]
mod ends;
#[path = "websocket_http2/guards.rs"]
mod guards;
#[path = "websocket_http2/legs.rs"]
mod legs;
#[path = "websocket_http2/lifetime.rs"]
mod lifetime;

use outgate_tests::http2::Exchange;
use outgate_tests::prelude::*;

const NAME: &str = "api.example.com";
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// A masked text frame that says `hi` (RFC 6455 §5.2).
const HI: [u8; 8] = [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];

fn gateway(world: &World) -> Gateway {
    world.gateway(json!({"network": {"allowlist": [{"domain": NAME}]}}))
}

/// A stream that both sides let begin.
fn begun(client: &Http2Client) -> Exchange {
    let mut exchange = client.open_websocket("/ws");
    assert_eq!(exchange.head().expect("an answer").status, 200);
    exchange
}

/// Whether what is sent comes back, and nothing else.
fn echoes(exchange: &mut Exchange) -> bool {
    exchange.send(HI);
    let mut came = Vec::new();
    while came.len() < HI.len() {
        match exchange.data() {
            Ok(Some(piece)) => came.extend_from_slice(&piece),
            Ok(None) | Err(_) => return false,
        }
    }
    came == HI
}

/// A client of HTTP/1.1 in a tunnel to [`NAME`], port 443.
fn http1_client(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel(&format!("{NAME}:443")).tls(&Hello::to(NAME))
}

fn upgrade() -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    )
}
