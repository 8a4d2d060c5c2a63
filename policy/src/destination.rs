//! Where does a connection or request want to go? A host and a port: what policy judges.

use std::fmt;

use crate::host::Host;

/// What policy judges. What is dialled is an address, judged apart by `AddressRules`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The name or literal.
    pub host: Host,
    /// The port, 1 to 65535.
    pub port: u16,
}

/// The two schemes that requests come with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Destination {
    /// The authority as `Host` and `:authority` carry it: the scheme's own port is left out, since
    /// some signatures cover the header without it.
    pub fn authority(&self, scheme: Scheme) -> String {
        if self.port == scheme.default_port() { self.host.to_string() } else { self.to_string() }
    }
}

/// `host:port`, IPv6 in brackets.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Scheme {
    /// 80 or 443.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_only_the_port_of_the_scheme() {
        let host = Host::from_wire(b"[2a00:1::1]").expect("a literal");
        let at = |port| Destination { host: host.clone(), port };
        assert_eq!(at(443).authority(Scheme::Https), "[2a00:1::1]");
        assert_eq!(at(443).authority(Scheme::Http), "[2a00:1::1]:443");
        assert_eq!(at(80).authority(Scheme::Http), "[2a00:1::1]");
        assert_eq!(at(80).authority(Scheme::Https), "[2a00:1::1]:80");
        assert_eq!(at(8443).to_string(), "[2a00:1::1]:8443");
    }
}
