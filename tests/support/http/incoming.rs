//! How is a message read from a connection, whatever way it is cut?

use std::fmt;
use std::io::{self, ErrorKind, Read};

use super::body::{BodyParser, Framing};
use super::{Head, Malformed, Request, Response};

/// Why no whole message came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// The peer ended the connection where a message would begin.
    Closed,
    /// The peer ended the connection inside a message; over TLS also without saying so at the end
    /// of a body that is delimited by the close.
    Truncated {
        /// What came of the body.
        body: Vec<u8>,
    },
    /// The peer reset the connection.
    Reset {
        /// What came of the body.
        body: Vec<u8>,
    },
    /// Nothing came for as long as the reader was told to wait.
    TimedOut,
    /// A TLS alert, or another fault of the connection, in words.
    Broken(String),
    /// What came is no message.
    Malformed(Malformed),
}

impl fmt::Display for ReadFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => formatter.write_str("the peer closed the connection"),
            Self::Truncated { body } => {
                write!(formatter, "the peer closed inside a message, {} bytes in", body.len())
            }
            Self::Reset { .. } => formatter.write_str("the peer reset the connection"),
            Self::TimedOut => formatter.write_str("nothing came in time"),
            Self::Broken(fault) => write!(formatter, "the connection broke: {fault}"),
            Self::Malformed(fault) => fault.fmt(formatter),
        }
    }
}

impl From<Malformed> for ReadFault {
    fn from(fault: Malformed) -> Self {
        Self::Malformed(fault)
    }
}

impl From<io::Error> for ReadFault {
    fn from(fault: io::Error) -> Self {
        match fault.kind() {
            // rustls: TCP ended without close_notify.
            ErrorKind::UnexpectedEof => Self::Truncated { body: Vec::new() },
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Reset { body: Vec::new() },
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Broken(fault.to_string()),
        }
    }
}

/// What has come from a connection and was not yet taken.
#[derive(Default)]
pub(crate) struct Incoming {
    buffer: Vec<u8>,
}

impl Incoming {
    /// Reads one request.
    pub(crate) fn request(&mut self, source: &mut dyn Read) -> Result<Request, ReadFault> {
        let head = self.head(source)?;
        self.request_body(source, head)
    }

    /// Reads a head, and leaves what follows.
    pub(crate) fn head(&mut self, source: &mut dyn Read) -> Result<Head, ReadFault> {
        loop {
            if let Some((head, used)) = Head::parse(&self.buffer)? {
                self.buffer.drain(..used);
                return Ok(head);
            }
            match self.fill(source) {
                Ok(0) | Err(ReadFault::Truncated { .. }) if self.buffer.is_empty() => {
                    return Err(ReadFault::Closed);
                }
                Ok(0) => return Err(ReadFault::Truncated { body: Vec::new() }),
                Ok(_) => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Reads the body that belongs to `head`.
    pub(crate) fn request_body(
        &mut self,
        source: &mut dyn Read,
        head: Head,
    ) -> Result<Request, ReadFault> {
        let line = head.request_line()?;
        let body = self.body(source, Framing::of_request(&head)?)?;
        Ok(body.into_request(line, head))
    }

    /// Reads the final response to a request of this method, and the 1xx before it.
    pub(crate) fn response(
        &mut self,
        source: &mut dyn Read,
        method: &str,
    ) -> Result<Response, ReadFault> {
        let mut interim = Vec::new();
        loop {
            let head = self.head(source)?;
            let line = head.status_line()?;
            let framing = Framing::of_response(&head, line.0, method)?;
            // After 101 the connection speaks another protocol.
            if line.0 < 200 && line.0 != 101 {
                interim.push(head);
                continue;
            }
            return Ok(self.body(source, framing)?.into_response(line, head, interim));
        }
    }

    /// The next bytes, whatever they are; none at the end.
    pub(crate) fn some(&mut self, source: &mut dyn Read) -> Result<Vec<u8>, ReadFault> {
        if self.buffer.is_empty() {
            self.fill(source)?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// What has come already.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Makes bytes that were taken the next to be read.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        self.buffer.splice(..0, bytes);
    }

    fn body(&mut self, source: &mut dyn Read, framing: Framing) -> Result<BodyParser, ReadFault> {
        let mut body = BodyParser::new(framing);
        let mut at_end = false;
        while !body.advance(&self.buffer, at_end)? {
            if at_end {
                return Err(ReadFault::Truncated { body: body.into_partial() });
            }
            match self.fill(source) {
                Ok(received) => at_end = received == 0,
                Err(ReadFault::Truncated { .. }) => {
                    return Err(ReadFault::Truncated { body: body.into_partial() });
                }
                Err(ReadFault::Reset { .. }) => {
                    return Err(ReadFault::Reset { body: body.into_partial() });
                }
                Err(fault) => return Err(fault),
            }
        }
        self.buffer.drain(..body.consumed());
        Ok(body)
    }

    fn fill(&mut self, source: &mut dyn Read) -> Result<usize, ReadFault> {
        let mut piece = [0; 16 * 1024];
        loop {
            match source.read(&mut piece) {
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault.into()),
                Ok(received) => {
                    self.buffer.extend_from_slice(&piece[..received]);
                    return Ok(received);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    fn response(text: &str, method: &str) -> Result<Response, ReadFault> {
        Incoming::default().response(&mut Bytewise(text.as_bytes()), method)
    }

    #[test]
    fn reads_every_framing_byte_by_byte() {
        for (text, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcREST", "abc"),
            ("HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "ab"),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"),
            ("HTTP/1.1 204 No Content\r\n\r\nREST", ""),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nREST", ""),
        ] {
            assert_eq!(response(text, "GET").unwrap().text(), body, "{text}");
        }
        let head = response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD").unwrap();
        assert!(head.body.is_empty());
    }

    #[test]
    fn keeps_what_belongs_to_the_next_message() {
        let mut text =
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\n\r\n".as_slice();
        let mut incoming = Incoming::default();
        assert_eq!(incoming.response(&mut text, "GET").unwrap().status, 200);
        assert_eq!(incoming.response(&mut text, "GET").unwrap().status, 404);
        assert_eq!(incoming.response(&mut text, "GET").unwrap_err(), ReadFault::Closed);
    }

    #[test]
    fn collects_interim_responses() {
        let text = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let response = response(text, "GET").unwrap();
        assert_eq!((response.status, response.interim.len()), (200, 1));
        assert_eq!(response.interim[0].value("link"), Some("x"));
    }

    #[test]
    fn tells_truncation_from_an_end() {
        let truncated = |text| match response(text, "GET") {
            Err(ReadFault::Truncated { body }) => String::from_utf8(body).unwrap(),
            other => panic!("{text} gave {other:?}"),
        };
        assert_eq!(truncated("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), "half");
        assert_eq!(
            truncated("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
            "ab"
        );
        assert_eq!(truncated("HTTP/1.1 200 O"), "");
        assert_eq!(response("", "GET").unwrap_err(), ReadFault::Closed);
    }

    #[test]
    fn refuses_responses_that_may_not_have_a_body() {
        for text in [
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
        ] {
            assert!(matches!(response(text, "GET"), Err(ReadFault::Malformed(_))), "{text}");
        }
        let tunnel = response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "CONNECT");
        assert!(matches!(tunnel, Err(ReadFault::Malformed(_))));
    }
}
