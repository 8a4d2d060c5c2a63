//! What can a script do with one stream?

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::request::Parts;
use http::{HeaderMap, Response};
use serde_json::json;
use tokio::runtime::Handle;

use super::{Http2Request, lock};
use crate::http2::{header_map, send_all, within};

/// A script waits no longer than this for what doesn't come.
const PATIENCE: Duration = Duration::from_secs(30);

/// One request in the hands of its script. A stream without an answer at the script's end is reset.
pub struct Stream {
    handle: Handle,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    answer: Option<SendStream<Bytes>>,
    record: Arc<Mutex<Http2Request>>,
}

impl Stream {
    pub(super) fn new(
        handle: Handle,
        body: RecvStream,
        respond: SendResponse<Bytes>,
        record: Arc<Mutex<Http2Request>>,
    ) -> Self {
        Self { handle, body, respond, answer: None, record }
    }

    /// The request as far as it was read.
    pub fn request(&self) -> Http2Request {
        lock(&self.record).clone()
    }

    /// The next bytes of the body, for which a new window is given; `None` at its end, and when the
    /// client broke it off.
    pub fn data(&mut self) -> Option<Bytes> {
        match within(&self.handle, PATIENCE, self.body.data())?? {
            Ok(data) => {
                // It fails when the stream has ended meanwhile.
                let _ = self.body.flow_control().release_capacity(data.len());
                lock(&self.record).body.extend_from_slice(&data);
                Some(data)
            }
            Err(fault) => {
                lock(&self.record).reset = fault.reason();
                None
            }
        }
    }

    /// The whole body, and the trailers behind it.
    pub fn body(&mut self) -> Vec<u8> {
        while self.data().is_some() {}
        let trailers = within(&self.handle, PATIENCE, self.body.trailers());
        if let Some(Ok(Some(trailers))) = trailers {
            lock(&self.record).trailers = texts(&trailers);
        }
        self.request().body
    }

    /// The length of the body, of which nothing is kept.
    pub fn swallow(&mut self) -> usize {
        let mut length = 0;
        while let Some(data) = self.data() {
            length += data.len();
            lock(&self.record).body.clear();
        }
        length
    }

    /// The head of an answer whose body follows.
    pub fn respond(&mut self, status: u16, headers: &[(&'static str, &str)]) {
        let sent = self.respond.send_response(head(status, headers), false);
        self.answer = sent.ok();
    }

    /// An answer without a body: with its head the stream ends.
    pub fn respond_only(&mut self, status: u16, headers: &[(&'static str, &str)]) {
        // The client may have left.
        let _ = self.respond.send_response(head(status, headers), true);
    }

    /// A whole answer.
    pub fn answer(&mut self, status: u16, headers: &[(&'static str, &str)], body: &[u8]) {
        self.respond(status, headers);
        self.send(body);
        self.finish();
    }

    /// Sends a piece of the answer's body as windows allow it. Whether the client still took it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        let Some(answer) = &mut self.answer else { return false };
        within(&self.handle, PATIENCE, send_all(answer, bytes)) == Some(bytes.len())
    }

    /// Ends the answer.
    pub fn finish(&mut self) {
        if let Some(answer) = &mut self.answer {
            // The client may have left.
            let _ = answer.send_data(Bytes::new(), true);
        }
    }

    /// Ends the answer with trailers.
    pub fn finish_with(&mut self, trailers: &[(&'static str, &str)]) {
        if let Some(answer) = &mut self.answer {
            // The client may have left.
            let _ = answer.send_trailers(header_map(trailers));
        }
    }

    /// RST_STREAM.
    pub fn reset(&mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Waits until the client breaks the stream off, up to 30 s; its reason.
    pub fn wait_reset(&mut self) -> Option<Reason> {
        let reset = match &mut self.answer {
            Some(answer) => within(&self.handle, PATIENCE, poll_fn(|cx| answer.poll_reset(cx))),
            None => within(&self.handle, PATIENCE, poll_fn(|cx| self.respond.poll_reset(cx))),
        };
        let reason = reset.and_then(|reset| reset.map_or_else(|fault| fault.reason(), Some));
        lock(&self.record).reset = reason;
        reason
    }

    /// Agrees to a WebSocket, with these fields besides, and gives every byte that follows back. What
    /// is no WebSocket is answered by 400.
    pub fn echo_websocket(&mut self, headers: &[(&'static str, &str)]) {
        if self.request().protocol.as_deref() != Some("websocket") {
            return self.respond_only(400, &[]);
        }
        self.respond(200, headers);
        while let Some(piece) = self.data() {
            self.send(piece);
        }
        self.finish();
    }

    /// Does nothing for a while.
    pub fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    /// Answers with what came, as JSON: `{"method", "scheme", "authority", "target", "headers":
    /// [[name, value], …], "body"}`.
    pub fn echo(&mut self) {
        self.body();
        let request = self.request();
        let text = json!({
            "method": request.method,
            "scheme": request.scheme,
            "authority": request.authority,
            "target": request.path,
            "headers": request.headers,
            "body": String::from_utf8_lossy(&request.body),
        });
        let head = [("content-type", "application/json")];
        match request.method.as_str() {
            "HEAD" => self.respond_only(200, &head),
            _ => self.answer(200, &head, text.to_string().as_bytes()),
        }
    }
}

pub(super) fn request(connection: usize, head: &Parts) -> Http2Request {
    Http2Request {
        connection,
        method: head.method.to_string(),
        protocol: head.extensions.get::<Protocol>().map(|protocol| protocol.as_str().to_owned()),
        scheme: head.uri.scheme_str().map(str::to_owned),
        authority: head.uri.authority().map(ToString::to_string),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: texts(&head.headers),
        ..Http2Request::default()
    }
}

fn head(status: u16, headers: &[(&'static str, &str)]) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::from_u16(status).expect("three digits");
    *response.headers_mut() = header_map(headers);
    response
}

fn texts(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    fields.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}
