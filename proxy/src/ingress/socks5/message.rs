//! What does a SOCKS5 client say, byte by byte?
//!
//! RFC 1928, and RFC 1929 for user and password. Nothing is read beyond a message: what comes after
//! it is the tunnel's. Every message has a length of its own of at most 513 bytes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outgate_policy::{Destination, Host, HostError, Reason};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::ingress::identity::Claim;

const VERSION: u8 = 5;
/// RFC 1929 §2.
const CLAIM_VERSION: u8 = 1;
const CONNECT: u8 = 1;

/// How a client may say whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Nothing = 0,
    Claim = 2,
    /// None that it offers will do.
    Unacceptable = 0xff,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    NotThisCommand = 7,
    NotThisAddress = 8,
}

/// What a client said that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the client broke off: {0}")]
    Broken(#[from] io::Error),
    #[error("this is not SOCKS5: it begins with byte 0x{0:02x}")]
    NotSocks(u8),
    #[error("the user and password are not in the form of RFC 1929")]
    Claim,
    #[error("the request is not in the form of RFC 1928 section 4")]
    Malformed,
    #[error("command {0}: only CONNECT (1) is there, and no UDP")]
    Command(u8),
    #[error("address type {0}: there are 1 (IPv4), 3 (a name) and 4 (IPv6)")]
    AddressType(u8),
    #[error("the name is no host: {0}")]
    Host(#[from] HostError),
    #[error("0 is no port")]
    Port,
}

impl Fault {
    /// As audit lines call it.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self {
            Fault::Broken(_) => None,
            Fault::Command(_) => Some(Reason::ProtocolNotAllowed),
            Fault::Host(_) => Some(Reason::MalformedHost),
            Fault::Port => Some(Reason::MalformedPort),
            Fault::NotSocks(_) | Fault::Claim | Fault::Malformed | Fault::AddressType(_) => {
                Some(Reason::MalformedRequest)
            }
        }
    }

    /// As the client is told, where it would understand.
    pub(super) fn reply(&self) -> Option<Reply> {
        match self {
            Fault::Broken(_) | Fault::NotSocks(_) | Fault::Claim => None,
            Fault::Malformed | Fault::Port => Some(Reply::Failed),
            Fault::Command(_) => Some(Reply::NotThisCommand),
            Fault::AddressType(_) | Fault::Host(_) => Some(Reply::NotThisAddress),
        }
    }
}

/// The methods that the client offers, or `None` if it closes without a word.
pub(super) async fn greeting<IO: AsyncRead + Unpin>(io: &mut IO) -> Result<Option<Vec<u8>>, Fault> {
    let mut version = [0];
    if io.read(&mut version).await? == 0 {
        return Ok(None);
    }
    if version[0] != VERSION {
        return Err(Fault::NotSocks(version[0]));
    }
    Ok(Some(counted(io).await?))
}

/// The client's user and password.
pub(super) async fn claim<IO: AsyncRead + Unpin>(io: &mut IO) -> Result<Claim, Fault> {
    if io.read_u8().await? != CLAIM_VERSION {
        return Err(Fault::Claim);
    }
    Ok(Claim { user: counted(io).await?, password: counted(io).await? })
}

/// Where the client wants to connect.
pub(crate) async fn request<IO: AsyncRead + Unpin>(io: &mut IO) -> Result<Destination, Fault> {
    let mut head = [0; 4];
    io.read_exact(&mut head).await?;
    let [version, command, reserved, kind] = head;
    if version != VERSION || reserved != 0 {
        return Err(Fault::Malformed);
    }
    if command != CONNECT {
        return Err(Fault::Command(command));
    }
    let host = match kind {
        1 => Ok(Host::Address(IpAddr::V4(Ipv4Addr::from_bits(io.read_u32().await?)))),
        3 => Host::from_wire(&counted(io).await?),
        4 => Ok(Host::Address(IpAddr::V6(Ipv6Addr::from_bits(io.read_u128().await?)))),
        other => return Err(Fault::AddressType(other)),
    };
    let port = io.read_u16().await?;
    let host = host?;
    if port == 0 { Err(Fault::Port) } else { Ok(Destination { host, port }) }
}

/// Says by which method the client is to say whose it is.
pub(super) async fn choose<IO: AsyncWrite + Unpin>(io: &mut IO, method: Method) -> io::Result<()> {
    io.write_all(&[VERSION, method as u8]).await
}

/// Says whether the client's user and password are good.
pub(super) async fn judge<IO: AsyncWrite + Unpin>(io: &mut IO, good: bool) -> io::Result<()> {
    io.write_all(&[CLAIM_VERSION, u8::from(!good)]).await
}

/// Answers the request. The address that is given is none: where the gateway dials from, and where
/// to, is not the client's.
pub(super) async fn answer<IO: AsyncWrite + Unpin>(io: &mut IO, reply: Reply) -> io::Result<()> {
    io.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

/// Bytes behind their number in one byte.
async fn counted<IO: AsyncRead + Unpin>(io: &mut IO) -> io::Result<Vec<u8>> {
    let count = io.read_u8().await?;
    let mut bytes = vec![0; usize::from(count)];
    io.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<String, String> {
        let mut left = bytes;
        let destination =
            request(&mut left).await.map_err(|fault| format!("{:?}", fault.reply()))?;
        assert!(left.is_empty(), "{left:?} was left");
        Ok(destination.to_string())
    }

    fn named(name: &[u8]) -> Vec<u8> {
        [&[5, 1, 0, 3, name.len() as u8], name, &[1, 0xbb]].concat()
    }

    #[tokio::test]
    async fn reads_every_kind_of_address() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(read(&[5, 1, 0, 1, 11, 22, 33, 44, 0, 22]).await, ok("11.22.33.44:22"));
        assert_eq!(read(&named(b"API.Example.com.")).await, ok("api.example.com:443"));
        assert_eq!(read(&named(b"11.22.33.44")).await, ok("11.22.33.44:443"));
        let six = [&[5, 1, 0, 4][..], &[0x2a, 0], &[0; 13], &[1, 1, 0xbb]].concat();
        assert_eq!(read(&six).await, ok("[2a00::1]:443"));
    }

    #[tokio::test]
    async fn refuses_names_that_two_programs_could_read_differently() {
        for name in [
            &b"evil.example.test\0.ok.example.test"[..],
            b"",
            b"a b",
            b"a@b",
            b"127.1",
            b"2130706433",
            b"0x7f.1",
            b"[api.example.com]",
            b"::1",
            b"a..b",
            b"a.test:443",
            b"\xd0\xb0.test",
            &[b'a'; 255],
        ] {
            let refused = read(&named(name)).await;
            assert_eq!(refused, Err("Some(NotThisAddress)".to_owned()), "{}", name.escape_ascii());
        }
    }

    #[tokio::test]
    async fn tells_other_commands_and_kinds_apart() {
        for (head, reply) in [
            ([5, 2, 0, 1], "Some(NotThisCommand)"),
            ([5, 3, 0, 1], "Some(NotThisCommand)"),
            ([5, 0, 0, 1], "Some(NotThisCommand)"),
            ([5, 1, 0, 2], "Some(NotThisAddress)"),
            ([5, 1, 1, 1], "Some(Failed)"),
            ([4, 1, 0, 1], "Some(Failed)"),
        ] {
            assert_eq!(read(&head).await, Err(reply.to_owned()), "{head:?}");
        }
        let no_port = [5, 1, 0, 1, 11, 22, 33, 44, 0, 0];
        assert_eq!(read(&no_port).await, Err("Some(Failed)".to_owned()));
        assert_eq!(read(&no_port[..9]).await, Err("None".to_owned()), "it ends too early");
    }

    #[tokio::test]
    async fn a_greeting_may_offer_nothing_or_everything() {
        assert_eq!(greeting(&mut &[5, 0][..]).await.expect("one"), Some(vec![]));
        let all = [vec![5, 255], vec![9; 255]].concat();
        assert_eq!(greeting(&mut &all[..]).await.expect("one").map(|all| all.len()), Some(255));
        assert_eq!(greeting(&mut &[][..]).await.expect("silence"), None);
        for other in [&b"\x04\x01\x01\xbb"[..], b"GET / HTTP/1.1\r\n"] {
            let fault = greeting(&mut &other[..]).await.expect_err("no SOCKS5");
            assert!(matches!(fault, Fault::NotSocks(_)) && fault.reply().is_none());
        }
    }
}
