//! What do the first bytes of a tunnel speak?

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::prefixed::Prefixed;

/// The longest start that is looked at: longer than any method in use and than HTTP/2's preface.
const LONGEST: usize = 32;
/// RFC 9113 §3.4, as far as it differs from any HTTP/1 request line.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// RFC 4253 §4.2. With a comment behind the version it would look like a method and a blank, and the
/// client would be kept waiting for the rest of a request.
const SSH: &[u8] = b"SSH-";
/// RFC 8446 §5.1: the content type of a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tls,
    Http1,
    Http2,
    /// Anything else, also a close before enough was said.
    Other,
    /// Not one byte came before the client closed.
    Silence,
}

/// Reads just enough of `io` to tell, and puts it back.
pub(crate) async fn detect<IO: AsyncRead + Unpin>(
    mut io: Prefixed<IO>,
) -> io::Result<(Protocol, Prefixed<IO>)> {
    let mut seen = BytesMut::with_capacity(LONGEST);
    loop {
        if let Some(protocol) = classify(&seen) {
            return Ok((protocol, io.unread(seen.freeze())));
        }
        let mut next = [0; LONGEST];
        let room = LONGEST - seen.len();
        match io.read(&mut next[..room]).await? {
            0 if seen.is_empty() => return Ok((Protocol::Silence, io.unread(Bytes::new()))),
            0 => return Ok((Protocol::Other, io.unread(seen.freeze()))),
            read => seen.extend_from_slice(&next[..read]),
        }
    }
}

/// `None` while more bytes could still decide.
fn classify(seen: &[u8]) -> Option<Protocol> {
    let first = *seen.first()?;
    if first == TLS_HANDSHAKE {
        return Some(Protocol::Tls);
    }
    if HTTP2_PREFACE.starts_with(seen) {
        return None;
    }
    if seen.starts_with(HTTP2_PREFACE) {
        return Some(Protocol::Http2);
    }
    if seen.starts_with(SSH) {
        return Some(Protocol::Other);
    }
    // hyper tolerates empty lines before a request (RFC 9112 §2.2).
    let line = seen.trim_ascii_start();
    match line.iter().position(|b| !is_token(*b)) {
        Some(end) if end > 0 && line[end] == b' ' => Some(Protocol::Http1),
        Some(_) => Some(Protocol::Other),
        None if seen.len() < LONGEST => None,
        None => Some(Protocol::Other),
    }
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_protocols_by_their_first_bytes() {
        for (bytes, protocol) in [
            (&b"\x16\x03\x01"[..], Some(Protocol::Tls)),
            (b"GET / HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"\r\nGET /", Some(Protocol::Http1)),
            (b"M-SEARCH * HTTP/1.1", Some(Protocol::Http1)),
            (b"PRI * HTTP/2.0\r\n\r\nSM", Some(Protocol::Http2)),
            (b"PRI / HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"SSH-2.0-OpenSSH_9\r\n", Some(Protocol::Other)),
            (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", Some(Protocol::Other)),
            (b"\x00\x01", Some(Protocol::Other)),
            (b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Some(Protocol::Other)),
            (b"GE", None),
            (b"PRI * HT", None),
            (b"", None),
        ] {
            assert_eq!(classify(bytes), protocol, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[tokio::test]
    async fn puts_back_what_it_read_whatever_way_it_came() {
        let (mut client, server) = tokio::io::duplex(1);
        let writer = async {
            tokio::io::AsyncWriteExt::write_all(&mut client, b"PUT /x HTTP/1.1")
                .await
                .expect("open");
            drop(client);
        };
        let reader = async {
            let (protocol, mut io) = detect(Prefixed::new(Bytes::new(), server)).await.expect("io");
            let mut all = Vec::new();
            io.read_to_end(&mut all).await.expect("io");
            (protocol, all)
        };
        let ((), (protocol, all)) = tokio::join!(writer, reader);
        assert_eq!(protocol, Protocol::Http1);
        assert_eq!(all, b"PUT /x HTTP/1.1");
    }

    #[tokio::test]
    async fn keeps_all_of_a_flight_that_came_with_connect() {
        let flight = Bytes::from(vec![0x16; 3 * LONGEST]);
        let (mut client, server) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut client, b"later").await.expect("open");
        drop(client);
        let given = Prefixed::new(flight.clone(), server);
        let (protocol, mut io) = detect(given).await.expect("io");
        let mut all = Vec::new();
        io.read_to_end(&mut all).await.expect("io");
        assert_eq!(protocol, Protocol::Tls);
        assert_eq!(all, [&flight[..], b"later"].concat());
    }
}
