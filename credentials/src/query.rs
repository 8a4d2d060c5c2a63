//! How is one parameter of a query set or removed, with the rest left byte for byte?

use http::uri::PathAndQuery;
use zeroize::Zeroizing;

/// `target` without the parameters of this decoded name.
pub fn without(target: &PathAndQuery, name: &str) -> PathAndQuery {
    let Some(query) = target.query().filter(|query| has(query, name)) else {
        return target.clone();
    };
    joined(target.path(), &kept(query, name))
}

/// `target` with `pair`, which is `name=value` escaped, in place of every parameter of that name.
pub(crate) fn with(target: &PathAndQuery, name: &str, pair: &str) -> PathAndQuery {
    let mut query =
        Zeroizing::new(target.query().map_or_else(String::new, |query| kept(query, name)));
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(pair);
    joined(target.path(), &query)
}

/// Everything but what no reader of a query takes for anything else (RFC 3986 §2.3) as `%XX`.
pub(crate) fn escape(text: &str) -> String {
    escape_bytes(text.as_bytes())
}

/// The same of bytes that may be no text.
pub(crate) fn escape_bytes(bytes: &[u8]) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.extend(['%', digit(byte >> 4), digit(byte & 0xf)]),
        }
    }
    escaped
}

fn digit(half: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(half)])
}

/// Whether a query has a parameter of this decoded name.
pub(crate) fn has(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| is_named(pair, name))
}

fn kept(query: &str, name: &str) -> String {
    let kept: Vec<_> = query.split('&').filter(|pair| !is_named(pair, name)).collect();
    kept.join("&")
}

fn is_named(pair: &str, name: &str) -> bool {
    let key = pair.split('=').next().unwrap_or_default();
    Decoding { text: key.as_bytes(), plus_is_blank: true }.eq(name.bytes())
}

/// The bytes of a percent-encoded text; in forms `+` is a blank.
pub(crate) fn decoded(text: &str, plus_is_blank: bool) -> Vec<u8> {
    Decoding { text: text.as_bytes(), plus_is_blank }.collect()
}

/// `%XX` is a byte, and a `%` without two digits is itself.
struct Decoding<'a> {
    text: &'a [u8],
    plus_is_blank: bool,
}

impl Iterator for Decoding<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.text.split_first()?;
        let pair = rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let escaped = pair.filter(|_| first == b'%').and_then(|pair| {
            // `from_str_radix` takes a sign.
            pair.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
            u8::from_str_radix(pair, 16).ok()
        });
        self.text = if escaped.is_some() { &rest[2..] } else { rest };
        match (escaped, first) {
            (Some(byte), _) => Some(byte),
            (None, b'+') if self.plus_is_blank => Some(b' '),
            (None, byte) => Some(byte),
        }
    }
}

fn joined(path: &str, query: &str) -> PathAndQuery {
    let text = match query {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    PathAndQuery::try_from(text).expect("parts of a valid target and escaped text are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> PathAndQuery {
        text.parse().expect("a target")
    }

    #[test]
    fn replaces_every_spelling_of_a_parameter_and_nothing_else() {
        let set = |text: &str| with(&target(text), "key", "key=ours").to_string();
        assert_eq!(set("/a"), "/a?key=ours");
        assert_eq!(set("/a?"), "/a?key=ours");
        assert_eq!(set("/a?key=x&b=%26&key"), "/a?b=%26&key=ours");
        assert_eq!(set("/a?%6bey=x&k%65y=y&Key=z&keys=1&b"), "/a?Key=z&keys=1&b&key=ours");
        assert_eq!(set("/a?key%=1&%zz&%+1"), "/a?key%=1&%zz&%+1&key=ours");
    }

    #[test]
    fn removes_a_parameter_by_its_decoded_name() {
        let removed = |text: &str| without(&target(text), "a b").to_string();
        assert_eq!(removed("/?a+b=1&c=2&a%20b=3"), "/?c=2");
        assert_eq!(removed("/?a+b"), "/");
        assert_eq!(removed("/?ab=1&&x"), "/?ab=1&&x");
        assert_eq!(removed("/"), "/");
    }

    #[test]
    fn escapes_for_its_place() {
        assert_eq!(escape("a\"b&c=d/é+ %"), "a%22b%26c%3Dd%2F%C3%A9%2B%20%25");
    }
}
