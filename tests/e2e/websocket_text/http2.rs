//! Is it so where the client's side is a stream of HTTP/2 too?

use outgate_tests::http2::{Exchange, Http2Client};

use super::*;

/// A stream that both sides let begin.
fn begun(client: &Http2Client) -> Exchange {
    let asked = client.connect_for("websocket", "/ws").header("sec-websocket-version", "13");
    let mut exchange = client.open(asked.header("sec-websocket-extensions", "permessage-deflate"));
    assert_eq!(exchange.head().expect("an answer").status, 200);
    exchange
}

/// The next `length` bytes, or those up to the end.
fn read_bytes(exchange: &mut Exchange, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let Ok(Some(piece)) = exchange.data() else { break };
        bytes.extend_from_slice(&piece);
    }
    bytes
}

/// The payload of a masked text of less than 126 bytes.
fn text_of(frame: &[u8]) -> Vec<u8> {
    let [0x81, _, masked @ ..] = frame else { panic!("{frame:?}") };
    let (mask, payload) = masked.split_at(4);
    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

fn values_arrive_and_strangers_close(world: &World) {
    let value = canary(40);
    let scene = Scene::new(world, &value, "");
    let client = scene.gateway.http2(API).connect();
    let mut exchange = begun(&client);
    exchange.send(frame(0x81, scene.placeholder("KEY").as_bytes()));
    assert_eq!(text_of(&read_bytes(&mut exchange, 46)), value.as_bytes());
    let mut stranger = begun(&client);
    stranger.send(frame(0x81, scene.placeholder("HEAD").as_bytes()));
    let last = read_bytes(&mut stranger, 4);
    assert_eq!((last[0], u16::from_be_bytes([last[2], last[3]])), (0x88, 1008), "{last:?}");
    // Its neighbour goes on.
    exchange.send(frame(0x81, b"hello"));
    assert_eq!(text_of(&read_bytes(&mut exchange, 11)), b"hello");
    let line = scene.last_line();
    assert_eq!(line["reason"], "placeholder_not_trusted", "{line}");
    assert_secret_absent(scene.gateway.output(), &value);
}

#[test]
fn values_arrive_over_http2_on_both_legs() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(API).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        values_arrive_and_strangers_close(&world);
        assert_eq!(origin.requests()[0].header("sec-websocket-extensions"), None);
    });
}

#[test]
fn values_arrive_where_the_origin_speaks_http1() {
    isolated(|| {
        let world = world!();
        let origin = origin(&world, "");
        values_arrive_and_strangers_close(&world);
        assert_eq!(origin.requests()[0].header("sec-websocket-extensions"), None);
    });
}
