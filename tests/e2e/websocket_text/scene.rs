//! An environment with variables, a client that both sides let switch, and frames.

use std::fs;

use outgate_tests::origin::Script;
use outgate_tests::prelude::*;
use serde_json::Value;

pub(crate) const API: &str = "api.example.com";
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    answer: Value,
}

impl Scene {
    /// An environment known by its address, with one variable for bodies and one for headers.
    pub(crate) fn new(world: &World, value: &str, configuration: &str) -> Self {
        let gateway = world.gateway_builder().configuration(configuration).start();
        for (id, location) in [("key", "body"), ("head", "header")] {
            let credential = json!({"id": id, "type": "environment_variable", "value": value,
                "injection_location": location, "placeholder_prefix": "ghp_"});
            done(&gateway, "POST", "credentials", &credential);
        }
        let environment = json!({
            "source_addresses": ["127.0.0.1/32"],
            "env": {"KEY": {"credential": "key"}, "HEAD": {"credential": "head"}},
            "network": network(true),
        });
        let answer = done(&gateway, "POST", "environments", &environment);
        Self { gateway, answer }
    }

    pub(crate) fn placeholder(&self, variable: &str) -> String {
        let placeholder = &self.answer["env"][variable]["placeholder"];
        placeholder.as_str().expect("a placeholder").to_owned()
    }

    /// A client that both sides let switch.
    pub(crate) fn switched(&self) -> RawClient {
        let tunnel = self.gateway.client().connect_tunnel("api.example.com:443");
        let mut client = tunnel.tls(&Hello::to(API));
        client.send(upgrade());
        assert_eq!(client.read_response().status, 101);
        client
    }

    /// Puts another allowlist in force.
    pub(crate) fn reads_text(&self, text: bool) {
        let id = self.answer["id"].as_str().expect("an id");
        let path = format!("environments/{id}");
        done(&self.gateway, "PATCH", &path, &json!({"network": network(text)}));
    }

    pub(crate) fn last_line(&self) -> Value {
        let upgraded = || {
            let mut lines = self.gateway.audit().into_iter();
            lines.rfind(|line| line["kind"] == "request")
        };
        assert!(wait_until(Duration::from_secs(10), || upgraded().is_some()));
        upgraded().expect("it is there")
    }
}

fn network(text: bool) -> Value {
    json!({"allowlist": [{"domain": API, "websocket_text": text}]})
}

pub(crate) fn done(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    let body = body.to_string();
    let answer = gateway.management(format!(
        "{method} /v1beta/{path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len(),
    ));
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
    answer.json()
}

pub(crate) fn upgrade() -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: {API}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    )
}

/// An origin that gives every byte back, and agrees to these extensions.
pub(crate) fn origin(world: &World, extensions: &'static str) -> Origin {
    let script: Box<Script> = Box::new(move |connection: &mut Connection| {
        let Some(request) = connection.request() else { return };
        let key = request.header("sec-websocket-key").unwrap_or_default().to_owned();
        connection.upgrade();
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             {extensions}Sec-WebSocket-Accept: {}\r\n\r\n",
            scripts::websocket_accept(&key)
        ));
        while let bytes @ [_, ..] = &connection.bytes()[..] {
            connection.send(bytes);
        }
    });
    world.https(API).script(script).start()
}

/// A client's frame.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [9, 8, 7, 6];
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(0x80 | length.to_le_bytes()[0]),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// The next frame that a client reads: its first byte, its mask if it has one, its payload.
pub(crate) fn read(client: &mut RawClient) -> (u8, Vec<u8>, Vec<u8>) {
    let head = client.read_exact(2);
    let length = match head[1] & 0x7f {
        126 => client.read_exact(2),
        127 => client.read_exact(8),
        short => vec![short],
    };
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let mask = client.read_exact(if head[1] & 0x80 == 0 { 0 } else { 4 });
    let mut payload = client.read_exact(length);
    if !mask.is_empty() {
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    }
    (head[0], mask, payload)
}

/// The code that the client is closed with.
pub(crate) fn closed(client: &mut RawClient) -> u16 {
    loop {
        let (first, mask, payload) = read(client);
        if first == 0x88 && mask.is_empty() {
            assert!(client.is_closed(), "it goes on after its last word");
            return u16::from_be_bytes([payload[0], payload[1]]);
        }
    }
}
