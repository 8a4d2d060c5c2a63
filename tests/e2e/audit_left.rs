//! Does an audit line say who left, when one did?

use outgate_tests::http2::{Exchange, Reason};
use outgate_tests::prelude::*;
use serde_json::Value;

const NAME: &str = "api.example.com";
const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Where an exchange stands when its client leaves.
const STANDS: [&str; 4] = ["/upload", "/wait", "/download", "/websocket"];

fn environment() -> Value {
    json!({"network": {"allowlist": [{"domain": NAME}]}})
}

/// Answers `/download` without end, agrees to WebSockets, and says nothing to everything else.
fn http1_origin(world: &World) -> Origin {
    let script = |connection: &mut Connection| {
        let Some(head) = connection.head() else { return };
        match head.start_line.split(' ').nth(1) {
            Some("/download") => {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
                while connection.send([b'x'; 65536]) {}
            }
            Some("/websocket") => {
                let key = head.value("sec-websocket-key").unwrap_or_default();
                let accept = scripts::websocket_accept(key);
                connection.send(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                     Upgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                ));
            }
            _ => {}
        }
        while !connection.bytes().is_empty() {}
    };
    world.https(NAME).script(script).start()
}

fn http2_origin(world: &World) -> Http2Origin {
    let script = |stream: &mut Stream| match stream.request().path.as_str() {
        "/download" => {
            stream.respond(200, &[]);
            while stream.send([b'x'; 65536]) {}
        }
        "/websocket" => {
            stream.respond(200, &[]);
            while stream.data().is_some() {}
        }
        _ => {
            while stream.data().is_some() {}
            stream.wait_reset();
        }
    };
    world.http2(NAME).takes_websockets().script(script).start()
}

fn begin(client: &Http2Client, path: &str) -> Exchange {
    let mut exchange = match path {
        "/websocket" => client.open_websocket(path),
        "/upload" => client.open(client.request("POST", path)),
        _ => client.open_get(path),
    };
    match path {
        "/upload" => exchange.send("some"),
        "/wait" => {}
        _ => drop(exchange.head().expect("an answer")),
    }
    exchange
}

fn begin_http1(gateway: &Gateway, path: &str) -> RawClient {
    let mut client = gateway.client().connect_tunnel(&format!("{NAME}:443")).tls(&Hello::to(NAME));
    let (method, fields) = match path {
        "/websocket" => ("GET", WEBSOCKET),
        "/upload" => ("POST", "Content-Length: 1000\r\n"),
        _ => ("GET", ""),
    };
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: {NAME}\r\n{fields}\r\n"));
    match path {
        "/upload" => drop(client.send("some")),
        "/wait" => {}
        _ => drop(client.read_exact(100)),
    }
    client
}

/// Fails unless the line that a step added says that the client left, and blames nobody else.
fn says_so(gateway: &Gateway, count: &mut usize, what: &str) {
    *count += 1;
    let audit = gateway.wait_audit(*count);
    assert_eq!(audit.len(), *count, "{what}: {audit:#?}");
    let line = &audit[*count - 1];
    assert!(
        line["error"].as_str().is_some_and(|why| why.starts_with("the client left")),
        "{what}: {line}"
    );
    assert!(
        !line["reason"].as_str().is_some_and(|reason| reason.starts_with("origin")),
        "{what}: {line}"
    );
}

#[test]
fn a_client_that_breaks_off_is_said_to_have_left_whatever_each_leg_speaks() {
    isolated(|| {
        let world = world!();
        for newer in [false, true] {
            let (_older, _newer) = match newer {
                false => (Some(http1_origin(&world)), None),
                true => (None, Some(http2_origin(&world))),
            };
            let gateway = world.gateway(environment());
            let mut count = 0;
            for path in STANDS {
                for reason in [Reason::CANCEL, Reason::INTERNAL_ERROR] {
                    let client = gateway.http2(NAME).connect();
                    let mut exchange = begin(&client, path);
                    std::thread::sleep(Duration::from_millis(200));
                    exchange.reset(reason);
                    says_so(&gateway, &mut count, &format!("h2 {path} {reason:?} to {newer}"));
                }
                let client = gateway.http2(NAME).connect();
                let exchange = begin(&client, path);
                std::thread::sleep(Duration::from_millis(200));
                drop((exchange, client));
                says_so(&gateway, &mut count, &format!("h2 {path} gone to {newer}"));
                let client = begin_http1(&gateway, path);
                std::thread::sleep(Duration::from_millis(200));
                client.reset();
                says_so(&gateway, &mut count, &format!("h1 {path} to {newer}"));
            }
        }
    });
}

#[test]
fn a_body_that_breaks_the_rules_is_the_clients_fault_whatever_the_origin_speaks() {
    isolated(|| {
        let world = world!();
        for newer in [false, true] {
            let (_older, _newer) = match newer {
                false => (Some(http1_origin(&world)), None),
                true => (None, Some(http2_origin(&world))),
            };
            let gateway = world.gateway(environment());
            let tunnel = gateway.client().connect_tunnel(&format!("{NAME}:443"));
            let mut client = tunnel.tls(&Hello::to(NAME));
            client.send(format!(
                "POST /upload HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n\
                 4\r\nsome\r\n"
            ));
            std::thread::sleep(Duration::from_millis(300));
            client.send("no size\r\n");
            let answer = client.read_response();
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (400, Some("malformed_request")), "{newer}: {answer:?}");
            let line = &gateway.wait_audit(1)[0];
            assert_eq!(
                (&line["verdict"], &line["status"]),
                (&json!("deny"), &json!(400)),
                "{line}"
            );
            assert!(line["error"].as_str().is_some_and(|why| why.contains("body")), "{line}");
        }
    });
}
