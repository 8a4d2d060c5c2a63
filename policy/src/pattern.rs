//! Which hosts does the `domain` of an entry mean?

use std::fmt;
use std::net::IpAddr;

use crate::address::{AddressClass, embedded_ipv4};
use crate::authority::split;
use crate::host::{Host, HostError, Name, PortError, parse_port};

/// What an entry matches. More specific: exact before suffix before `*`; longer suffix first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// That name only.
    Exact(Name),
    /// Every depth below that name, not the name itself.
    Subdomains(Name),
    /// Every name of two labels or more, and every public IP literal.
    Any,
    /// That address only. IPv4 inside IPv6 is held as the IPv4 that it reaches.
    Address(IpAddr),
}

/// Why a text is no pattern, with what would be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing there.
    #[error("empty; write a domain, `*.domain` or `*`")]
    Empty,
    /// Blanks, line ends and other characters that no domain has.
    #[error("blanks and control characters are not part of a domain")]
    Blank,
    /// `https://api.example.com/v1`.
    #[error("a URL; write the domain alone{}", hint(.0.as_deref()))]
    Url(Option<String>),
    /// `api.example.com/v1`.
    #[error("a domain has no path; put it into `paths`, and write the domain alone{}", hint(.0.as_deref()))]
    Path(Option<String>),
    /// `*example.com`, `.example.com`.
    #[error("`*.` covers what is below a domain; did you mean `*.{0}`?")]
    MissingDot(String),
    /// `a.*.com`, `*.*.com`.
    #[error("`*` stands alone or, with a dot, in front of a whole domain")]
    InnerStar,
    /// `*.127.0.0.1`.
    #[error("an address has no subdomains")]
    BelowAddress,
    /// The rest is no host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What follows the colon is no port.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl HostPattern {
    /// Reads the value of `domain`: a pattern, and the port if one is written behind it.
    pub fn parse(text: &str) -> Result<(HostPattern, Option<u16>), PatternError> {
        refuse_other_things(text)?;
        if let Ok(host @ Host::Address(_)) = Host::from_config(text) {
            return Ok((HostPattern::from(host), None));
        }
        let (host, port) = split(text.as_bytes())?;
        let port = port.map(parse_port).transpose()?;
        let host = &text[..host.len()];
        Ok((parse_host(host)?, port))
    }

    /// Whether it covers `host`.
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Exact(name), Host::Name(other)) => name == other,
            (HostPattern::Subdomains(name), Host::Name(other)) => {
                other.parents().any(|parent| parent == name.as_str())
            }
            (HostPattern::Any, Host::Name(name)) => name.labels() >= 2,
            (HostPattern::Any, Host::Address(address)) => AddressClass::of(*address).is_none(),
            (HostPattern::Address(address), Host::Address(other)) => *address == reached(*other),
            (HostPattern::Exact(_) | HostPattern::Subdomains(_), Host::Address(_))
            | (HostPattern::Address(_), Host::Name(_)) => false,
        }
    }
}

impl From<Host> for HostPattern {
    fn from(host: Host) -> HostPattern {
        match host {
            Host::Name(name) => HostPattern::Exact(name),
            Host::Address(address) => HostPattern::Address(reached(address)),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(name) => write!(f, "{name}"),
            HostPattern::Subdomains(name) => write!(f, "*.{name}"),
            HostPattern::Any => f.write_str("*"),
            HostPattern::Address(address) => write!(f, "{}", Host::Address(*address)),
        }
    }
}

/// The address that a literal reaches: an entry that denies an IPv4 address denies its IPv6
/// spellings too.
pub(crate) fn reached(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(outer) => embedded_ipv4(outer).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Things that people put there in place of a domain, each with its own hint.
fn refuse_other_things(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err(PatternError::Blank);
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Err(PatternError::Url(domain_of(rest)));
    }
    if text.contains(['/', '?', '#']) {
        return Err(PatternError::Path(domain_of(text)));
    }
    Ok(())
}

fn parse_host(text: &str) -> Result<HostPattern, PatternError> {
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some(rest) = text.strip_prefix("*.") {
        return match Host::from_config(rest) {
            _ if rest.contains('*') => Err(PatternError::InnerStar),
            Ok(Host::Name(name)) => Ok(HostPattern::Subdomains(name)),
            Ok(Host::Address(_)) => Err(PatternError::BelowAddress),
            Err(error) => Err(error.into()),
        };
    }
    if let Some(rest) = text.strip_prefix(['*', '.'])
        && Host::from_config(rest).is_ok()
    {
        return Err(PatternError::MissingDot(rest.to_owned()));
    }
    if text.contains('*') {
        return Err(PatternError::InnerStar);
    }
    Ok(Host::from_config(text)?.into())
}

/// The host inside a URL's rest, if it is one: never what stands before an `@`, which may be a
/// password.
fn domain_of(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    HostPattern::parse(host).ok().map(|(pattern, port)| match port {
        Some(port) => format!("{pattern}:{port}"),
        None => pattern.to_string(),
    })
}

fn hint(domain: Option<&str>) -> String {
    domain.map_or_else(String::new, |domain| format!(": `{domain}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        HostPattern::parse(text)
            .map(|(pattern, port)| {
                port.map_or(pattern.to_string(), |port| format!("{pattern} {port}"))
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn reads_every_kind_of_pattern() {
        let table = [
            ("API.example.com.", "api.example.com"),
            ("*.Example.com", "*.example.com"),
            ("*", "*"),
            ("host.test:8443", "host.test 8443"),
            ("*.host.test:22", "*.host.test 22"),
            ("*:8080", "* 8080"),
            ("11.22.33.44", "11.22.33.44"),
            ("11.22.33.44:81", "11.22.33.44 81"),
            ("2a00:1::1", "[2a00:1::1]"),
            ("[2a00:1::1]:8443", "[2a00:1::1] 8443"),
            ("::ffff:11.22.33.44", "11.22.33.44"),
            ("bücher.test", "xn--bcher-kva.test"),
            ("*.bücher.test:1", "*.xn--bcher-kva.test 1"),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn covers_what_the_look_up_would_find() {
        let table = [
            ("a.test", "A.test.", true),
            ("a.test", "b.a.test", false),
            ("*.a.test", "c.b.a.test", true),
            ("*.a.test", "a.test", false),
            ("*.a.test", "xa.test", false),
            ("*", "a.test", true),
            ("*", "single", false),
            ("*", "11.22.33.44", true),
            ("*", "10.0.0.1", false),
            ("11.22.33.44", "[::ffff:11.22.33.44]", true),
            ("11.22.33.44", "a.test", false),
        ];
        for (pattern, host, expected) in table {
            let (read, _) = HostPattern::parse(pattern).expect("a pattern");
            let host = Host::from_wire(host.as_bytes()).expect("a host");
            assert_eq!(read.matches(&host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn hints_at_what_was_meant() {
        let table = [
            ("https://api.example.com/v1", "`api.example.com`"),
            ("https://me:pw@api.example.com:8443/v1", "`api.example.com:8443`"),
            ("api.example.com/v1", "`paths`"),
            ("*example.com", "did you mean `*.example.com`?"),
            (".example.com", "did you mean `*.example.com`?"),
            ("a.*.com", "`*` stands alone"),
            ("*.*.com", "`*` stands alone"),
            ("a*.com", "`*` stands alone"),
            ("**", "`*` stands alone"),
            ("*.127.0.0.1", "no subdomains"),
            ("", "empty"),
            ("host:", "port is empty"),
            ("host:99999", "1 to 65535"),
            ("*.", "the host is empty"),
        ];
        for (text, hint) in table {
            let error = read(text).expect_err(text);
            assert!(error.contains(hint), "{text}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn refuses_text_that_would_mean_something_to_another_program() {
        for text in [
            "a.example.com\n    accept",
            "a.example.com; flush ruleset",
            "a.example.com # x",
            "$(id).example.com",
            "a b",
            "\u{a0}a.test",
            "a,b",
            "a.test|b.test",
            "me@a.test",
            "2130706433",
            "0x7f.1",
            "127.1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
