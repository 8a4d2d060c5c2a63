//! Whom do the clients ask? A host that has files, git repositories and WebSockets, one with gRPC,
//! and one with ssh. What comes over HTTP without the secret is sent away.

#[path = "host/cgi.rs"]
mod cgi;
#[path = "host/ssh.rs"]
mod ssh;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_tests::command::Running;
use outgate_tests::prelude::*;

pub(super) use ssh::SSH_PORT;

use crate::table::Speaks;

pub(super) const WEB: &str = "api.example.com";
pub(super) const GRPC: &str = "grpc.example.com";
pub(super) const SSH: &str = "ssh.example.com";

/// One of them, running.
pub(super) enum Host {
    Web(Origin),
    Grpc(Http2Origin),
    /// It ends with its process.
    Ssh(#[expect(dead_code, reason = "held until the test is over")] Running),
}

/// What it has and whom it serves.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) folder: PathBuf,
    pub(super) greeting: String,
    /// The value of `Authorization`.
    pub(super) secret: String,
}

impl Host {
    pub(super) fn start(world: &World, speaks: Speaks, offer: Offer) -> Host {
        world.name(GRPC, "11.22.33.77");
        world.name(SSH, "11.22.33.88");
        match speaks {
            Speaks::Http => Host::Web(world.https(WEB).script(web(offer)).start()),
            Speaks::Grpc => Host::Grpc(world.http2(GRPC).script(grpc(offer)).start()),
            Speaks::Ssh => Host::Ssh(ssh::start(&offer.folder, "11.22.33.88")),
        }
    }

    /// The values of `Authorization` of each request so far.
    pub(super) fn authorizations(&self) -> Vec<Vec<String>> {
        let texts = |values: Vec<&str>| values.into_iter().map(str::to_owned).collect();
        let name = "authorization";
        match self {
            Host::Web(origin) => {
                origin.requests().iter().map(|request| texts(request.head.values(name))).collect()
            }
            Host::Grpc(origin) => {
                origin.requests().iter().map(|request| texts(request.values(name))).collect()
            }
            Host::Ssh(_) => Vec::new(),
        }
    }
}

fn web(offer: Offer) -> impl Fn(&mut Connection) + Send + Sync {
    move |connection| {
        while let Some(request) = connection.request() {
            if request.header("upgrade").is_some() && may(&offer, &request) {
                return greet_by_websocket(connection, &request, &offer.greeting);
            }
            if !connection.send(answer(&offer, &request)) {
                return;
            }
        }
    }
}

fn may(offer: &Offer, request: &Request) -> bool {
    request.head.values("authorization") == [offer.secret.as_str()]
}

fn answer(offer: &Offer, request: &Request) -> Vec<u8> {
    if !may(offer, request) {
        let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n";
        return format!("{head}Content-Length: 0\r\n\r\n").into_bytes();
    }
    let path = request.target.split('?').next().unwrap_or_default();
    if path.starts_with("/git/") {
        return cgi::git(&offer.folder, request);
    }
    let Some((kind, content)) = file(&offer.folder, path) else {
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
    };
    let length = content.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    let body = if request.method == "HEAD" { Vec::new() } else { content };
    [head.into_bytes(), body].concat()
}

/// A file, or the index of a folder. Only what a test put there is asked for.
fn file(folder: &Path, path: &str) -> Option<(&'static str, Vec<u8>)> {
    let file = folder.join(path.trim_matches('/'));
    let (kind, file) = match file.is_dir() {
        true => ("text/html", file.join("index.html")),
        false => ("text/plain", file),
    };
    fs::read(file).ok().map(|content| (kind, content))
}

/// One text message (RFC 6455 5.6), and the end as soon as the client says something.
fn greet_by_websocket(connection: &mut Connection, request: &Request, greeting: &str) {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    connection.upgrade();
    connection.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        scripts::websocket_accept(key)
    ));
    let length = u8::try_from(greeting.len()).expect("a greeting is short");
    connection.send([&[0x81, length], greeting.as_bytes()].concat());
    connection.bytes();
    connection.send([0x88, 0]);
}

fn grpc(offer: Offer) -> impl Fn(&mut Stream) + Send + Sync {
    let offer = Arc::new(offer);
    move |stream| {
        stream.body();
        let kind = [("content-type", "application/grpc")];
        if stream.request().values("authorization") != [offer.secret.as_str()] {
            return stream.respond_only(200, &[kind[0], ("grpc-status", "16")]);
        }
        stream.respond(200, &kind);
        let length = u32::try_from(offer.greeting.len()).expect("a greeting is short");
        // Not compressed, the length, the bytes.
        stream.send([&[0], &length.to_be_bytes()[..], offer.greeting.as_bytes()].concat());
        stream.finish_with(&[("grpc-status", "0")]);
    }
}
