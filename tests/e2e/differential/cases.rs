//! Which odd requests is everybody asked to read?
//!
//! `@/` stands for the start of a target, and each `api.example.com` for the server that is asked.

use outgate_tests::prelude::*;

use crate::servers::Server;
use crate::{bodies, heads};

/// The one `Host` that most requests say.
pub(crate) const HOST: &str = "Host: api.example.com\r\n";

/// Everything here, each to be sent on a connection of its own.
pub(crate) fn all() -> Vec<Vec<u8>> {
    [heads::all(), bodies::all()].concat()
}

/// What nobody can mistake: all servers must be seen to answer these.
pub(crate) fn plain() -> Vec<Vec<u8>> {
    [
        format!("GET @/plain HTTP/1.1\r\n{HOST}\r\n"),
        format!("POST @/length HTTP/1.1\r\n{HOST}Content-Length: 5\r\n\r\nhello"),
        format!(
            "POST @/chunks HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n"
        ),
    ]
    .map(String::into_bytes)
    .into()
}

/// A request line, with what every request needs besides.
pub(crate) fn line(line: impl AsRef<[u8]>) -> Vec<u8> {
    [line.as_ref(), b"\r\n", HOST.as_bytes(), b"\r\n"].concat()
}

/// A GET with these lines of fields and no others.
pub(crate) fn fields(fields: impl AsRef<[u8]>) -> Vec<u8> {
    [b"GET @/ HTTP/1.1\r\n", fields.as_ref(), b"\r\n"].concat()
}

/// A POST with these lines of fields beside `Host`, and what follows its head.
pub(crate) fn framed(fields: impl AsRef<[u8]>, rest: impl AsRef<[u8]>) -> Vec<u8> {
    let head = [b"POST @/ HTTP/1.1\r\n", HOST.as_bytes(), fields.as_ref(), b"\r\n"].concat();
    [&head, rest.as_ref()].concat()
}

/// What the client sends: the request, and behind it a plain one that ends the connection. Empty
/// lines come last: a request that waits for more than it brought gets them.
pub(crate) fn written(case: &[u8], number: usize, server: Server, way: Way) -> Vec<u8> {
    let end = format!("GET @/end HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n");
    let template = [case, end.as_bytes(), "\r\n".repeat(300).as_bytes()].concat();
    let numbered = replace(&template, "@/", &format!("@/{number}/"));
    replace(&way.write(numbered), Server::Strict.name(), server.name())
}

/// `text` with each `from` as `to`, in capitals where that was.
pub(crate) fn replace(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    let is_from = |window: &[u8]| window.eq_ignore_ascii_case(from.as_bytes());
    while let Some(at) = rest.windows(from.len()).position(is_from) {
        let (before, found) = rest.split_at(at);
        let like = |(at, letter): (usize, u8)| match found[at.min(from.len() - 1)] {
            capital if capital.is_ascii_uppercase() => letter.to_ascii_uppercase(),
            _ => letter,
        };
        replaced.extend_from_slice(before);
        replaced.extend(to.bytes().enumerate().map(like));
        rest = &found[from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
