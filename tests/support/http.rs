//! Is this exactly one well-formed HTTP/1.1 message?
//!
//! A strict parser of its own, so that a test never agrees with the gateway by sharing its leniency:
//! what RFC 9112 lets a recipient repair is refused here.

mod body;
mod head;
mod incoming;

use std::fmt;

pub use head::{Field, Head};
pub(crate) use incoming::Incoming;
pub use incoming::ReadFault;

use body::{BodyParser, Framing};

/// Of a body a failing test shows no more.
const SHOWN: usize = 2048;

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "malformed HTTP: {}", self.0)
    }
}

/// A whole request.
#[derive(Clone)]
pub struct Request {
    /// As on the wire.
    pub method: String,
    /// As on the wire.
    pub target: String,
    /// Its head.
    pub head: Head,
    /// Without its framing.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<Field>,
}

impl Request {
    /// The value of the one field of this name.
    ///
    /// # Panics
    /// When there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.value(name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A whole response.
#[derive(Clone)]
pub struct Response {
    /// Three digits.
    pub status: u16,
    /// What stands behind them, perhaps empty.
    pub reason: String,
    /// Its head.
    pub head: Head,
    /// Without its framing.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<Field>,
    /// The 1xx responses before it.
    pub interim: Vec<Head>,
}

impl Response {
    /// The value of the one field of this name.
    ///
    /// # Panics
    /// When there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.value(name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|fault| panic!("not JSON ({fault}): {}", self.text()))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(formatter, &self.head, &self.text(), &self.trailers)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interim.iter().try_for_each(|head| writeln!(formatter, "{head:?}"))?;
        show(formatter, &self.head, &self.text(), &self.trailers)
    }
}

fn show(
    formatter: &mut fmt::Formatter<'_>,
    head: &Head,
    body: &str,
    trailers: &[Field],
) -> fmt::Result {
    let start: String = body.chars().take(SHOWN).collect();
    write!(formatter, "{head:?} body {start:?} ({} bytes) trailers {trailers:?}", body.len())
}

/// All whole requests at the start of `bytes`, in order; an unfinished one at the end is left out.
///
/// # Errors
/// When something there can't be the start of a request.
pub fn requests(bytes: &[u8]) -> Result<Vec<Request>, Malformed> {
    let mut requests = Vec::new();
    let mut rest = bytes;
    while let Some((head, used)) = Head::parse(rest)? {
        let line = head.request_line()?;
        let mut body = BodyParser::new(Framing::of_request(&head)?);
        if !body.advance(&rest[used..], true)? {
            break;
        }
        rest = &rest[used + body.consumed()..];
        requests.push(body.into_request(line, head));
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Request {
        let mut all = requests(text.as_bytes()).unwrap();
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn reads_a_request_with_its_lines_in_order() {
        let text = "POST /a?b HTTP/1.1\r\nHost: x\r\nX-One:1\r\nContent-Length: 2\r\n\r\nhi";
        let request = one(text);
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/a?b"));
        assert_eq!(request.header("x-one"), Some("1"));
        assert_eq!(request.header("absent"), None);
        assert_eq!(request.body, b"hi");
        assert_eq!(request.head.raw, text.as_bytes()[..text.len() - 2]);
        let names: Vec<&str> =
            request.head.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["Host", "X-One", "Content-Length"]);
    }

    #[test]
    fn reads_chunks_and_trailers() {
        let request = one("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                           3\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n");
        assert_eq!(request.text(), "abc0123456789");
        assert_eq!((request.trailers[0].name.as_str(), request.trailers.len()), ("X-Sum", 1));
    }

    #[test]
    fn reads_one_request_after_the_other() {
        let text = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HT";
        let targets: Vec<String> =
            requests(text.as_bytes()).unwrap().into_iter().map(|request| request.target).collect();
        assert_eq!(targets, ["/1", "/2"]);
    }

    #[test]
    fn leaves_out_an_unfinished_body() {
        for text in [
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        ] {
            assert!(requests(text.as_bytes()).unwrap().is_empty(), "{text}");
        }
    }

    #[test]
    fn refuses_what_a_lenient_parser_repairs() {
        let host = "Host: x\r\n";
        for (fault, text) in [
            ("bare LF", "GET / HTTP/1.1\nHost: x\n\n".to_owned()),
            ("bare LF in the middle", format!("GET / HTTP/1.1\r\n{host}X: 1\n\r\n")),
            ("bare CR", format!("GET / HTTP/1.1\r\n{host}X: 1\r2\r\n\r\n")),
            ("NUL", format!("GET / HTTP/1.1\r\n{host}X: \0\r\n\r\n")),
            ("obs-fold", format!("GET / HTTP/1.1\r\n{host}X: 1\r\n 2\r\n\r\n")),
            ("fold after the request line", format!("GET / HTTP/1.1\r\n {host}\r\n")),
            ("blank before the colon", format!("GET / HTTP/1.1\r\n{host}X : 1\r\n\r\n")),
            ("no colon", format!("GET / HTTP/1.1\r\n{host}X\r\n\r\n")),
            ("empty name", format!("GET / HTTP/1.1\r\n{host}: 1\r\n\r\n")),
            ("empty line first", format!("\r\nGET / HTTP/1.1\r\n{host}\r\n")),
            ("two blanks", format!("GET  / HTTP/1.1\r\n{host}\r\n")),
            ("tab in the request line", format!("GET\t/ HTTP/1.1\r\n{host}\r\n")),
            ("blank in the target", format!("GET /a b HTTP/1.1\r\n{host}\r\n")),
            ("fragment", format!("GET /a#b HTTP/1.1\r\n{host}\r\n")),
            ("other version", format!("GET / HTTP/1.0\r\n{host}\r\n")),
            ("no Host", "GET / HTTP/1.1\r\n\r\n".to_owned()),
            ("two Hosts", format!("GET / HTTP/1.1\r\n{host}{host}\r\n")),
        ] {
            assert!(requests(text.as_bytes()).is_err(), "{fault} was let through");
        }
    }

    #[test]
    fn refuses_ambiguous_framing() {
        for (fault, framing, body) in [
            ("CL and TE", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            ("two equal CL", "Content-Length: 1\r\nContent-Length: 1\r\n", "a"),
            ("two CL", "Content-Length: 1\r\nContent-Length: 2\r\n", "ab"),
            ("CL list", "Content-Length: 1, 1\r\n", "a"),
            ("signed CL", "Content-Length: +1\r\n", "a"),
            ("empty CL", "Content-Length: \r\n", ""),
            ("huge CL", "Content-Length: 99999999999999999999\r\n", ""),
            ("TE list", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
            ("two TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            ("TE spelling", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
            ("chunk size", "Transfer-Encoding: chunked\r\n", "0x1\r\na\r\n0\r\n\r\n"),
            ("empty chunk size", "Transfer-Encoding: chunked\r\n", "\r\na\r\n0\r\n\r\n"),
            ("chunk extension", "Transfer-Encoding: chunked\r\n", "1;x\r\na\r\n0\r\n\r\n"),
            ("chunk end", "Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"),
            ("chunk LF", "Transfer-Encoding: chunked\r\n", "1\na\r\n0\r\n\r\n"),
            ("folded trailer", "Transfer-Encoding: chunked\r\n", "0\r\nX: 1\r\n 2\r\n\r\n"),
            ("framing trailer", "Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 1\r\n\r\n"),
        ] {
            let text = format!("POST / HTTP/1.1\r\nHost: x\r\n{framing}\r\n{body}");
            assert!(requests(text.as_bytes()).is_err(), "{fault} was let through");
        }
    }
}
