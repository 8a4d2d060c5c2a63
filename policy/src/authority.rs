//! Which host and port does an authority name? The one parser of `host[:port]` in the project.
//!
//! CONNECT targets, `Host` headers, absolute-form targets and SNI all come through here.
//! `http::uri::Authority` is not used for that: it reads `host:65979` as "no port".

use crate::host::{Host, HostError, PortError, parse_port};
use crate::verdict::{Denial, Reason, excerpt};

/// A host with an optional port (RFC 3986 §3.2, without userinfo).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host, normalised.
    pub host: Host,
    /// The port, if one was written.
    pub port: Option<u16>,
}

/// Why a text is no authority.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The host is at fault.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The port is at fault.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl Authority {
    /// Reads `host` or `host:port` as it came over the wire.
    pub fn from_wire(text: &[u8]) -> Result<Authority, AuthorityError> {
        // Before the split: in `a:80@b` the port would look at fault.
        if text.contains(&b'@') {
            return Err(HostError::Userinfo.into());
        }
        let (host, port) = split(text)?;
        let host = Host::from_wire(host)?;
        let port = port.map(parse_port).transpose()?;
        Ok(Authority { host, port })
    }
}

impl AuthorityError {
    /// The code for the client: `malformed_host` or `malformed_port`.
    pub fn reason(&self) -> Reason {
        match self {
            AuthorityError::Host(_) => Reason::MalformedHost,
            AuthorityError::Port(_) => Reason::MalformedPort,
        }
    }

    /// The refusal for the client who sent `text`.
    pub fn denial(&self, text: &[u8]) -> Denial {
        Denial::new(self.reason(), format!("`{}`: {self}", excerpt(text)))
    }
}

/// Parts a text at the colon before its port, without judging either side.
pub(crate) fn split(text: &[u8]) -> Result<(&[u8], Option<&[u8]>), HostError> {
    if text.first() == Some(&b'[') {
        let end = text.iter().position(|byte| *byte == b']').ok_or(HostError::Brackets)?;
        let (host, rest) = text.split_at(end + 1);
        return match rest {
            [] => Ok((host, None)),
            [b':', port @ ..] => Ok((host, Some(port))),
            _ => Err(HostError::Brackets),
        };
    }
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let host = parts.next().unwrap_or_default();
    match (parts.next(), parts.next()) {
        (port, None) => Ok((host, port)),
        (_, Some(_)) => Err(HostError::MissingBrackets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, Option<u16>), Reason> {
        Authority::from_wire(text.as_bytes())
            .map(|authority| (authority.host.to_string(), authority.port))
            .map_err(|error| error.reason())
    }

    #[test]
    fn keeps_the_port_beside_an_ipv6_literal() {
        assert_eq!(read("[2a00:1::1]:8443"), Ok(("[2a00:1::1]".into(), Some(8443))));
        assert_eq!(read("[2a00:1::1]"), Ok(("[2a00:1::1]".into(), None)));
        assert_eq!(read("Example.com.:443"), Ok(("example.com".into(), Some(443))));
    }

    #[test]
    fn refuses_userinfo_wherever_it_hides() {
        for text in [
            "api.example.com@evil.example.test:443",
            "api.example.com:80@evil.example.test",
            "api.example.com@evil.example.test",
            "evil.example.test\\@api.example.com",
            "@a",
            "a@",
            "[::1]@a",
        ] {
            assert_eq!(read(text), Err(Reason::MalformedHost), "{text}");
        }
    }

    #[test]
    fn refuses_odd_brackets_and_ports() {
        for text in [
            "[api.example.com]:443",
            "[::1",
            "[::1]x:443",
            "[]:443",
            "::1",
            "::1:443",
            "a:1:2",
            ":443",
            "",
        ] {
            assert_eq!(read(text), Err(Reason::MalformedHost), "{text}");
        }
        for text in [
            "[::1]:443:80",
            "host:",
            "host:0",
            "host:65979",
            "host:+1",
            "host:0443",
            "[::1]:",
            "h: 1",
        ] {
            assert_eq!(read(text), Err(Reason::MalformedPort), "{text}");
        }
    }

    #[test]
    fn quotes_no_more_than_a_little_of_what_came() {
        let text = [b"a".repeat(500), b" x\x1b[2J".to_vec()].concat();
        let error = Authority::from_wire(&text).expect_err("too long");
        let denial = error.denial(&text);
        assert!(denial.message.len() < 150, "{}", denial.message);
        assert_eq!(excerpt(b"a\x1b\"\xff"), "a\\x1b\\\"\\xff");
    }
}
