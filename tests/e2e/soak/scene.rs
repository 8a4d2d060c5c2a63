//! What does the load go through, and where does it lead?

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use outgate_tests::http::Head;
use serde_json::Value;

use super::*;

/// HTTP/1.1 with a credential, HTTP/2 with a credential, HTTP/1.1 without, and in clear text.
pub(super) const API: &str = "api.example.com";
pub(super) const MANY: &str = "many.example.com";
pub(super) const OPEN: &str = "open.example.com";
pub(super) const CLEAR: &str = "clear.example.com";

/// Of an upload and of a download.
pub(super) const BIG: usize = 2 << 20;
const PIECE: usize = 16 << 10;
/// A slow answer comes in this many pieces, with a pause after each.
const SLOW_PIECES: usize = 20;
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// A WebSocket is silent until its client has one more.
const SILENCE: Duration = Duration::from_secs(3600);

/// Idle connections to origins are gone soon after the load, and the lines are in a file.
const LIMITS: &str = "[limits]\nidle_keep_alive = \"2s\"\n";

/// The gateway under load and what it reaches.
pub(super) struct Scene {
    pub(super) gateway: Gateway,
    /// Every value of the credential begins with it.
    pub(super) secret: String,
    pub(super) audit: PathBuf,
    _origins: (Vec<Origin>, Http2Origin),
}

impl Scene {
    pub(super) fn start(world: &World) -> Scene {
        let secret = canary(32);
        for (number, name) in [API, MANY, OPEN, CLEAR].into_iter().enumerate() {
            world.name(name, &format!("11.22.33.{}", 70 + number));
        }
        let answers = || {
            let secret = secret.clone();
            move |connection: &mut Connection| {
                while answer(connection, Some(&secret)).is_some() {}
            }
        };
        let open = |connection: &mut Connection| while answer(connection, None).is_some() {};
        let known = secret.clone();
        let many = world.http2(MANY).forgetful();
        let many = many.script(move |stream| answer_stream(stream, &known)).start();
        let origins = vec![
            world.https(API).forgetful().script(answers()).start(),
            world.https(OPEN).forgetful().script(open).start(),
            world.http(CLEAR).forgetful().script(open).start(),
        ];
        let audit = network::folder().join("audit.jsonl");
        let gateway = gateway(world, &audit);
        let scene = Scene { gateway, secret, audit, _origins: (origins, many) };
        let credential = json!({"id": "key", "type": "bearer_token", "token": scene.value(0)});
        scene.gateway.api("POST", "/v1beta/credentials", &credential);
        scene
    }

    /// The credential's value after `turns` rotations.
    pub(super) fn value(&self, turns: u64) -> String {
        format!("{}{turns}", self.secret)
    }

    /// Where those come in whose token says whose they are.
    pub(super) fn with_tokens(&self) -> SocketAddr {
        address(&self.gateway, "explicit", 1)
    }

    pub(super) fn socks(&self) -> SocketAddr {
        address(&self.gateway, "socks", 0)
    }
}

fn address(gateway: &Gateway, kind: &str, number: usize) -> SocketAddr {
    let text = gateway.ready()[kind][number].as_str().expect("it listens");
    text.parse().expect("an address")
}

fn gateway(world: &World, audit: &std::path::Path) -> Gateway {
    let hooks = network::folder().join("hooks.json");
    let hook = json!({"type": "http", "url": format!("https://{API}/events")});
    let every_call = json!({"soak": {"pre_tool_execution": [{"matcher": "*", "hooks": [hook]}]}});
    fs::write(&hooks, every_call.to_string()).expect("the test's folder is writable");
    let listener = |kind: &str, more: &str| {
        format!("[[listener]]\nkind = \"{kind}\"\nbind = \"127.0.0.1:0\"\n{more}")
    };
    let configuration = [
        listener("explicit", "environment = \"soak\"\n"),
        listener("explicit", ""),
        listener("socks", "environment = \"soak\"\n"),
        format!("[audit]\nfile = {audit:?}\n[hooks]\nfile = {hooks:?}\n"),
        LIMITS.to_owned(),
    ];
    let builder = world.gateway_builder().configuration(&configuration.concat());
    builder.environment(&environment(false)).listeners_from_configuration().start()
}

/// The policy; every second one has an entry more.
pub(super) fn environment(more: bool) -> Value {
    let mut entries = vec![
        json!({"domain": API, "credential": "key"}),
        json!({"domain": API, "paths": ["/denied/**"], "deny": true}),
        json!({"domain": MANY, "credential": "key"}),
        json!({"domain": OPEN}),
        json!({"domain": CLEAR}),
    ];
    if more {
        entries.push(json!({"domain": "more.example.com"}));
    }
    json!({"environment_id": "soak", "network": {"allowlist": entries}})
}

fn is_injected(head: &Head, secret: &str) -> bool {
    let sent = head.value("authorization").unwrap_or_default();
    sent.strip_prefix("Bearer ").is_some_and(|value| value.starts_with(secret))
}

/// One exchange over HTTP/1.1; `None` when it was the last.
fn answer(connection: &mut Connection, secret: Option<&str>) -> Option<()> {
    let head = connection.head()?;
    let target = head.request_line().ok()?.1;
    let kind = target.split('/').nth(1).unwrap_or_default().to_owned();
    if secret.is_some_and(|secret| !is_injected(&head, secret)) {
        connection.send("HTTP/1.1 500 Not Injected\r\nContent-Length: 0\r\n\r\n");
        return None;
    }
    let whole = match kind.as_str() {
        "down" => download(connection),
        "slow" => slow(connection),
        "up" => upload(connection, &head),
        "socket" => return echo(connection, &head),
        "events" => {
            connection.body(head).ok()?;
            connection.send(scripts::ok(r#"{"decision": "allow"}"#))
        }
        _ => connection.send(scripts::ok("small")),
    };
    whole.then_some(())
}

fn download(connection: &mut Connection) -> bool {
    let piece = [b'x'; PIECE];
    connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n"))
        && (0..BIG / PIECE).all(|_| connection.send(piece))
}

fn slow(connection: &mut Connection) -> bool {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head)
        && (0..SLOW_PIECES).all(|_| {
            connection.pause(SLOW_PAUSE);
            connection.send("1\r\nx\r\n")
        })
        && connection.send("0\r\n\r\n")
}

fn upload(connection: &mut Connection, head: &Head) -> bool {
    let length = head.value("content-length").and_then(|length| length.parse().ok());
    let mut left: usize = length.unwrap_or(0);
    while left > 0 {
        match connection.bytes().len() {
            0 => return false,
            received => left = left.saturating_sub(received),
        }
    }
    connection.send(scripts::ok("taken"))
}

fn echo(connection: &mut Connection, head: &Head) -> Option<()> {
    let accept = scripts::websocket_accept(head.value("sec-websocket-key").unwrap_or_default());
    connection.upgrade();
    connection.wait_up_to(SILENCE);
    connection.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    ));
    loop {
        let bytes = connection.bytes();
        if bytes.is_empty() || !connection.send(&bytes) {
            return None;
        }
    }
}

/// One exchange over HTTP/2.
fn answer_stream(stream: &mut Stream, secret: &str) {
    let request = stream.request();
    let sent = request.header("authorization").and_then(|sent| sent.strip_prefix("Bearer "));
    if !sent.is_some_and(|value| value.starts_with(secret)) {
        return stream.respond_only(500, &[]);
    }
    match request.path.split('/').nth(1) {
        Some("up") => {
            stream.swallow();
            stream.answer(200, &[], b"taken");
        }
        Some("down") => {
            stream.respond(200, &[]);
            let whole = (0..BIG / PIECE).all(|_| stream.send([b'x'; PIECE]));
            if whole {
                stream.finish();
            }
        }
        _ => stream.answer(200, &[], b"small"),
    }
}
