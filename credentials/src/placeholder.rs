//! What stands in the sandbox for a value, and how is it found again?
//!
//! A placeholder is the owner's prefix, a marker and 128 random bits in hex:
//! `ghp_ogph0123456789abcdef0123456789abcdef`. The marker lets one search of a text find every
//! placeholder there is, those of other environments and of credentials long gone too: they have
//! the shape, and nobody knows them. Letters and digits alone, so that no client escapes it; behind
//! `ghp_` it has the length that GitHub's clients expect.

use std::fmt;
use std::sync::LazyLock;

use aws_lc_rs::rand;
use memchr::memmem::Finder;

pub(crate) const MARKER: &str = "ogph";
const DIGITS: usize = 32;
/// Marker and digits.
pub(crate) const LENGTH: usize = MARKER.len() + DIGITS;

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER));

/// The random part of one placeholder: knowing it is the right to use it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag([u8; DIGITS]);

impl Tag {
    /// A new one; `None` without random bytes.
    pub(crate) fn issue() -> Option<Tag> {
        let mut bits = [0; DIGITS / 2];
        rand::fill(&mut bits).ok()?;
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
        let mut tag = [0; DIGITS];
        for (pair, byte) in tag.chunks_exact_mut(2).zip(bits) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        Some(Tag(tag))
    }

    /// The digits alone.
    pub(crate) fn parse(digits: &[u8]) -> Option<Tag> {
        let digits: [u8; DIGITS] = digits.try_into().ok()?;
        digits.iter().all(is_digit).then_some(Tag(digits))
    }

    pub(crate) fn digits(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits are ASCII")
    }

    /// The placeholder behind the owner's prefix.
    pub(crate) fn placeholder(&self, prefix: &str) -> String {
        format!("{prefix}{MARKER}{}", self.digits())
    }
}

pub(crate) fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// It is worth the value that it stands for.
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tag(…)")
    }
}

/// The first placeholder in `text` from `from` on: where its marker begins, and its tag.
pub(crate) fn find(text: &[u8], mut from: usize) -> Option<(usize, Tag)> {
    loop {
        let at = from + FINDER.find(text.get(from..)?)?;
        let tag = text.get(at + MARKER.len()..at + LENGTH).and_then(Tag::parse);
        if let Some(tag) = tag {
            return Some((at, tag));
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ten_thousand_are_all_different_and_found_again() {
        let tags: HashSet<_> = (0..10_000).map(|_| Tag::issue().expect("random bytes")).collect();
        assert_eq!(tags.len(), 10_000);
        for tag in tags {
            let text = format!("a ogph {} b", tag.placeholder("ghp_"));
            let (at, found) = find(text.as_bytes(), 0).expect("found");
            assert!(found == tag && text[at..].starts_with(MARKER));
            assert_eq!(tag.placeholder("ghp_").len(), 40);
        }
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        let digits = "0123456789abcdef0123456789abcdef";
        for text in [
            String::new(),
            "ogph".to_owned(),
            format!("ogph{}", &digits[1..]),
            format!("OGPH{digits}"),
            format!("ogph{}", digits.to_uppercase()),
            format!("ogp{digits}"),
        ] {
            assert!(find(text.as_bytes(), 0).is_none(), "{text}");
        }
        let (at, _) = find(format!("ogphogph{digits}").as_bytes(), 0).expect("the second marker");
        assert_eq!(at, 4);
    }
}
