//! Which character does a reference of HTML stand for?
//!
//! Pages of errors are HTML, and templates write `/`, `=` and `+` of a token so. The names are those
//! that they use for ASCII (HTML §13.5).

use super::escape::hex;

/// What is written by name.
const NAMES: [(&[u8], u8); 6] = [
    (b"amp;", b'&'),
    (b"apos;", b'\''),
    (b"gt;", b'>'),
    (b"lt;", b'<'),
    (b"quot;", b'"'),
    (b"sol;", b'/'),
];
/// Digits of a number, zeros in front included: `&#0000000047;` is as far as anybody goes.
const DIGITS: usize = 10;

/// What text behind a `&` is.
pub(super) enum Reference {
    /// The character, and how much of the text it is.
    Is(char, usize),
    /// The text ends before it is clear.
    Cut,
    No,
}

pub(super) fn read(text: &[u8]) -> Reference {
    match text {
        [] | [b'#'] | [b'#', b'x' | b'X'] => Reference::Cut,
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16, 2),
        [b'#', digits @ ..] => number(digits, 10, 1),
        _ => name(text),
    }
}

/// The names of a character, without the `&`.
pub(super) fn names_of(byte: u8) -> impl Iterator<Item = &'static [u8]> {
    NAMES.iter().filter(move |(_, named)| *named == byte).map(|(name, _)| *name)
}

fn name(text: &[u8]) -> Reference {
    for (name, byte) in NAMES {
        if text.starts_with(name) {
            return Reference::Is(char::from(byte), name.len());
        }
    }
    match NAMES.iter().any(|(name, _)| name.starts_with(text)) {
        true => Reference::Cut,
        false => Reference::No,
    }
}

fn number(digits: &[u8], base: u32, before: usize) -> Reference {
    let mut point = 0_u32;
    for (at, byte) in digits.iter().enumerate() {
        match hex(*byte).map(u32::from) {
            Some(digit) if digit < base && at < DIGITS => {
                point = point.saturating_mul(base).saturating_add(digit);
            }
            None if *byte == b';' && at > 0 => {
                let length = before + at + 1;
                return char::from_u32(point).map_or(Reference::No, |is| Reference::Is(is, length));
            }
            _ => return Reference::No,
        }
    }
    match digits.len() > DIGITS {
        true => Reference::No,
        false => Reference::Cut,
    }
}
