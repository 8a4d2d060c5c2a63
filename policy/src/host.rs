//! Which host is meant? A name or an IP literal, normalised once, the same for file and wire.
//!
//! Everything that names a host (CONNECT target, SNI, `Host`, allowlist entry) becomes a [`Host`]
//! here and is compared as a [`Host`] from then on. Two spellings of one host are equal; a spelling
//! that two programs could read differently is refused.

use std::borrow::Borrow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// The longest name that DNS can carry, in its text form without the last dot (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253;
/// The longest label (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;

/// A name or an IP literal.
///
/// Displayed as in an authority: IPv6 in brackets. An IPv4-mapped literal stays IPv6 here; the
/// policy and the address rules look through it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A normalised name.
    Name(Name),
    /// An IP literal.
    Address(IpAddr),
}

/// A normalised name: lower-case A-labels, no final dot. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(Arc<str>);

/// Why a text is no host. The text itself is left to the caller to quote.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing between the delimiters.
    #[error("the host is empty")]
    Empty,
    /// U-labels are for files; on the wire a name travels as A-labels.
    #[error("a host on the wire is ASCII; send international names as `xn--` labels")]
    NotAscii,
    /// `user@host`.
    #[error("user information before a host is not accepted")]
    Userinfo,
    /// Anything but letters, digits, `-`, `_` and dots.
    #[error("byte 0x{0:02x} can't be part of a host")]
    Byte(u8),
    /// Two dots in a row, or one at the start.
    #[error("the host has an empty label")]
    EmptyLabel,
    /// A label of hyphens alone, which nothing can be registered as.
    #[error("the host has a label made of hyphens only")]
    HyphensOnly,
    /// A label over 63 bytes.
    #[error("the host has a label longer than {MAX_LABEL} bytes")]
    LongLabel,
    /// A name over 253 bytes.
    #[error("the host is longer than {MAX_NAME} bytes")]
    Long,
    /// `127.1`, `0x7f.1`, `2130706433`: programs disagree about what they mean.
    #[error("a host that ends in a number must be an IPv4 address of four decimal parts")]
    OddNumber,
    /// Brackets that are open, in the wrong place, or around something else.
    #[error("brackets belong around an IPv6 address without zone, and around nothing else")]
    Brackets,
    /// `2001:db8::1` where an authority is expected.
    #[error("an IPv6 address needs brackets")]
    MissingBrackets,
    /// UTS 46 refuses it.
    #[error("the host is not a valid international name")]
    Idna,
}

/// Why a text is no port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// `host:`.
    #[error("the port is empty")]
    Empty,
    /// A sign, a blank, a letter.
    #[error("a port is made of digits only")]
    NotDigits,
    /// `0443`, which some programs read as octal.
    #[error("a port has no leading zero")]
    LeadingZero,
    /// 0, or above 65535.
    #[error("a port is a number from 1 to 65535")]
    OutOfRange,
}

impl Host {
    /// Reads a host as it came over the wire: ASCII, IPv6 only in brackets, no port.
    pub fn from_wire(text: &[u8]) -> Result<Host, HostError> {
        match text {
            [] => Err(HostError::Empty),
            [b'[', inner @ .., b']'] => bracketed(inner),
            _ => unbracketed(text),
        }
    }

    /// Reads a host from a file: as [`Host::from_wire`], and also international names as people
    /// write them and IPv6 literals without brackets.
    pub fn from_config(text: &str) -> Result<Host, HostError> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Host::Address(address.into()));
        }
        if text.is_ascii() {
            return Host::from_wire(text.as_bytes());
        }
        let ascii = to_a_labels(text.as_bytes())?;
        unbracketed(ascii.as_bytes())
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name.as_str()),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Name {
    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names above this one, nearest first: `b.c` and `c` for `a.b.c`.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(dot, _)| &self.0[dot + 1..])
    }

    /// How many labels the name has.
    pub(crate) fn labels(&self) -> usize {
        count_labels(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Lets tables be asked with a part of a name; `Arc<str>` hashes and compares as `str` does.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Reads a port: 1 to 5 digits, no sign, no leading zero, 1 to 65535.
pub fn parse_port(text: &[u8]) -> Result<u16, PortError> {
    match text {
        [] => return Err(PortError::Empty),
        _ if !text.iter().all(u8::is_ascii_digit) => return Err(PortError::NotDigits),
        [b'0'] => return Err(PortError::OutOfRange),
        [b'0', ..] => return Err(PortError::LeadingZero),
        _ if text.len() > 5 => return Err(PortError::OutOfRange),
        _ => {}
    }
    let number = text.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    u16::try_from(number).map_err(|_| PortError::OutOfRange)
}

pub(crate) fn count_labels(name: &str) -> usize {
    name.bytes().filter(|byte| *byte == b'.').count() + 1
}

fn bracketed(inner: &[u8]) -> Result<Host, HostError> {
    // `Ipv6Addr` takes no zone, which is what is wanted: a zone means something here only.
    std::str::from_utf8(inner)
        .ok()
        .and_then(|text| text.parse::<Ipv6Addr>().ok())
        .map(|address| Host::Address(address.into()))
        .ok_or(HostError::Brackets)
}

fn unbracketed(text: &[u8]) -> Result<Host, HostError> {
    let name = text.strip_suffix(b".").unwrap_or(text);
    if name.len() > MAX_NAME {
        return Err(HostError::Long);
    }
    let mut buffer = [0u8; MAX_NAME];
    let lower = &mut buffer[..name.len()];
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();

    check_labels(lower)?;
    let lower = std::str::from_utf8(lower).map_err(|_| HostError::NotAscii)?;
    if ends_in_a_number(lower) {
        // A literal is not a name: no final dot is taken off.
        let address = lower.parse::<Ipv4Addr>().map_err(|_| HostError::OddNumber)?;
        return if name.len() == text.len() {
            Ok(Host::Address(address.into()))
        } else {
            Err(HostError::OddNumber)
        };
    }
    if lower.starts_with("xn--") || lower.contains(".xn--") {
        // An A-label that decodes to nothing, or to what has another A-label, would be a second
        // spelling of some name.
        let again = to_a_labels(lower.as_bytes())?;
        if again != lower {
            return Err(HostError::Idna);
        }
    }
    Ok(Host::Name(Name(Arc::from(lower))))
}

/// The grammar of names, on lower-cased text without its final dot.
fn check_labels(name: &[u8]) -> Result<(), HostError> {
    if name.is_empty() {
        return Err(HostError::EmptyLabel);
    }
    for label in name.split(|byte| *byte == b'.') {
        for byte in label {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => {}
                b'@' => return Err(HostError::Userinfo),
                b'[' | b']' => return Err(HostError::Brackets),
                b':' => return Err(HostError::MissingBrackets),
                0x80.. => return Err(HostError::NotAscii),
                other => return Err(HostError::Byte(*other)),
            }
        }
        match label.len() {
            0 => return Err(HostError::EmptyLabel),
            1..=MAX_LABEL => {}
            _ => return Err(HostError::LongLabel),
        }
        if label.iter().all(|byte| *byte == b'-') {
            return Err(HostError::HyphensOnly);
        }
    }
    Ok(())
}

/// Whether the last label is one that `inet_aton` would take for a number: digits, or `0x` and
/// hexadecimal digits (WHATWG URL, "ends in a number").
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(is_hexadecimal)
}

/// UTS 46 ToASCII with CheckHyphens and STD3 off; the grammar above does their work.
fn to_a_labels(text: &[u8]) -> Result<String, HostError> {
    Uts46::new()
        .to_ascii(text, AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map(|ascii| ascii.into_owned())
        .map_err(|_| HostError::Idna)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(text: &str) -> Result<String, HostError> {
        Host::from_wire(text.as_bytes()).map(|host| host.to_string())
    }

    fn config(text: &str) -> Result<String, HostError> {
        Host::from_config(text).map(|host| host.to_string())
    }

    #[test]
    fn lowers_case_and_takes_one_final_dot_off() {
        assert_eq!(wire("API.Example.COM").as_deref(), Ok("api.example.com"));
        assert_eq!(wire("api.example.com.").as_deref(), Ok("api.example.com"));
        assert_eq!(wire("EVIL.Example.TEST."), wire("evil.example.test"));
    }

    #[test]
    fn refuses_empty_labels() {
        for text in ["evil.example.test..", ".api.example.com", "api..example.com", ".", ".."] {
            assert_eq!(wire(text), Err(HostError::EmptyLabel), "{text}");
        }
        assert_eq!(wire(""), Err(HostError::Empty));
    }

    #[test]
    fn refuses_bytes_that_are_no_part_of_a_name() {
        for text in
            ["a b", "a\tb", "a\0b", "a%00b", "%61pi.example.com", "a\\b", "a/b", "a*b", "*.a"]
        {
            assert!(matches!(wire(text), Err(HostError::Byte(_))), "{text}");
        }
        assert_eq!(wire("me@example.com"), Err(HostError::Userinfo));
        assert_eq!(wire("аpi.example.com"), Err(HostError::NotAscii));
        assert_eq!(Host::from_wire(&[b'a', 0xff]), Err(HostError::NotAscii));
    }

    #[test]
    fn refuses_brackets_around_a_name() {
        // CVE-2022-29188
        for text in [
            "[api.example.com]",
            "[::1",
            "[::1]x",
            "[fe80::1%25lo]",
            "[fe80::1%lo]",
            "[]",
            "[127.0.0.1]",
            "[[::1]]",
        ] {
            assert_eq!(wire(text), Err(HostError::Brackets), "{text}");
        }
        assert_eq!(wire("::1"), Err(HostError::MissingBrackets));
    }

    #[test]
    fn reads_ipv6_in_any_spelling_as_one_address() {
        assert_eq!(wire("[0:0:0:0:0:0:0:1]").as_deref(), Ok("[::1]"));
        assert_eq!(wire("[2A00:1::1]").as_deref(), Ok("[2a00:1::1]"));
        assert_eq!(wire("[::ffff:7f00:1]").as_deref(), Ok("[::ffff:127.0.0.1]"));
        assert_eq!(wire("[::ffff:0177.0.0.1]"), Err(HostError::Brackets));
    }

    #[test]
    fn refuses_every_odd_spelling_of_an_ipv4_address() {
        // CVE-2021-29922, CVE-2021-29923
        for text in [
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "0",
            "00000127.0.0.1",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.0x",
            "a.0x7F",
            "1.2.3.04",
            "example.1",
        ] {
            assert_eq!(wire(text), Err(HostError::OddNumber), "{text}");
        }
        assert!(wire("①②⑦.0.0.1").is_err());
        assert_eq!(wire("127.0.0.1").as_deref(), Ok("127.0.0.1"));
        assert_eq!(wire("1.0.0.127.in-addr.arpa").as_deref(), Ok("1.0.0.127.in-addr.arpa"));
        assert_eq!(wire("0x7g").as_deref(), Ok("0x7g"));
    }

    #[test]
    fn holds_the_length_limits_of_dns() {
        let label = "a".repeat(63);
        assert!(wire(&label).is_ok());
        assert_eq!(wire(&format!("{label}a.test")), Err(HostError::LongLabel));
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(longest.len(), 253);
        assert!(wire(&format!("{longest}.")).is_ok());
        assert_eq!(wire(&format!("{longest}a")), Err(HostError::Long));
    }

    #[test]
    fn accepts_hyphens_and_underscores_where_real_names_have_them() {
        for text in
            ["r3---sn-4g5e.example.com", "_dmarc.example.com", "-a.example.com", "a-.example.com"]
        {
            assert!(wire(text).is_ok(), "{text}");
        }
        assert_eq!(wire("-.ok.example.test"), Err(HostError::HyphensOnly));
    }

    #[test]
    fn reads_an_international_name_like_its_a_labels() {
        assert_eq!(config("bücher.test").as_deref(), Ok("xn--bcher-kva.test"));
        assert_eq!(config("BÜCHER。test."), config("xn--bcher-kva.test"));
        assert_eq!(wire("XN--Bcher-KVA.test").as_deref(), Ok("xn--bcher-kva.test"));
        assert_eq!(config("straße.test").as_deref(), Ok("xn--strae-oqa.test"));
    }

    #[test]
    fn refuses_a_labels_that_are_a_second_spelling() {
        for text in
            ["xn--", "xn--a.test", "xn--api-.test", "a.xn--zzzzzz99999.test", "xn--bcher-Kva-.test"]
        {
            assert_eq!(wire(text), Err(HostError::Idna), "{text}");
        }
    }

    #[test]
    fn accepts_ipv6_without_brackets_in_a_file_only() {
        assert_eq!(config("2a00:1::1").as_deref(), Ok("[2a00:1::1]"));
        assert_eq!(wire("2a00:1::1"), Err(HostError::MissingBrackets));
    }

    #[test]
    fn reads_ports_strictly() {
        assert_eq!(parse_port(b"1"), Ok(1));
        assert_eq!(parse_port(b"65535"), Ok(65535));
        assert_eq!(parse_port(b""), Err(PortError::Empty));
        assert_eq!(parse_port(b"0"), Err(PortError::OutOfRange));
        assert_eq!(parse_port(b"0443"), Err(PortError::LeadingZero));
        for text in ["65536", "65979", "99999", "100000", "4294967739"] {
            assert_eq!(parse_port(text.as_bytes()), Err(PortError::OutOfRange), "{text}");
        }
        for text in ["+443", "-1", " 443", "443 ", "4 3", "0x1", "443:80", "٤"] {
            assert_eq!(parse_port(text.as_bytes()), Err(PortError::NotDigits), "{text}");
        }
    }

    #[test]
    fn lists_the_parents_of_a_name() {
        let Ok(Host::Name(name)) = Host::from_wire(b"a.b.c") else { panic!("a name") };
        assert_eq!(name.parents().collect::<Vec<_>>(), ["b.c", "c"]);
        assert_eq!(name.labels(), 3);
    }
}
