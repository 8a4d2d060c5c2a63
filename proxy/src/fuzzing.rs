//! What would leave for an origin, whatever a client sends?
//!
//! The request path without sockets, for fuzz targets: bytes as a client sends them in, bytes as
//! an origin gets them out. Policy and dialling are left out; everything that reads a request,
//! reconciles it and writes it anew is the real thing.

mod ways;
mod websocket;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use outgate_policy::{Destination, Host, Scheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

pub use self::ways::{hello, socks_request};
pub use self::websocket::websocket;
use crate::exchange::body::{ReplyBody, RequestBody};
use crate::exchange::client_io::Deadlines;
use crate::exchange::inject::prepare;
use crate::exchange::serve::{self, Service};
use crate::exchange::{Door, RequestHead, TunnelTarget};
use crate::gateway::Drain;
use crate::ingress::detect::{Protocol, detect};
use crate::ingress::prefixed::Prefixed;
use crate::limits::Limits;
use crate::upstream::Trail;

/// The tunnel that every fuzzed request comes through.
pub const HOST: &str = "api.example.com";
/// The header that every request is given.
pub const INJECTED: (&str, &str) = ("authorization", "Bearer injected");

/// More than any fuzzed input or its answers.
const ROOM: usize = 1 << 20;
/// On a paused clock: as soon as nothing else can happen.
const SOON: Duration = Duration::from_secs(1);

/// The requests that an origin gets when a client sends `input` as HTTP/1.1, each as its bytes.
pub fn forwarded_http1(input: &[u8]) -> Vec<Vec<u8>> {
    forwarded(input, false)
}

/// The same for a client that sends `input` as HTTP/2, preface and all.
pub fn forwarded_http2(input: &[u8]) -> Vec<Vec<u8>> {
    forwarded(input, true)
}

/// What a tunnel's first bytes are taken for, when they come in pieces of these lengths; what is
/// read afterwards must be `input` unchanged.
pub fn detected(input: &[u8], pieces: &[usize]) -> String {
    block_on(async {
        let (mut client, server) = duplex(ROOM);
        let mut rest = input;
        let writing = async {
            for piece in pieces {
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                rest = later;
                client.write_all(now).await.expect("the reader takes all");
                tokio::task::yield_now().await;
            }
            client.write_all(rest).await.expect("the reader takes all");
            drop(client);
        };
        let reading = async {
            let (protocol, mut io) = detect(Prefixed::new(Bytes::new(), server)).await.expect("io");
            let mut all = Vec::new();
            io.read_to_end(&mut all).await.expect("io");
            (protocol, all)
        };
        let ((), (protocol, all)) = tokio::join!(writing, reading);
        assert_eq!(all, input, "bytes changed on the way");
        match protocol {
            Protocol::Tls => "tls",
            Protocol::Http1 => "http1",
            Protocol::Http2 => "http2",
            Protocol::Other => "other",
            Protocol::Silence => "silence",
        }
        .to_owned()
    })
}

/// The SNI that is read from a ClientHello that comes in pieces of these lengths, `None` where it
/// is no valid ClientHello.
pub fn server_name(input: &[u8], pieces: &[usize]) -> Option<Option<String>> {
    let mut acceptor = rustls::server::Acceptor::default();
    let mut pieces =
        pieces.iter().map(|piece| (*piece).max(1)).chain(std::iter::repeat(usize::MAX));
    let mut rest = input;
    while !rest.is_empty() {
        let (mut now, later) = rest.split_at(pieces.next().unwrap_or(1).min(rest.len()));
        rest = later;
        while !now.is_empty() {
            acceptor.read_tls(&mut now).ok().filter(|read| *read > 0)?;
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    return Some(accepted.client_hello().server_name().map(str::to_owned));
                }
                Err(_) => return None,
            }
        }
    }
    None
}

/// What a sandbox's name server says to `input`, if anything.
pub fn dns_answer(input: &[u8]) -> Option<Vec<u8>> {
    crate::dns::answer_alone(input)
}

fn forwarded(input: &[u8], http2: bool) -> Vec<Vec<u8>> {
    block_on(async {
        let (mut client, server) = duplex(ROOM);
        let limits = Limits::default();
        let recorder = Arc::new(Recorder::new());
        let (_gateway, drain) = Drain::never();
        let deadlines = Deadlines::new(SOON * 3, &limits);
        let serving = async {
            if http2 {
                drop(serve::http2(server, &recorder, deadlines, &limits, drain).await);
            } else {
                serve::http1(server, &recorder, deadlines, &limits, drain).await;
            }
        };
        let sending = async {
            // A server that hangs up early has heard enough. The socket stays open: closing it would
            // cancel what runs.
            drop(client.write_all(input).await);
            let mut answers = Vec::new();
            drop(client.read_to_end(&mut answers).await);
        };
        tokio::join!(serving, sending);
        let mut seen = recorder.seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *seen)
    })
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO needs nothing of the machine")
        .block_on(future)
}

struct Recorder {
    target: TunnelTarget,
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Recorder {
    fn new() -> Recorder {
        let host = Host::from_wire(HOST.as_bytes()).expect("a valid name");
        let target =
            TunnelTarget::new(Destination { host, port: 443 }, Scheme::Https, Trail::default());
        Recorder { target, seen: Mutex::default() }
    }

    async fn pass(&self, request: Request<Incoming>) -> Option<()> {
        let (parts, body) = request.into_parts();
        let head = RequestHead::read(parts, Door::Tunnel(&self.target)).ok()?;
        let (name, value) = INJECTED;
        let injected = (HeaderName::from_static(name), HeaderValue::from_static(value));
        let (request, framing) = prepare(head, vec![injected], body.into(), None);
        let upload = request.body().progress();
        let (near, far) = duplex(ROOM);
        let (mut sender, connection) =
            http1::Builder::new().handshake::<_, RequestBody>(TokioIo::new(near)).await.ok()?;
        let exchange = async {
            let sent = sender.try_send_request(framing.for_http1(request)).await;
            drop(sender);
            sent.is_ok()
        };
        let (answered, _, bytes) = tokio::join!(exchange, connection, origin(far));
        // An upload that breaks off is no request, even if the origin did not wait for its end.
        if answered && upload.is_finished() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
        Some(())
    }
}

impl Service for Recorder {
    async fn answer(&self, request: Request<Incoming>) -> Response<ReplyBody> {
        self.pass(request).await;
        Response::new(ReplyBody::empty())
    }
}

/// Answers once nothing more comes, and gives what came.
async fn origin(mut io: DuplexStream) -> Vec<u8> {
    let mut seen = Vec::new();
    while let Ok(Ok(read)) = tokio::time::timeout(SOON, io.read_buf(&mut seen)).await {
        if read == 0 {
            return seen;
        }
    }
    drop(io.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await);
    drop(io.read_to_end(&mut seen).await);
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pipelined_requests_are_two_requests_for_the_origin() {
        let input = b"GET /a HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: mine\r\n\r\n\
                      POST /b HTTP/1.1\r\nHost: API.example.com.\r\nTransfer-Encoding: chunked\r\n\r\n\
                      3\r\nabc\r\n0\r\n\r\n";
        let seen = forwarded_http1(input);
        let texts: Vec<_> = seen.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("GET /a HTTP/1.1\r\n"), "{}", texts[0]);
        assert!(texts[0].contains("\r\nAuthorization: Bearer injected\r\n"), "{}", texts[0]);
        assert!(texts[1].ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "{}", texts[1]);
    }

    #[test]
    fn a_request_for_another_name_is_none_for_the_origin() {
        let input = b"GET /a HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
        assert!(forwarded_http1(input).is_empty());
    }

    #[test]
    fn a_cut_changes_nothing() {
        assert_eq!(detected(b"GET / HTTP/1.1\r\n\r\n", &[1, 1, 1, 1]), "http1");
        assert_eq!(detected(b"\x16\x03\x01rest", &[1]), "tls");
        let request = b"\x05\x01\x00\x03\x06a.test\x01\xbbrest";
        assert_eq!(socks_request(request, &[1, 2, 3]), Some(("a.test:443".to_owned(), 4)));
        assert_eq!(hello(b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", &[1, 5]), None);
    }
}
