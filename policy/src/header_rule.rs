//! Which headers may be injected? Not those that HTTP's framing and routing live by, and no value
//! that could become a second line.

use http::{HeaderName, HeaderValue};

/// The longest value. Common servers refuse a longer line, and it is far above any token.
const MAX_VALUE: usize = 16 << 10;

/// The shortest value that `scrub` looks for in answers. Shorter ones are words like `blue`: to mask
/// them would spoil answers and hide nothing.
pub const SHORTEST_SCRUBBED: usize = 6;

/// Headers that are made anew for every request, or that belong to one connection.
const STRUCTURAL: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Why a header can't be injected. Quotes no value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderRuleError {
    /// Not a token (RFC 9110 §5.6.2).
    #[error("not a header name; a name is letters, digits and any of !#$%&'*+-.^_`|~")]
    Name,
    /// `:authority` and the like.
    #[error("a name with a colon in front is part of HTTP/2's framing and can't be set")]
    Pseudo,
    /// One of the headers that the gateway itself decides.
    #[error("this header frames or routes the request and is set by the gateway itself")]
    Structural,
    /// `Proxy-Authorization` and its family.
    #[error("headers named `Proxy-…` are for proxies and never reach an origin")]
    Proxy,
    /// Control characters, line ends, anything outside ASCII.
    #[error("the value has a character outside 0x20 to 0x7E and tab; is there a line end in it?")]
    Value,
    /// Receivers take these blanks off, so two values would be one.
    #[error("the value has a blank at an end; remove it")]
    Blank,
    /// More than servers take.
    #[error("the value is longer than {MAX_VALUE} bytes")]
    Long,
}

/// Checks the name of a header that is to be injected.
pub fn injectable_name(name: &str) -> Result<HeaderName, HeaderRuleError> {
    if name.starts_with(':') {
        return Err(HeaderRuleError::Pseudo);
    }
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderRuleError::Name)?;
    if name.as_str().starts_with("proxy-") {
        return Err(HeaderRuleError::Proxy);
    }
    if STRUCTURAL.contains(&name.as_str()) {
        return Err(HeaderRuleError::Structural);
    }
    Ok(name)
}

/// Checks a value that is to be injected, and marks it sensitive: `Debug` hides it, and header
/// compression never indexes it.
pub fn injectable_value(value: &str) -> Result<HeaderValue, HeaderRuleError> {
    if value.len() > MAX_VALUE {
        return Err(HeaderRuleError::Long);
    }
    if !value.bytes().all(|byte| matches!(byte, 0x20..=0x7e | b'\t')) {
        return Err(HeaderRuleError::Value);
    }
    if value.trim_matches([' ', '\t']).len() != value.len() {
        return Err(HeaderRuleError::Blank);
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| HeaderRuleError::Value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a header of this name usually carries a secret.
pub(crate) fn usually_carries_a_secret(name: &HeaderName) -> bool {
    const PARTS: [&str; 8] =
        ["auth", "token", "api-key", "apikey", "access-key", "secret", "cookie", "password"];
    PARTS.iter().any(|part| name.as_str().contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_headers_that_frame_or_route() {
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "TE",
            "Trailer",
            "Expect",
            "Keep-Alive",
        ] {
            assert_eq!(injectable_name(name), Err(HeaderRuleError::Structural), "{name}");
        }
        for name in ["Proxy-Authorization", "proxy-connection", "Proxy-X"] {
            assert_eq!(injectable_name(name), Err(HeaderRuleError::Proxy), "{name}");
        }
        assert_eq!(injectable_name(":authority"), Err(HeaderRuleError::Pseudo));
        for name in ["", "X Y", "X:Y", "X\r\nY", "Ünicode", "X\0"] {
            assert_eq!(injectable_name(name), Err(HeaderRuleError::Name), "{name:?}");
        }
        for name in ["Authorization", "Cookie", "X-Goog-Api-Key", "hosts", "X-Host"] {
            assert!(injectable_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn refuses_values_that_could_become_another_line() {
        for value in ["tok\r\nX-Evil: 1", "tok\n", "tok\0", "tök", "a\x7fb", "\x1b[2J"] {
            assert_eq!(injectable_value(value), Err(HeaderRuleError::Value), "{value:?}");
        }
        for value in [" tok", "tok ", "\ttok", "tok\t", " "] {
            assert_eq!(injectable_value(value), Err(HeaderRuleError::Blank), "{value:?}");
        }
        assert_eq!(injectable_value(&"a".repeat(64 << 10)), Err(HeaderRuleError::Long));
        for value in ["", "Bearer a b", "a\tb", "~!@#$%^&*()"] {
            assert!(injectable_value(value).is_ok(), "{value:?}");
        }
    }

    #[test]
    fn hides_the_value_from_debug_output() {
        let value = injectable_value("Bearer hunter2").expect("a value");
        assert!(value.is_sensitive());
        assert!(!format!("{value:?}").contains("hunter2"));
    }

    #[test]
    fn knows_names_that_usually_carry_secrets() {
        let carries = |name| usually_carries_a_secret(&injectable_name(name).expect("a name"));
        for name in
            ["Authorization", "X-API-Key", "x-goog-api-key", "Private-Token", "Cookie", "X-Auth"]
        {
            assert!(carries(name), "{name}");
        }
        for name in ["X-Team", "Accept", "User-Agent"] {
            assert!(!carries(name), "{name}");
        }
    }
}
