//! Through which proxy does everything leave, and what not?
//!
//! Only the operator's file says so: `HTTPS_PROXY` and its like are not read, since whoever starts a
//! gateway often has them set for programs of another kind.

use std::sync::Arc;

use ipnet::IpNet;
use outgate_certs::{CertsError, OriginRoots, OriginTls};
use outgate_policy::{Authority, Destination, HostPattern};
use outgate_proxy::{ProxyAuthorization, ProxySecurity, Spared, Upstream, UpstreamProxy};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::ConfigError;
use super::block::Block;
use super::document::UpstreamSection;

/// What the operator says of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum UpstreamSettings {
    /// Nothing: origins are reached directly.
    #[default]
    Direct,
    Proxy(ProxySettings),
}

/// The upstream proxy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProxySettings {
    url: ProxyUrl,
    spared: Vec<Spared>,
    pub(crate) dangerously_resolve: bool,
}

/// `http://[USER:PASSWORD@]HOST[:PORT]`, or `https://…`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ProxyUrl {
    tls: bool,
    at: Destination,
    authorization: Option<ProxyAuthorization>,
}

/// A pattern as in an entry, an address or a block of them; with a port or without.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct NoProxy(Spared);

impl UpstreamSection {
    pub(super) fn resolve(self) -> Result<UpstreamSettings, ConfigError> {
        match self.proxy {
            Some(url) => Ok(UpstreamSettings::Proxy(ProxySettings {
                url,
                spared: self.no_proxy.into_iter().map(|NoProxy(spared)| spared).collect(),
                dangerously_resolve: self.dangerously_resolve_at_proxy,
            })),
            None if self.dangerously_resolve_at_proxy || !self.no_proxy.is_empty() => {
                Err(ConfigError::UpstreamWithoutProxy)
            }
            None => Ok(UpstreamSettings::Direct),
        }
    }
}

impl UpstreamSettings {
    /// The same for the data path. `roots` are what a proxy over TLS is verified with.
    pub(crate) fn open(&self, roots: &OriginRoots) -> Result<Upstream, CertsError> {
        let UpstreamSettings::Proxy(ProxySettings { url, spared, dangerously_resolve }) = self
        else {
            return Ok(Upstream::Direct);
        };
        let security = match url.tls {
            true => ProxySecurity::Tls(OriginTls::new(roots, &[b"http/1.1"])?),
            false => ProxySecurity::Clear,
        };
        Ok(Upstream::Proxy(Arc::new(UpstreamProxy {
            at: url.at.clone(),
            security,
            authorization: url.authorization.clone(),
            spared: spared.clone(),
            resolves: *dangerously_resolve,
        })))
    }
}

impl TryFrom<String> for ProxyUrl {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        // Never quoted: there may be a password in it.
        let text = Zeroizing::new(text);
        let wrong = |why: &str| ConfigError::ProxyUrl(why.to_owned());
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong("it has no scheme"));
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other if other.starts_with("socks") => {
                return Err(wrong("SOCKS is not spoken to upstream proxies"));
            }
            _ => return Err(wrong("its scheme is neither http nor https")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(wrong(
                "it has a path, a query or a fragment; in a password write %2F, %3F, %23",
            ));
        }
        let (userinfo, authority) = match rest.rsplit_once('@') {
            Some((userinfo, authority)) => (Some(userinfo), authority),
            None => (None, rest),
        };
        let authority = Authority::from_wire(authority.as_bytes())
            .map_err(|error| wrong(&format!("its host and port: {error}")))?;
        let port = authority.port.unwrap_or(if tls { 443 } else { 80 });
        Ok(ProxyUrl {
            tls,
            at: Destination { host: authority.host, port },
            authorization: userinfo.map(authorization).transpose()?,
        })
    }
}

/// `user:password`, percent-encoded where a URL wants it; a user alone has an empty password.
fn authorization(userinfo: &str) -> Result<ProxyAuthorization, ConfigError> {
    let wrong = |why: &str| ConfigError::ProxyUrl(why.to_owned());
    if userinfo.contains('@') {
        return Err(wrong("there are two `@`: in a user or a password write %40"));
    }
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let decoded = |part: &str| {
        decode(part).ok_or_else(|| wrong("its user or password has a `%` without two hex digits"))
    };
    let (user, password) = (decoded(user)?, decoded(password)?);
    if user.contains(&b':') {
        return Err(wrong("its user has a colon, which no proxy could tell from the end of it"));
    }
    let mut both = Zeroizing::new(Vec::with_capacity(user.len() + password.len() + 1));
    for part in [&user[..], b":", &password] {
        both.extend_from_slice(part);
    }
    // RFC 7617 section 2.
    if both.iter().any(u8::is_ascii_control) {
        return Err(wrong("its user or password has a control character"));
    }
    Ok(ProxyAuthorization::basic(&both))
}

/// RFC 3986 section 2.1.
fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut hex = || char::from(bytes.next()?).to_digit(16);
        decoded.push(match byte {
            b'%' => u8::try_from(hex()? * 16 + hex()?).ok()?,
            byte => byte,
        });
    }
    Some(decoded)
}

impl TryFrom<String> for NoProxy {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        if text.contains('/') && !text.contains("://") {
            return Ok(NoProxy(Spared::Addresses(Block::try_from(text)?.into(), None)));
        }
        match HostPattern::parse(&text) {
            Ok((HostPattern::Address(address), port)) => {
                Ok(NoProxy(Spared::Addresses(IpNet::from(address), port)))
            }
            Ok((pattern, port)) => Ok(NoProxy(Spared::Names(pattern, port))),
            Err(error) => {
                let given = text.rsplit_once('@').map_or(text.clone(), |(_, host)| host.to_owned());
                Err(ConfigError::NoProxy { given, error })
            }
        }
    }
}

/// A message without what stands before an `@` in the text that it quotes: it may be a password.
pub(super) fn without_userinfo(message: &str) -> String {
    let quoted = message.find('"').zip(message.rfind('@')).filter(|(quote, at)| quote < at);
    match quoted {
        Some((quote, at)) => format!("{}…{}", &message[..=quote], &message[at..]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use outgate_policy::Host;

    use super::*;

    fn url(text: &str) -> Result<ProxyUrl, String> {
        ProxyUrl::try_from(text.to_owned()).map_err(|error| error.to_string())
    }

    fn at(host: &str, port: u16) -> Destination {
        Destination { host: Host::from_wire(host.as_bytes()).unwrap(), port }
    }

    #[test]
    fn a_proxy_is_named_by_a_url() {
        let plain = |tls, at| Ok(ProxyUrl { tls, at, authorization: None });
        assert_eq!(url("http://proxy.corp:3128"), plain(false, at("proxy.corp", 3128)));
        assert_eq!(url("HTTP://Proxy.Corp/"), plain(false, at("proxy.corp", 80)));
        assert_eq!(url("https://proxy.corp"), plain(true, at("proxy.corp", 443)));
        assert_eq!(url("http://127.0.0.1:8080"), plain(false, at("127.0.0.1", 8080)));
        assert_eq!(url("https://[2a00:1::1]:8"), plain(true, at("[2a00:1::1]", 8)));
    }

    #[test]
    fn a_user_and_a_password_may_be_in_it() {
        for (userinfo, both) in [
            ("user:pass", "user:pass"),
            ("user", "user:"),
            ("user:", "user:"),
            ("us%65r:p%40%3a%2F%25:", "user:p@:/%:"),
            ("us\u{e9}r:%C3%A9", "us\u{e9}r:\u{e9}"),
        ] {
            let read = url(&format!("http://{userinfo}@p:1")).unwrap();
            let wanted = ProxyAuthorization::basic(both.as_bytes());
            assert_eq!(read.authorization, Some(wanted), "{userinfo}");
            assert!(!format!("{read:?}").contains("pass"), "{read:?}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_being_shown() {
        for (text, says) in [
            ("proxy.corp:3128", "no scheme"),
            ("socks5://hunter2@p:1", "SOCKS"),
            ("socks5h://p:1", "SOCKS"),
            ("ftp://u:hunter2@p", "neither http nor https"),
            ("http://u:hunter2@p:1/path", "a path"),
            ("http://u:hunter2@p:1?q", "a query"),
            ("http://u:hunter2/@p:1", "a path"),
            ("http://u:hunter2@", "host and port"),
            ("http://u:hunter2@p:0", "host and port"),
            ("http://u:hunter2@p:66000", "host and port"),
            ("http://u:hunter2@a b:1", "host and port"),
            ("http://u:hunter2@2130706433:1", "host and port"),
            ("http://u:hunter2@x@p:1", "two `@`"),
            ("http://u:hunter2%4@p:1", "hex digits"),
            ("http://u%3a:hunter2@p:1", "colon"),
            ("http://u:hunter2%0d%0aA:b@p:1", "control"),
        ] {
            let why = url(text).expect_err(text);
            assert!(why.contains(says), "{text}: {why}");
            assert!(!why.contains("hunter2"), "{why}");
            assert!(why.contains("write http://HOST:PORT"), "{why}");
        }
    }

    #[test]
    fn what_the_proxy_is_not_for_is_named_as_in_entries() {
        let spared = |text: &str| NoProxy::try_from(text.to_owned()).map(|NoProxy(spared)| spared);
        let names = |text: &str, port| Spared::Names(HostPattern::parse(text).unwrap().0, port);
        let addresses = |text: &str, port| Spared::Addresses(text.parse().unwrap(), port);
        assert_eq!(spared("*.corp").unwrap(), names("*.corp", None));
        assert_eq!(spared("Git.Corp:8443").unwrap(), names("git.corp", Some(8443)));
        assert_eq!(spared("10.0.0.0/8").unwrap(), addresses("10.0.0.0/8", None));
        assert_eq!(spared("10.1.2.3").unwrap(), addresses("10.1.2.3/32", None));
        assert_eq!(spared("10.1.2.3:80").unwrap(), addresses("10.1.2.3/32", Some(80)));
        assert_eq!(spared("[fd12::1]:80").unwrap(), addresses("fd12::1/128", Some(80)));
        assert_eq!(spared("fd12::/16").unwrap(), addresses("fd12::/16", None));
        for wrong in ["", ".corp", "*corp", "a b", "http://corp", "10.1.2.3/8", "corp/x", "a:0"] {
            assert!(spared(wrong).is_err(), "{wrong}");
        }
    }
}
