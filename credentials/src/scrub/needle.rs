//! Does a form of a value begin at this place of a text?

use smallvec::{SmallVec, smallvec};
use zeroize::Zeroizing;

use super::escape::{self, Reading};

/// Ways to read one text against one value. Only a value full of escapes leads to many, and a text
/// made for it; what comes near that is masked unread.
const MOST_WAYS: usize = 1024;

/// One form of one value, as a text would spell it before it is escaped.
pub(super) struct Needle {
    units: Units,
    /// Which of the places it was put in.
    pub(super) place: usize,
}

enum Units {
    Text(Zeroizing<Vec<u8>>),
    /// For each digit, which of the 64 it may be: those at the ends hold bits of what stands
    /// beside the value.
    Base64(Zeroizing<Vec<u64>>),
}

/// What was seen at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Where the value ends.
    pub(super) end: Option<usize>,
    /// The text ends before it is clear.
    pub(super) cut: bool,
}

/// How far a text was compared.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    at: usize,
    unit: usize,
    line_end: LineEnd,
}

/// Base64 may be broken into lines (RFC 2045 §6.8). An empty line ends it: no line of a stream of
/// events is held back for what could follow one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    No,
    Return,
    Over,
}

impl Needle {
    pub(super) fn text(value: &[u8], place: usize) -> Needle {
        Needle { units: Units::Text(Zeroizing::new(value.to_vec())), place }
    }

    /// `value` in base64, where `before` other bytes, modulo three, stand in front of it.
    pub(super) fn base64(value: &[u8], before: usize, place: usize) -> Needle {
        let (from, to) = (8 * before, 8 * (before + value.len()));
        let bit = |at: usize| {
            let byte = value[at / 8 - before];
            u64::from(byte >> (7 - at % 8) & 1)
        };
        let digit = |index: usize| {
            let bits = 6 * index..6 * index + 6;
            if from <= bits.start && bits.end <= to {
                return 1 << bits.fold(0, |digit, at| digit << 1 | bit(at));
            }
            bits.fold(1, |digits, at| match (from..to).contains(&at) {
                true => spread(digits) << bit(at),
                false => spread(digits) | spread(digits) << 1,
            })
        };
        let digits = (from / 6..to.div_ceil(6)).map(digit).collect();
        Needle { units: Units::Base64(Zeroizing::new(digits)), place }
    }

    pub(super) fn length(&self) -> usize {
        match &self.units {
            Units::Text(bytes) => bytes.len(),
            Units::Base64(digits) => digits.len(),
        }
    }

    pub(super) fn is_base64(&self) -> bool {
        matches!(self.units, Units::Base64(_))
    }

    /// The rest of a text from `unit` on.
    pub(super) fn rest(&self, unit: usize) -> Option<&str> {
        match &self.units {
            Units::Text(bytes) => std::str::from_utf8(&bytes[unit..]).ok(),
            Units::Base64(_) => None,
        }
    }

    /// Whether `byte` may stand at `unit`.
    pub(super) fn takes(&self, unit: usize, byte: u8) -> bool {
        match &self.units {
            Units::Text(bytes) => bytes.get(unit) == Some(&byte),
            Units::Base64(digits) => digits
                .get(unit)
                .is_some_and(|digits| sextet(byte).is_some_and(|one| digits >> one & 1 == 1)),
        }
    }

    /// The bytes that may stand at `unit`.
    pub(super) fn choices(&self, unit: usize) -> SmallVec<[u8; 4]> {
        match &self.units {
            Units::Text(bytes) => bytes.get(unit).copied().into_iter().collect(),
            Units::Base64(digits) => {
                let digits = digits.get(unit).copied().unwrap_or_default();
                let chosen = (0..64_u8).filter(|one| digits >> one & 1 == 1);
                chosen.flat_map(spelled).collect()
            }
        }
    }

    /// Compares `text` from `at` on, in every way that it can be read.
    pub(super) fn look(&self, text: &[u8], at: usize) -> Seen {
        let mut seen = Seen::default();
        let mut ways: SmallVec<[Way; 4]> = smallvec![Way { at, unit: 0, line_end: LineEnd::No }];
        let mut known: SmallVec<[Way; 4]> = SmallVec::new();
        while let Some(way) = ways.pop() {
            for next in self.follow(text, way, &mut seen) {
                if !known.contains(&next) {
                    known.push(next);
                    ways.push(next);
                }
            }
            if known.len() > MOST_WAYS {
                return Seen { end: Some(text.len()), cut: false };
            }
        }
        seen
    }

    /// Goes on to where there is more than one way, or none.
    fn follow(&self, text: &[u8], mut way: Way, seen: &mut Seen) -> SmallVec<[Way; 6]> {
        loop {
            if way.unit == self.length() {
                seen.end = seen.end.max(Some(way.at));
                return SmallVec::new();
            }
            let Some(&byte) = text.get(way.at) else {
                seen.cut = true;
                return SmallVec::new();
            };
            if escape::begins(byte) {
                let readings = escape::read(&text[way.at..]);
                seen.cut |= readings.cut;
                let mut next: SmallVec<[Way; 6]> =
                    readings.all.iter().filter_map(|one| self.read(way, one)).collect();
                match next.len() {
                    1 => way = next.remove(0),
                    _ => return next,
                }
            } else if self.takes(way.unit, byte) || byte == b'+' && self.takes(way.unit, b' ') {
                way = Way { at: way.at + 1, unit: way.unit + 1, line_end: LineEnd::No };
            } else if let Some(line_end) = self.line_end(way, byte) {
                way = Way { at: way.at + 1, line_end, ..way };
            } else {
                return SmallVec::new();
            }
        }
    }

    fn read(&self, way: Way, reading: &Reading) -> Option<Way> {
        let (at, bytes) = (way.at + reading.length, reading.bytes());
        if let Some(line_end) = self.line_end(way, bytes[0]) {
            return Some(Way { at, line_end, ..way });
        }
        let fits = bytes.iter().enumerate().all(|(step, byte)| self.takes(way.unit + step, *byte));
        fits.then(|| Way { at, unit: way.unit + bytes.len(), line_end: LineEnd::No })
    }

    fn line_end(&self, way: Way, byte: u8) -> Option<LineEnd> {
        if !self.is_base64() || way.unit == 0 {
            return None;
        }
        match (way.line_end, byte) {
            (LineEnd::No, b'\r') => Some(LineEnd::Return),
            (LineEnd::No | LineEnd::Return, b'\n') => Some(LineEnd::Over),
            _ => None,
        }
    }
}

/// The same digits, with room for one more bit behind each.
fn spread(digits: u64) -> u64 {
    (0..32).filter(|one| digits >> one & 1 == 1).fold(0, |spread, one| spread | 1 << (2 * one))
}

/// The digit of base64 that a byte is, in either alphabet (RFC 4648 §4, §5).
pub(super) fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// The other way round.
fn spelled(sextet: u8) -> SmallVec<[u8; 2]> {
    match sextet {
        0..26 => smallvec![b'A' + sextet],
        26..52 => smallvec![b'a' + sextet - 26],
        52..62 => smallvec![b'0' + sextet - 52],
        62 => SmallVec::from_slice(b"+-"),
        _ => SmallVec::from_slice(b"/_"),
    }
}
