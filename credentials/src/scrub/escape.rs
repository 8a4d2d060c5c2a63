//! What may an escaped byte of a text stand for?
//!
//! Texts quoted in texts are escaped more than once, so a few layers are read, and every reading
//! counts: which one a reader will take is not known here.

use smallvec::SmallVec;

use super::reference::{self, Reference};

/// Layers of percent-encoding: `%41`, `%2541`, `%252541`.
const PERCENT_LAYERS: usize = 3;
/// Backslashes in a row that may be one escape: three layers of JSON in JSON need 7.
const BACKSLASHES: usize = 8;

/// One reading: so many bytes of text, and what they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) length: usize,
    bytes: [u8; 4],
    count: u8,
}

/// Everything that the start of a text may be.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) all: SmallVec<[Reading; 6]>,
    /// The text ends within one.
    pub(super) cut: bool,
}

impl Reading {
    fn byte(length: usize, byte: u8) -> Reading {
        Reading { length, bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn character(length: usize, character: char) -> Reading {
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len() as u8;
        Reading { length, bytes, count }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count)]
    }
}

/// Whether `byte` may begin an escape.
pub(super) fn begins(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Reads `text`, whose first byte begins an escape; the byte itself is a reading too.
pub(super) fn read(text: &[u8]) -> Readings {
    let mut readings = Readings::default();
    readings.all.push(Reading::byte(1, text[0]));
    match text[0] {
        b'%' => percent(text, &mut readings),
        b'&' => match reference::read(&text[1..]) {
            Reference::Is(character, length) => {
                readings.add(Reading::character(1 + length, character));
            }
            Reference::Cut => readings.cut = true,
            Reference::No => {}
        },
        _ => {}
    }
    // A backslash may be percent-encoded, with all of its escape.
    if readings.all.iter().any(|reading| reading.bytes() == b"\\") {
        backslash(text, &mut readings);
    }
    readings
}

impl Readings {
    fn add(&mut self, reading: Reading) {
        if !self.all.contains(&reading) {
            self.all.push(reading);
        }
    }
}

fn percent(text: &[u8], readings: &mut Readings) {
    let mut at = 1;
    for _ in 0..PERCENT_LAYERS {
        match pair(text, at) {
            Some(Some(byte)) => {
                readings.add(Reading::byte(at + 2, byte));
                if byte != b'%' {
                    return;
                }
                at += 2;
            }
            Some(None) => return,
            None => {
                readings.cut = true;
                return;
            }
        }
    }
}

fn backslash(text: &[u8], readings: &mut Readings) {
    let (mut at, mut run) = (0, 0usize);
    while let Plain::Is(b'\\', length) = plain(text, at) {
        if run == BACKSLASHES {
            return;
        }
        (at, run) = (at + length, run + 1);
        // One backslash in up to four layers.
        if run.is_power_of_two() {
            readings.add(Reading::byte(at, b'\\'));
        }
    }
    if text.get(at) == Some(&b'%') {
        readings.add(Reading::byte(at + 1, b'%'));
    }
    match plain(text, at) {
        Plain::Cut => readings.cut = true,
        Plain::Is(b'u', length) => match unicode(text, at + length) {
            Unicode::Is(character, end) => readings.add(Reading::character(end, character)),
            Unicode::Cut => readings.cut = true,
            Unicode::No => {}
        },
        Plain::Is(b'n', length) => readings.add(Reading::byte(at + length, b'\n')),
        Plain::Is(b'r', length) => readings.add(Reading::byte(at + length, b'\r')),
        Plain::Is(b't', length) => readings.add(Reading::byte(at + length, b'\t')),
        Plain::Is(byte, length) if byte.is_ascii_punctuation() => {
            readings.add(Reading::byte(at + length, byte));
        }
        Plain::Is(..) => {}
    }
}

/// A byte with its percent-encoding taken off, and how long that was.
enum Plain {
    Is(u8, usize),
    Cut,
}

fn plain(text: &[u8], at: usize) -> Plain {
    let Some(first) = text.get(at) else { return Plain::Cut };
    let (mut byte, mut length) = (*first, 1);
    for _ in 0..PERCENT_LAYERS {
        if byte != b'%' {
            break;
        }
        match pair(text, at + length) {
            Some(Some(next)) => (byte, length) = (next, length + 2),
            Some(None) => break,
            None => return Plain::Cut,
        }
    }
    Plain::Is(byte, length)
}

enum Unicode {
    /// The character, and where it ends.
    Is(char, usize),
    Cut,
    No,
}

/// What follows `\u`: four digits, or two times four where they are surrogates (RFC 8259 §7).
fn unicode(text: &[u8], at: usize) -> Unicode {
    let (first, mut at) = match digits(text, at) {
        Ok(first) => first,
        Err(other) => return other,
    };
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map_or(Unicode::No, |one| Unicode::Is(one, at));
    }
    let mut run = 0;
    loop {
        match plain(text, at) {
            Plain::Is(b'\\', length) if run < BACKSLASHES => (at, run) = (at + length, run + 1),
            Plain::Is(b'u', length) if run > 0 => {
                at += length;
                break;
            }
            Plain::Is(..) => return Unicode::No,
            Plain::Cut => return Unicode::Cut,
        }
    }
    match digits(text, at) {
        Ok((second @ 0xdc00..0xe000, end)) => {
            let point = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(point).map_or(Unicode::No, |one| Unicode::Is(one, end))
        }
        Ok(_) => Unicode::No,
        Err(other) => other,
    }
}

/// Four digits, and where they end.
fn digits(text: &[u8], mut at: usize) -> Result<(u32, usize), Unicode> {
    let mut value = 0;
    for _ in 0..4 {
        let Plain::Is(byte, length) = plain(text, at) else { return Err(Unicode::Cut) };
        value = value << 4 | u32::from(hex(byte).ok_or(Unicode::No)?);
        at += length;
    }
    Ok((value, at))
}

/// The byte that two digits are, if they are; `None` where the text ends before that is clear.
fn pair(text: &[u8], at: usize) -> Option<Option<u8>> {
    let Some(high) = hex(*text.get(at)?) else { return Some(None) };
    Some(hex(*text.get(at + 1)?).map(|low| high << 4 | low))
}

pub(super) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Vec<(usize, String)> {
        let text_of = |one: &Reading| String::from_utf8_lossy(one.bytes()).into_owned();
        read(text.as_bytes()).all.iter().map(|one| (one.length, text_of(one))).collect()
    }

    fn last(text: &str) -> (usize, String) {
        says(text).pop().expect("a reading")
    }

    #[test]
    fn reads_every_layer_of_an_escape() {
        assert_eq!(says("%41x"), [(1, "%".to_owned()), (3, "A".to_owned())]);
        assert_eq!(last("%2541"), (5, "A".to_owned()));
        assert_eq!(last("%25252f"), (7, "/".to_owned()));
        assert_eq!(last("%5C%22"), (6, "\"".to_owned()));
        assert_eq!(last("%5cu00%34%31"), (12, "A".to_owned()));
        for slash in ["&#x2F;", "&#X2f;", "&#47;", "&#047;", "&sol;"] {
            assert_eq!(last(slash), (slash.len(), "/".to_owned()));
        }
        assert_eq!(says("&x;").len() + says("&#x;").len() + says("&#4x;").len(), 3);
        assert_eq!(says("%4g"), [(1, "%".to_owned())]);
        assert_eq!(last("\\\"x"), (2, "\"".to_owned()));
        assert_eq!(last("\\\\\\\"x"), (4, "\"".to_owned()));
        assert_eq!(last("\\u00e9"), (6, "é".to_owned()));
        assert_eq!(last("\\\\uD83d\\\\uDE00"), (14, "😀".to_owned()));
        assert_eq!(last("\\\\a"), (2, "\\".to_owned()));
        assert_eq!(says("\\ud83dx"), [(1, "\\".to_owned())]);
    }

    #[test]
    fn says_where_a_text_ends_within_one() {
        for text in [
            "%",
            "%4",
            "%25",
            "\\",
            "\\u",
            "\\u00",
            "\\ud83d",
            "\\ud83d\\u",
            "&",
            "&#",
            "&#x2",
            "&quo",
        ] {
            assert!(read(text.as_bytes()).cut, "{text}");
        }
        for text in ["%4x", "%41", "\\u0041", "\\ux", "\\a", "\\\\\"", "\\ud83da"] {
            assert!(!read(text.as_bytes()).cut, "{text}");
        }
    }
}
