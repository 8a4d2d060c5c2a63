//! Which request is asked about?

use outgate_policy::{Authority, Destination, Scheme};

/// A request that nobody sent.
#[derive(Debug, PartialEq)]
pub(super) struct Wanted<'a> {
    pub(super) scheme: Scheme,
    pub(super) destination: Destination,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

impl<'a> Wanted<'a> {
    /// The request that a person means by these words.
    pub(super) fn parse(method: &'a str, url: &'a str) -> Result<Wanted<'a>, String> {
        http::Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("`{method}` is no method"))?;
        let (scheme, rest) =
            split_scheme(url).ok_or_else(|| format!("`{url}`: write http://… or https://…"))?;
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("`{url}`: write blanks and letters beyond ASCII percent-encoded"));
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority = Authority::from_wire(authority.as_bytes())
            .map_err(|error| format!("`{authority}`: {error}"))?;
        let port = authority.port.unwrap_or(scheme.default_port());
        Ok(Wanted {
            scheme,
            destination: Destination { host: authority.host, port },
            method,
            path: if path.is_empty() { "/" } else { path },
        })
    }
}

fn split_scheme(url: &str) -> Option<(Scheme, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Some((Scheme::Http, rest)),
        "https" => Some((Scheme::Https, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_urls_as_the_data_path_does() {
        let wanted = Wanted::parse("GET", "HTTPS://a.example.com:8443/b/../c?d").unwrap();
        assert_eq!((wanted.destination.port, wanted.path), (8443, "/b/../c"));
        assert_eq!(Wanted::parse("GET", "http://[2a00:1::1]").unwrap().path, "/");
        for url in
            ["a.example.com", "ftp://a.example.com/", "https://", "https://a b/", "https://127.1/"]
        {
            assert!(Wanted::parse("GET", url).is_err(), "{url}");
        }
        assert!(Wanted::parse("GE T", "https://a.example.com/").is_err());
    }
}
