//! Which host does a TLS client name before anything is encrypted?
//!
//! Read without being consumed: it may have to reach the origin as it came. What two servers could
//! read in two ways (an extension twice, two names, a byte too many) is refused, whatever way the
//! message is cut into records.

use std::io;

use bytes::Bytes;
use outgate_policy::{Host, HostError, Reason};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::prefixed::Prefixed;
use crate::tunnel::Alert;

/// The longest hello that is read, its records' headers included. Those of browsers with post-quantum
/// keys have about 2 KiB.
const LONGEST: usize = 64 << 10;
/// RFC 8446 §5.1: a record's header, the content type of a handshake, and a record's longest content.
const HEADER: usize = 5;
const HANDSHAKE: u8 = 22;
const RECORD_BYTES: usize = 1 << 14;
/// RFC 8446 §4: the type of the message.
const CLIENT_HELLO: u8 = 1;
/// RFC 6066 §3.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// RFC 9849 §5, and the draft before it that some libraries still speak.
const HIDDEN_NAME: [u16; 2] = [0xfe0d, 0xffce];

/// What a hello says in clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// The SNI, where there is one.
    pub(crate) server_name: Option<Host>,
    /// There is, or is made up, another name that only the server can read.
    pub(crate) hides_name: bool,
}

/// Why it is no hello that can be read in one way only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelloError {
    #[error("it is no ClientHello in the form of RFC 8446 section 4.1.2")]
    Malformed,
    #[error("it ends too early")]
    Truncated,
    #[error("it is longer than {LONGEST} bytes")]
    Long,
    #[error("its SNI is no host: {0}")]
    Name(#[from] HostError),
}

impl HelloError {
    /// As audit lines call it.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            HelloError::Name(_) => Reason::MalformedHost,
            HelloError::Malformed | HelloError::Truncated | HelloError::Long => {
                Reason::MalformedRequest
            }
        }
    }

    /// As the client is told.
    pub(crate) fn alert(&self) -> Alert {
        match self {
            HelloError::Name(_) => Alert::UnrecognizedName,
            HelloError::Malformed | HelloError::Truncated | HelloError::Long => Alert::DecodeError,
        }
    }
}

/// Reads the hello that `io` begins with, and puts it back.
pub(crate) async fn read<IO: AsyncRead + Unpin>(
    mut io: Prefixed<IO>,
) -> io::Result<(Result<ClientHello, HelloError>, Prefixed<IO>)> {
    let mut seen = Vec::new();
    let hello = match message(&mut io, &mut seen).await? {
        Ok(message) => parse(&message),
        Err(error) => Err(error),
    };
    Ok((hello, io.unread(Bytes::from(seen))))
}

/// The body of the first handshake message. All that was read is in `seen`.
async fn message<IO: AsyncRead + Unpin>(
    io: &mut IO,
    seen: &mut Vec<u8>,
) -> io::Result<Result<Vec<u8>, HelloError>> {
    let mut message = Vec::new();
    loop {
        let header = seen.len();
        if !fill(io, seen, HEADER).await? {
            return Ok(Err(HelloError::Truncated));
        }
        let length = usize::from(u16::from_be_bytes([seen[header + 3], seen[header + 4]]));
        // An empty fragment would be against RFC 8446 §5.1, and could be sent for ever.
        if seen[header] != HANDSHAKE
            || seen[header + 1] != 3
            || length == 0
            || length > RECORD_BYTES
        {
            return Ok(Err(HelloError::Malformed));
        }
        if seen.len() + length > LONGEST {
            return Ok(Err(HelloError::Long));
        }
        if !fill(io, seen, length).await? {
            return Ok(Err(HelloError::Truncated));
        }
        message.extend_from_slice(&seen[header + HEADER..]);
        match announced(&message) {
            Some(Ok(end)) if message.len() == end => return Ok(Ok(message.split_off(4))),
            Some(Ok(end)) if message.len() < end => {}
            None => {}
            // Another message behind it would have to wait for the server's answer.
            Some(Ok(_)) => return Ok(Err(HelloError::Malformed)),
            Some(Err(error)) => return Ok(Err(error)),
        }
    }
}

/// The length of a message with its own header, once that is there.
fn announced(message: &[u8]) -> Option<Result<usize, HelloError>> {
    let (header, _) = message.split_first_chunk::<4>()?;
    let [kind, length @ ..] = *header;
    let [high, middle, low] = length;
    let end = 4 + u32::from_be_bytes([0, high, middle, low]) as usize;
    Some(match kind {
        CLIENT_HELLO if end <= LONGEST => Ok(end),
        CLIENT_HELLO => Err(HelloError::Long),
        _ => Err(HelloError::Malformed),
    })
}

/// Reads `count` more bytes; `false` if the client ends before.
async fn fill<IO: AsyncRead + Unpin>(
    io: &mut IO,
    seen: &mut Vec<u8>,
    count: usize,
) -> io::Result<bool> {
    let begin = seen.len();
    io.take(count as u64).read_to_end(seen).await?;
    Ok(seen.len() - begin == count)
}

fn parse(body: &[u8]) -> Result<ClientHello, HelloError> {
    let mut hello = ClientHello { server_name: None, hides_name: false };
    let mut body = Fields(body);
    // Version and random, session id, cipher suites, compression methods.
    body.take(2 + 32)?;
    body.short_list(0..=32)?;
    let suites = body.long_list()?;
    body.short_list(1..=255)?;
    if suites.0.is_empty() || suites.0.len() % 2 != 0 {
        return Err(HelloError::Malformed);
    }
    if body.0.is_empty() {
        // TLS 1.2 without extensions (RFC 5246 §7.4.1.2).
        return Ok(hello);
    }
    let mut extensions = body.long_list()?;
    body.end()?;
    let mut kinds = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long_list()?;
        if kind == SERVER_NAME {
            hello.server_name = Some(server_name(content)?);
        }
        hello.hides_name |= HIDDEN_NAME.contains(&kind);
        kinds.push(kind);
    }
    kinds.sort_unstable();
    match kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(HelloError::Malformed),
        false => Ok(hello),
    }
}

/// Exactly one name (RFC 6066 §3: no two of the same type, and there is only one type).
fn server_name(mut content: Fields<'_>) -> Result<Host, HelloError> {
    let mut list = content.long_list()?;
    content.end()?;
    if list.take(1)? != [HOST_NAME] {
        return Err(HelloError::Malformed);
    }
    let name = list.long_list()?;
    list.end()?;
    Ok(Host::from_wire(name.0)?)
}

/// What is left to be read of a structure.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u16, HelloError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes behind their length in one byte.
    fn short_list(&mut self, range: std::ops::RangeInclusive<usize>) -> Result<(), HelloError> {
        let length = usize::from(self.take(1)?[0]);
        self.take(length)?;
        if range.contains(&length) { Ok(()) } else { Err(HelloError::Malformed) }
    }

    /// Bytes behind their length in two bytes.
    fn long_list(&mut self) -> Result<Fields<'a>, HelloError> {
        let length = usize::from(self.number()?);
        self.take(length).map(Fields)
    }

    fn end(&self) -> Result<(), HelloError> {
        if self.0.is_empty() { Ok(()) } else { Err(HelloError::Malformed) }
    }
}

#[cfg(test)]
mod tests;
