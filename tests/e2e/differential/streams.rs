//! Which odd streams of HTTP/2 are asked to be read by servers of HTTP/1.1?

use outgate_tests::prelude::*;

/// A head, and the body in pieces; `None` where the head is all.
pub(crate) struct Asked {
    pub(crate) fields: Vec<(&'static str, &'static str)>,
    pub(crate) body: Option<&'static str>,
}

/// What would be a second request if a body or a value were taken for lines.
const INNER: &str = "GET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// Fields beside the pseudo-fields of a whole head, whose values may hold anything.
const FIELDS: [&[(&str, &str)]; 30] = [
    &[],
    &[("x", "a\r\nX-Injected: mine")],
    &[("x", "a\nX-Injected: mine")],
    &[("x", "a\r")],
    &[("x", "a\0b")],
    &[("x", " a ")],
    &[("x", "a\r\n\r\nGET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n")],
    &[("x\r\ny", "1")],
    &[("x: 1\r\ny", "1")],
    &[("x y", "1")],
    &[("x:", "1")],
    &[("", "1")],
    &[("X-Upper", "1")],
    &[("x-injected", "mine"), ("x-injected", "mine")],
    &[("x_injected", "mine")],
    &[("connection", "x-injected")],
    &[("transfer-encoding", "chunked")],
    &[("transfer_encoding", "chunked")],
    &[("content_length", "46")],
    &[("content-length", "5")],
    &[("content-length", "0")],
    &[("content-length", "46")],
    &[("content-length", "46"), ("content-length", "0")],
    &[("content-length", "+46")],
    &[("te", "chunked")],
    &[("te", "trailers")],
    &[("trailer", "content-length")],
    &[("expect", "100-continue")],
    &[("upgrade", "h2c"), ("http2-settings", "AAMAAABkAAQAAP__")],
    &[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "")],
];

const PATHS: [&str; 16] = [
    "/a b",
    "/ HTTP/1.1\r\nX-Injected: mine\r\nX: ",
    "/a\r\nb",
    "/a\tb",
    "/a\0b",
    "/a#b",
    "/a?b#c",
    "/a\u{e9}",
    "/%0d%0aX-Injected:%20mine",
    "/\\a",
    "//a",
    "",
    "*",
    "a",
    "?a",
    "http://api.example.com/a",
];

const METHODS: [&str; 10] = [
    "POST",
    "HEAD",
    "OPTIONS",
    "DELETE",
    "FOO",
    "get",
    "G ET",
    "GET / HTTP/1.1\r\nX: 1\r\n\r\nGET",
    "",
    "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM",
];

const HOSTS: [&[(&str, &str)]; 8] = [
    &[("host", "api.example.com")],
    &[("host", "evil.example.test")],
    &[("host", "api.example.com"), ("host", "evil.example.test")],
    &[("host", "api.example.com:443")],
    &[(":authority", "api.example.com")],
    &[(":authority", "evil.example.test")],
    &[(":path", "/two")],
    &[(":method", "POST")],
];

/// Every head without a body, and with one that looks like a request.
pub(crate) fn all() -> Vec<Asked> {
    let whole = |method, path, more: &[(&'static str, &'static str)]| {
        let mut fields = vec![(":method", method), (":scheme", "https"), (":path", path)];
        fields.push((":authority", "api.example.com"));
        // A second pseudo-field stands with the others.
        fields.extend(more.iter().filter(|(name, _)| name.starts_with(':')));
        fields.extend(more.iter().filter(|(name, _)| !name.starts_with(':')));
        fields
    };
    let heads = FIELDS.iter().chain(&HOSTS).map(|fields| whole("POST", "/", fields));
    let paths = PATHS.iter().map(|path| whole("GET", path, &[]));
    let methods = METHODS.iter().map(|method| whole(method, "/", &[]));
    let all: Vec<_> = heads.chain(paths).chain(methods).collect();
    let with = |body| all.iter().cloned().map(move |fields| Asked { fields, body });
    with(None).chain(with(Some(INNER))).collect()
}

/// Sends one on a connection of its own, and a plain one behind it.
pub(crate) fn send(gateway: &Gateway, name: &str, number: usize, asked: &Asked) {
    let named = |text: &str| text.replace("api.example.com", name);
    let fields: Vec<(String, String)> = asked
        .fields
        .iter()
        .map(|(field, value)| match *field {
            ":path" if value.starts_with('/') => (named(field), format!("/{number}{value}")),
            _ => (named(field), named(value)),
        })
        .collect();
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut client = gateway.frames(name);
    match asked.body {
        None => drop(client.send(frames::headers(1, &fields))),
        Some(body) => {
            client.send(frames::open_headers(1, &fields));
            client.send(frames::data(1, &body.as_bytes()[..5], false));
            client.send(frames::data(1, &body.as_bytes()[5..], true));
        }
    }
    // Where the first has ended the connection, there is no second.
    if client.try_answer(1).is_some() {
        let end = format!("/{number}/end");
        let plain =
            [(":method", "GET"), (":scheme", "https"), (":path", &end), (":authority", name)];
        client.send(frames::headers(3, &plain));
        client.try_answer(3);
    }
}
