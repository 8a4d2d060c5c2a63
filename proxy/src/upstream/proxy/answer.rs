//! Did the upstream proxy open the tunnel?
//!
//! Any 2xx says so, whatever length it claims (RFC 9110 §9.3.6): every byte behind its head is the
//! origin's, which may speak first.

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::ProxyError;
use crate::limits::PROXY_ANSWER_BYTES;

/// Waits for the proxy's word; what came behind it.
pub(super) async fn read<IO: AsyncRead + Unpin>(io: &mut IO) -> Result<Bytes, ProxyError> {
    let mut seen = BytesMut::with_capacity(1 << 10);
    // Interim answers count too.
    let mut room = PROXY_ANSWER_BYTES;
    loop {
        while let Some(end) = head_end(&seen) {
            let status = status(&seen).ok_or(ProxyError::NotHttp)?;
            seen.advance(end);
            match status {
                200..=299 => return Ok(seen.freeze()),
                // RFC 9110 §15.2: more is to come.
                100 | 102..=199 => room = room.saturating_sub(end),
                _ => return Err(ProxyError::Status(status)),
            }
        }
        if !begins_like_http(&seen) {
            return Err(ProxyError::NotHttp);
        }
        let left = room.saturating_sub(seen.len());
        if left == 0 {
            return Err(ProxyError::Long(PROXY_ANSWER_BYTES));
        }
        let mut more = (&mut *io).take(left as u64);
        if more.read_buf(&mut seen).await? == 0 {
            return Err(ProxyError::Closed);
        }
    }
}

/// Behind the empty line, as lines end with LF after a CR or alone (RFC 9112 §2.2).
fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        match line {
            b"\n" | b"\r\n" if at > line.len() => return Some(at),
            _ => {}
        }
    }
    None
}

/// `HTTP/1.x NNN`.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    let [b'0' | b'1', b' ', hundreds, tens, ones, b' ' | b'\r' | b'\n', ..] = rest else {
        return None;
    };
    let digits = [*hundreds, *tens, *ones];
    std::str::from_utf8(&digits).ok()?.parse().ok().filter(|status| *status >= 100)
}

fn begins_like_http(bytes: &[u8]) -> bool {
    let start = b"HTTP/1.";
    let known = bytes.len().min(start.len());
    bytes[..known] == start[..known]
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    /// Gives at most so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            to: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let (now, later) = self.0.split_at(self.0.len().min(self.1).min(to.remaining()));
            to.put_slice(now);
            self.0 = later;
            Poll::Ready(Ok(()))
        }
    }

    async fn said(bytes: &[u8], at_a_time: usize) -> Result<Vec<u8>, String> {
        let mut io = Pieces(bytes, at_a_time);
        let rest = read(&mut io).await.map_err(|error| error.to_string())?;
        Ok([&rest[..], io.0].concat())
    }

    #[tokio::test]
    async fn every_byte_behind_the_head_is_the_origins() {
        for head in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.0 200\r\n\r\n",
            "HTTP/1.1 204 Yes\nVia: 1.1 p\n\n",
            "HTTP/1.1 200 \r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 100 \r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ] {
            for rest in ["", "SSH-2.0-x\r\n\r\n", "\r\n"] {
                for at_a_time in [1, 7, 4096] {
                    let whole = format!("{head}{rest}");
                    let wanted = Ok(rest.as_bytes().to_vec());
                    assert_eq!(said(whole.as_bytes(), at_a_time).await, wanted, "{whole:?}");
                }
            }
        }
    }

    #[tokio::test]
    async fn anything_else_is_no_tunnel() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(PROXY_ANSWER_BYTES));
        let flood = "HTTP/1.1 103 A\r\n\r\n".repeat(PROXY_ANSWER_BYTES);
        for (bytes, says) in [
            ("HTTP/1.1 407 No\r\n\r\nbody", "answered 407: check"),
            ("HTTP/1.1 502 No\r\nA: b\r\n\r\n", "answered 502"),
            ("HTTP/1.1 101 Other\r\n\r\n", "answered 101"),
            ("HTTP/1.1 302 There\r\nLocation: /\r\n\r\n", "answered 302"),
            ("HTTP/1.1 200 OK\r\nA: b\r\n", "without an answer"),
            ("", "without an answer"),
            ("HTTP/2 200\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "not HTTP"),
            ("HTTP/1.1  200 OK\r\n\r\n", "not HTTP"),
            ("\x15\x03\x01\x00\x02\x02\x46", "not HTTP"),
            ("SSH-2.0-x\r\n", "not HTTP"),
            (long.as_str(), "over 8192 bytes"),
            (flood.as_str(), "over 8192 bytes"),
        ] {
            for at_a_time in [1, 4096] {
                let outcome = said(bytes.as_bytes(), at_a_time).await;
                let why = outcome.expect_err("no tunnel");
                assert!(why.contains(says), "{why} {says}");
            }
        }
    }
}
