//! Which behaviours of origins do tests ask for again and again?
//!
//! Each function makes a script for [`Builder::script`](super::Builder::script). All but those that
//! end the connection answer one request after the other.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Connection, Script};
use crate::http::{Request, Response};

/// RFC 6455 1.3.
const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A whole 200 response with this body and its length.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Each request gets these bytes.
pub fn respond(response: impl Into<Vec<u8>>) -> Box<Script> {
    let response = response.into();
    Box::new(
        move |connection: &mut Connection| {
            while connection.request().is_some() && connection.send(&response) {}
        },
    )
}

/// The first request gets these bytes, then the connection ends.
pub fn respond_and_close(response: impl Into<Vec<u8>>) -> Box<Script> {
    let response = response.into();
    Box::new(move |connection: &mut Connection| {
        if connection.request().is_some() {
            connection.send(&response);
        }
    })
}

/// Each request gets these bytes after a while.
pub fn respond_after(delay: Duration, response: impl Into<Vec<u8>>) -> Box<Script> {
    let response = response.into();
    Box::new(move |connection: &mut Connection| {
        while connection.request().is_some() {
            connection.pause(delay);
            if !connection.send(&response) {
                return;
            }
        }
    })
}

/// Each request is answered with what the origin received of it, as JSON:
/// `{"method", "target", "headers": [[name, value], …], "body"}`.
pub fn echo() -> Box<Script> {
    Box::new(|connection: &mut Connection| {
        while let Some(request) = connection.request() {
            let body = if request.method == "HEAD" { String::new() } else { echo_body(&request) };
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                echo_body(&request).len()
            );
            if !connection.send(response) {
                return;
            }
        }
    })
}

/// The headers that [`echo`] says it received, by their names in lower case.
///
/// # Panics
/// When the answer is not one of [`echo`].
pub fn echoed_headers(answer: &Response) -> HashMap<String, Vec<String>> {
    let mut headers: HashMap<String, Vec<String>> = HashMap::new();
    let echoed = answer.json();
    for field in echoed["headers"].as_array().expect("the echo lists them") {
        let text = |at: usize| field[at].as_str().expect("both are text").to_owned();
        headers.entry(text(0).to_lowercase()).or_default().push(text(1));
    }
    headers
}

/// Each request gets a chunked body and these trailer lines.
pub fn chunked(chunks: &[&str], trailers: &[&str]) -> Box<Script> {
    let mut response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for chunk in chunks {
        response += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
    }
    response += "0\r\n";
    for line in trailers {
        response += &format!("{line}\r\n");
    }
    respond(response + "\r\n")
}

/// Announces `announced` bytes, sends `sent` of them, and ends the connection.
pub fn truncated(announced: usize, sent: usize) -> Box<Script> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n");
    respond_and_close([head.into_bytes(), vec![b'x'; sent]].concat())
}

/// Sends these bytes in answer to the first request, then RST.
pub fn reset_after(response: impl Into<Vec<u8>>) -> Box<Script> {
    let response = response.into();
    Box::new(move |connection: &mut Connection| {
        if connection.request().is_some() {
            connection.send(&response);
            // RST throws away what the peer has not read yet.
            connection.pause(Duration::from_millis(100));
        }
        connection.reset();
    })
}

/// Ends each connection with RST before a byte is read.
pub fn reset_at_once() -> Box<Script> {
    Box::new(Connection::reset)
}

/// 103 Early Hints before the answer to each request.
pub fn early_hints(link: &str, response: impl Into<Vec<u8>>) -> Box<Script> {
    let hints = format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n");
    respond([hints.into_bytes(), response.into()].concat())
}

/// The answer to each request in pieces of `length` bytes with a pause between them.
pub fn slow(response: impl Into<Vec<u8>>, length: usize, pause: Duration) -> Box<Script> {
    let response = response.into();
    Box::new(move |connection: &mut Connection| {
        while connection.request().is_some() {
            for piece in response.chunks(length) {
                if !connection.send(piece) {
                    return;
                }
                thread::sleep(pause);
            }
        }
    })
}

/// Each request gets a body of `length` bytes, which is never held in memory as a whole.
pub fn big(length: usize) -> Box<Script> {
    const PIECE: usize = 64 * 1024;
    Box::new(move |connection: &mut Connection| {
        let piece = vec![b'x'; PIECE];
        while connection.request().is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let mut alive = connection.send(head);
            let mut left = length;
            while alive && left > 0 {
                let size = left.min(PIECE);
                alive = connection.send(&piece[..size]);
                left -= size;
            }
            if !alive {
                return;
            }
        }
    })
}

/// Takes the body of one request of any size without keeping it and answers with its length, which
/// the request must declare.
pub fn swallow() -> Box<Script> {
    Box::new(|connection: &mut Connection| {
        let Some(head) = connection.head() else {
            return;
        };
        let announced: usize =
            head.value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut received = 0;
        while received < announced {
            match connection.bytes().len() {
                0 => return,
                length => received += length,
            }
        }
        connection.send(ok(received.to_string()));
    })
}

/// Agrees to a WebSocket and gives every byte that follows back.
pub fn websocket_echo() -> Box<Script> {
    Box::new(|connection: &mut Connection| {
        let Some(request) = connection.request() else {
            return;
        };
        let key = request.header("sec-websocket-key").unwrap_or_default().to_owned();
        connection.upgrade();
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            websocket_accept(&key)
        ));
        loop {
            let bytes = connection.bytes();
            if bytes.is_empty() || !connection.send(&bytes) {
                return;
            }
        }
    })
}

/// What a server must answer to this `Sec-WebSocket-Key` (RFC 6455 4.2.2).
pub fn websocket_accept(key: &str) -> String {
    let text = format!("{key}{WEBSOCKET_GUID}");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

fn echo_body(request: &Request) -> String {
    let headers: Vec<Value> =
        request.head.fields.iter().map(|field| json!([field.name, field.value])).collect();
    json!({
        "method": request.method,
        "target": request.target,
        "headers": headers,
        "body": request.text(),
    })
    .to_string()
}
