//! Which URLs may a hook call? `https` ones, read strictly, without a user or a fragment.

use http::Uri;
use outgate_policy::{Authority, AuthorityError, Destination, Scheme};

/// Longer ones are answered with 414 by common servers.
const MAX_LEN: usize = 8 << 10;

/// A URL that a hook may call, if the environment's policy agrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookUrl {
    uri: Uri,
    destination: Destination,
}

/// Why a URL can't be used. Quotes nothing: a URL may hold a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("a hook is called over https; write https://host/path")]
    Scheme,
    /// `https://user@host/`.
    #[error(
        "a URL of a hook has no user; put the secret on the wire with a transform or a credential"
    )]
    Userinfo,
    /// `https://host/#there`: fragments aren't sent.
    #[error("a fragment is never sent; leave out what begins with #")]
    Fragment,
    /// Beyond what servers take.
    #[error("the URL is longer than {MAX_LEN} bytes")]
    Long,
    /// The host or the port.
    #[error("{0}")]
    Authority(#[from] AuthorityError),
    /// Characters that have no place in a URL.
    #[error("not a URL; write https://host/path, other characters percent-encoded")]
    Syntax,
}

impl HookUrl {
    /// Reads a `url`.
    pub fn parse(text: &str) -> Result<HookUrl, UrlError> {
        if text.len() > MAX_LEN {
            return Err(UrlError::Long);
        }
        let scheme = text.get(..8).filter(|scheme| scheme.eq_ignore_ascii_case("https://"));
        let rest = scheme.and_then(|scheme| text.get(scheme.len()..)).ok_or(UrlError::Scheme)?;
        if rest.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '\\']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::Userinfo);
        }
        let Authority { host, port } = Authority::from_wire(authority.as_bytes())?;
        let destination = Destination { host, port: port.unwrap_or(443) };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // `http::Uri` lets a few characters pass that RFC 3986 §3.3 and §3.4 don't.
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte)) {
            return Err(UrlError::Syntax);
        }
        let uri = Uri::builder()
            .scheme("https")
            .authority(destination.authority(Scheme::Https))
            .path_and_query(path)
            .build()
            .map_err(|_| UrlError::Syntax)?;
        Ok(HookUrl { uri, destination })
    }

    /// The URL, its host normalised.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// What policy judges.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_https_urls() {
        for (text, read) in [
            ("https://telemetry.example.com/api/v1", "https://telemetry.example.com/api/v1"),
            ("HTTPS://A.Example.com", "https://a.example.com/"),
            ("https://a.example.com:8443?x=1", "https://a.example.com:8443/?x=1"),
            ("https://11.22.33.44/a%20b", "https://11.22.33.44/a%20b"),
        ] {
            assert_eq!(HookUrl::parse(text).expect(text).uri().to_string(), read);
        }
    }

    #[test]
    fn refuses_urls_that_two_readers_could_read_in_two_ways() {
        for text in [
            "http://a.example.com/",
            "ftp://x",
            "//a.example.com/",
            "a.example.com",
            "",
            "https:/a",
            "https://",
            "https:///x",
            "https://user@a.example.com/",
            "https://a.example.com@evil/",
            "https://a.example.com\\@evil/",
            "https://a.example.com/#x",
            "https://a b/",
            "https://a.example.com/a b",
            "https://a.example.com:0/",
            "https://a.example.com:65979/",
            "https://2130706433/",
            "https://[::1%25lo]/",
            "https://a.example.com/\u{e9}",
            "https://a.example.com/\r\nX: y",
            "https://%61.example.com/",
        ] {
            assert!(HookUrl::parse(text).is_err(), "{text}");
        }
        assert_eq!(HookUrl::parse(&format!("https://a/{}", "x".repeat(9000))), Err(UrlError::Long));
    }
}
