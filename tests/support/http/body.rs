//! Where does the body of a message end?

use super::head::{Field, Head, latin1, refuse_other_line_ends};
use super::{Malformed, Request, Response};

/// A chunk-size line needs no more; extensions are refused, as whoever makes framing anew adds none.
const LONGEST_SIZE: usize = 16;

/// Far beyond what any test sends.
const LONGEST_TRAILERS: usize = 1024 * 1024;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Framing {
    pub(crate) fn of_request(head: &Head) -> Result<Self, Malformed> {
        Ok(Self::declared(head)?.unwrap_or(Self::Length(0)))
    }

    /// RFC 9112 6.3. A 2xx to CONNECT, 1xx and 204 must not declare a body at all.
    pub(crate) fn of_response(head: &Head, status: u16, method: &str) -> Result<Self, Malformed> {
        let declared = Self::declared(head)?;
        let tunnel = method == "CONNECT" && (200..300).contains(&status);
        if tunnel || status < 200 || status == 204 {
            return match declared {
                None => Ok(Self::Length(0)),
                Some(_) => Err(Malformed(format!("a {status} that declares a body"))),
            };
        }
        if method == "HEAD" || status == 304 {
            return Ok(Self::Length(0));
        }
        Ok(declared.unwrap_or(Self::UntilClose))
    }

    fn declared(head: &Head) -> Result<Option<Self>, Malformed> {
        let lengths = head.values("content-length");
        let codings = head.values("transfer-encoding");
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => Ok(None),
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Self::Chunked)),
            ([length], []) if is_number(length) => length
                .parse()
                .map(|length| Some(Self::Length(length)))
                .map_err(|_| Malformed(format!("Content-Length {length}"))),
            _ => Err(Malformed(format!(
                "framing with Content-Length {lengths:?} and Transfer-Encoding {codings:?}"
            ))),
        }
    }
}

/// Takes a body out of its framing, as the bytes come in.
pub(crate) struct BodyParser {
    framing: Framing,
    consumed: usize,
    body: Vec<u8>,
    trailers: Vec<Field>,
    /// The size of the chunk whose data is due; `Some(0)` when trailers are.
    chunk: Option<usize>,
}

impl BodyParser {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, consumed: 0, body: Vec::new(), trailers: Vec::new(), chunk: None }
    }

    /// Goes on with `bytes`, all that has come after the head so far. Whether the body is complete.
    pub(crate) fn advance(&mut self, bytes: &[u8], at_end: bool) -> Result<bool, Malformed> {
        match self.framing {
            Framing::Length(length) => {
                let end = bytes.len().min(length);
                self.take_to(bytes, end);
                Ok(end == length)
            }
            Framing::UntilClose => {
                self.take_to(bytes, bytes.len());
                Ok(at_end)
            }
            Framing::Chunked => self.advance_chunks(bytes),
        }
    }

    /// How many of the bytes after the head belong to the body and its framing.
    pub(crate) fn consumed(&self) -> usize {
        self.consumed
    }

    /// What came of the body so far.
    pub(crate) fn into_partial(self) -> Vec<u8> {
        self.body
    }

    pub(crate) fn into_request(self, line: (String, String), head: Head) -> Request {
        let (method, target) = line;
        Request { method, target, head, body: self.body, trailers: self.trailers }
    }

    pub(crate) fn into_response(
        self,
        (status, reason): (u16, String),
        head: Head,
        interim: Vec<Head>,
    ) -> Response {
        Response { status, reason, head, body: self.body, trailers: self.trailers, interim }
    }

    fn take_to(&mut self, bytes: &[u8], end: usize) {
        self.body.extend_from_slice(&bytes[self.consumed..end]);
        self.consumed = end;
    }

    fn advance_chunks(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        loop {
            let rest = &bytes[self.consumed..];
            match self.chunk {
                None => {
                    let Some((size, used)) = chunk_size(rest)? else {
                        return Ok(false);
                    };
                    self.chunk = Some(size);
                    self.consumed += used;
                }
                Some(0) => return self.finish_with_trailers(rest),
                Some(size) => {
                    let Some(data) = rest.get(..size.saturating_add(2)) else {
                        return Ok(false);
                    };
                    if !data.ends_with(b"\r\n") {
                        return Err(Malformed(format!("no line end after a chunk of {size}")));
                    }
                    self.body.extend_from_slice(&data[..size]);
                    self.consumed += data.len();
                    self.chunk = None;
                }
            }
        }
    }

    fn finish_with_trailers(&mut self, rest: &[u8]) -> Result<bool, Malformed> {
        if rest.starts_with(b"\r\n") {
            self.consumed += 2;
            return Ok(true);
        }
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n");
        refuse_other_line_ends(&rest[..end.map_or(rest.len(), |end| end + 4)])?;
        let Some(end) = end else {
            let short = rest.len() <= LONGEST_TRAILERS;
            return short.then_some(false).ok_or_else(|| Malformed("endless trailers".to_owned()));
        };
        for line in latin1(&rest[..end]).split("\r\n") {
            let field = Field::parse(line)?;
            let structural = ["content-length", "transfer-encoding", "host", "trailer"];
            if structural.iter().any(|name| field.name.eq_ignore_ascii_case(name)) {
                return Err(Malformed(format!("{} as a trailer", field.name)));
            }
            self.trailers.push(field);
        }
        self.consumed += end + 4;
        Ok(true)
    }
}

/// The size in a chunk's first line and that line's length, once the line is complete.
fn chunk_size(bytes: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let line_end = &bytes[digits..bytes.len().min(digits + 2)];
    let fault = || {
        let shown = &bytes[..bytes.len().min(LONGEST_SIZE)];
        Malformed(format!("chunk size {:?}", latin1(shown)))
    };
    if digits > LONGEST_SIZE || !b"\r\n".starts_with(line_end) {
        return Err(fault());
    }
    if line_end.len() < 2 {
        return if digits == 0 && !line_end.is_empty() { Err(fault()) } else { Ok(None) };
    }
    let size = usize::from_str_radix(&latin1(&bytes[..digits]), 16).map_err(|_| fault())?;
    Ok(Some((size, digits + 2)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
