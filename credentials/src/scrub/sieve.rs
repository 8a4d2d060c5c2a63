//! Where in a text could a value begin?
//!
//! Most of a text is passed over by looking at one pair of bytes in five: every form of a value is
//! at least [`WINDOW`] bytes long, and only so many pairs occur in the first of them, however they
//! are escaped.

use smallvec::SmallVec;

use super::SHORTEST;
use super::escape::{self, Readings};
use super::needle::Needle;
use super::reference;

/// The bytes of a form that are known here. No value is shorter, and escapes make none shorter.
const WINDOW: usize = 6;
const _: () = assert!(SHORTEST >= WINDOW);

/// What line ends within base64 end with, escaped or not.
const LINE_END_TAILS: [u8; 6] = *b"\n\rnrad";

/// Answers for all the forms that are looked for at once.
pub(super) struct Sieve {
    /// Pairs at the start of a form.
    first: Pairs,
    /// Pairs within its window.
    any: Pairs,
    /// Bytes at its start.
    starts: [bool; 256],
    /// By the byte that its start stands for, which forms that may be.
    by_start: Box<[Which; 256]>,
}

/// Some of the forms, one bit each; those beyond the last bit share it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Which(u64);

/// A set of pairs of bytes, one bit each.
struct Pairs(Box<[u64]>);

impl Sieve {
    pub(super) fn new(needles: &[Needle]) -> Sieve {
        let mut sieve = Sieve {
            first: Pairs::none(),
            any: Pairs::none(),
            starts: [false; 256],
            by_start: Box::new([Which::default(); 256]),
        };
        for (index, needle) in needles.iter().enumerate() {
            sieve.add(needle);
            for byte in needle.choices(0) {
                sieve.by_start[usize::from(byte)].add(index);
            }
        }
        sieve
    }

    /// Which forms may begin at the start of `text`; `None` where it ends before that is clear.
    pub(super) fn which(&self, text: &[u8]) -> Option<Which> {
        let of = |byte: u8| self.by_start[usize::from(byte)];
        match text.first() {
            Some(byte) if escape::begins(*byte) => {
                let Readings { all, cut } = escape::read(text);
                let starts = all.iter().filter_map(|reading| reading.bytes().first());
                (!cut).then(|| starts.fold(Which::default(), |which, byte| which.or(of(*byte))))
            }
            Some(b'+') => Some(of(b'+').or(of(b' '))),
            Some(byte) => Some(of(*byte)),
            None => None,
        }
    }

    /// The first place at or after `from` where a form may begin.
    #[inline]
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(window) = text.get(at..at + WINDOW) {
            let &[a, b, c, d, e, f] = window else { break };
            if self.any.has(e, f) {
                let pairs = [(a, b), (b, c), (c, d), (d, e), (e, f)];
                if let Some(step) =
                    pairs.iter().position(|(one, other)| self.first.has(*one, *other))
                {
                    return Some(at + step);
                }
            }
            at += WINDOW - 1;
        }
        (at..text.len()).find(|at| match text.get(at + 1) {
            Some(next) => self.first.has(text[*at], *next),
            None => self.starts[usize::from(text[*at])],
        })
    }

    fn add(&mut self, needle: &Needle) {
        let heads: SmallVec<[Heads; 2 * WINDOW]> =
            (0..2 * WINDOW).map(|unit| heads(needle, unit)).collect();
        let mut first = true;
        for (unit, here) in heads.iter().enumerate().take(WINDOW) {
            spell(needle, unit, |bytes, units| {
                let next = heads.get(unit + units).map_or(&[][..], |heads| heads);
                pairs(bytes, next, |pair| self.any.insert(pair));
                if first {
                    first_pairs(bytes, next, |pair| self.first.insert(pair));
                }
            });
            first = false;
            if needle.is_base64() && unit > 0 {
                let behind =
                    LINE_END_TAILS.iter().flat_map(|tail| here.iter().map(|h| (*tail, *h)));
                behind.for_each(|pair| self.any.insert(pair));
            }
        }
        if needle.is_base64() {
            for line_end in [&b"\r\n"[..], b"\\\\r\\\\n"] {
                pairs(line_end, &[], |pair| self.any.insert(pair));
            }
        }
        for byte in heads[0].iter().copied().flat_map(cases) {
            self.starts[usize::from(byte)] = true;
        }
    }
}

impl Which {
    const LAST: usize = 63;
    pub(super) const ALL: Which = Which(u64::MAX);

    fn add(&mut self, index: usize) {
        self.0 |= 1 << index.min(Which::LAST);
    }

    fn or(self, other: Which) -> Which {
        Which(self.0 | other.0)
    }

    pub(super) fn has(self, index: usize) -> bool {
        self.0 >> index.min(Which::LAST) & 1 == 1
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Pairs {
    fn none() -> Pairs {
        Pairs(vec![0; 1 << 10].into_boxed_slice())
    }

    fn insert(&mut self, (one, other): (u8, u8)) {
        for one in cases(one) {
            for other in cases(other) {
                let index = usize::from(one) << 8 | usize::from(other);
                self.0[index / 64] |= 1 << (index % 64);
            }
        }
    }

    #[inline]
    fn has(&self, one: u8, other: u8) -> bool {
        let index = usize::from(one) << 8 | usize::from(other);
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

/// Digits of hex count in both cases; that other letters of their range do too costs little.
fn cases(byte: u8) -> impl Iterator<Item = u8> + Clone {
    let swapped = match byte {
        b'a'..=b'f' => Some(byte.to_ascii_uppercase()),
        b'A'..=b'F' => Some(byte.to_ascii_lowercase()),
        _ => None,
    };
    std::iter::once(byte).chain(swapped)
}

/// The bytes that what stands at a place of a form may begin with.
type Heads = SmallVec<[u8; 8]>;

fn heads(needle: &Needle, unit: usize) -> Heads {
    let mut heads = Heads::new();
    spell(needle, unit, |bytes, _| {
        for head in [bytes[0], b'%'] {
            if !heads.contains(&head) {
                heads.push(head);
            }
        }
    });
    if needle.is_base64() && unit > 0 && !heads.is_empty() {
        heads.extend(*b"\n\r\\");
    }
    heads
}

/// Every pair of bytes in a spelling, and over its end to one of `next`.
fn pairs(bytes: &[u8], next: &[u8], mut tell: impl FnMut((u8, u8))) {
    for (at, byte) in bytes.iter().enumerate() {
        let [high, low] = digits(*byte);
        [(b'%', high), (high, low), (b'5', high)].into_iter().for_each(&mut tell);
        let behind = bytes.get(at + 1).map(|byte| [*byte, b'%']);
        for head in behind.as_ref().map_or(next, |behind| behind) {
            tell((*byte, *head));
            tell((low, *head));
        }
    }
    // Of more layers than one.
    [(b'%', b'2'), (b'2', b'5'), (b'5', b'2')].into_iter().for_each(tell);
}

/// The pairs that a spelling may begin with.
fn first_pairs(bytes: &[u8], next: &[u8], mut tell: impl FnMut((u8, u8))) {
    let first = bytes[0];
    let [high, _] = digits(first);
    [(b'%', high), (b'%', b'2')].into_iter().for_each(&mut tell);
    let behind = bytes.get(1).map(|second| [*second, b'%']);
    behind.as_ref().map_or(next, |behind| behind).iter().for_each(|head| tell((first, *head)));
}

/// Tells `tell` every way to write what stands at `unit`, each byte of which may be
/// percent-encoded, and the units that it is: what `escape` reads, in the other direction.
fn spell(needle: &Needle, unit: usize, mut tell: impl FnMut(&[u8], usize)) {
    if unit >= needle.length() {
        return;
    }
    for byte in needle.choices(unit) {
        tell(&[byte], 1);
        match byte {
            b' ' => tell(b"+", 1),
            b'\t' => layers(b"\\t", 1, &mut tell),
            _ if byte.is_ascii_punctuation() => {
                layers(&[b'\\', byte], 1, &mut tell);
                references(byte, &mut tell);
            }
            _ => {}
        }
        // Nothing writes the letters of base64 so.
        if byte.is_ascii() && !(needle.is_base64() && byte.is_ascii_alphanumeric()) {
            layers(&escaped(u16::from(byte)), 1, &mut tell);
        }
    }
    let character = needle.rest(unit).and_then(|rest| rest.chars().next());
    if let Some(character) = character.filter(|character| !character.is_ascii()) {
        let mut units = [0; 2];
        let text: SmallVec<[u8; 12]> =
            character.encode_utf16(&mut units).iter().copied().flat_map(escaped).collect();
        layers(&text, character.len_utf8(), &mut tell);
    }
}

/// A character as references of HTML, by number and by name; zeros may stand before the number.
fn references(byte: u8, tell: &mut impl FnMut(&[u8], usize)) {
    let [high, low] = digits(byte);
    let [tens, ones] = [byte / 10 % 10, byte % 10].map(|digit| b'0' + digit);
    let hundred = b'0' + byte / 100;
    for number in
        [&[b'x', high, low, b';'][..], b"x0", &[hundred, tens, ones, b';'], &[tens, ones, b';']]
    {
        let text: SmallVec<[u8; 8]> = b"&#".iter().chain(number).copied().collect();
        tell(&text, 1);
    }
    // What stands between zeros and the digits.
    for within in
        [&[b'x', b'0', high][..], &[b'0', b'0', high], &[b'0', tens], b"X0", &[b'X', high], b"#X"]
    {
        tell(within, 1);
    }
    for name in reference::names_of(byte) {
        let text: SmallVec<[u8; 8]> = b"&".iter().chain(name).copied().collect();
        tell(&text, 1);
    }
}

/// `text`, and where it is an escape the same in one more layer of JSON.
fn layers(text: &[u8], units: usize, tell: &mut impl FnMut(&[u8], usize)) {
    tell(text, units);
    if let [b'\\', ..] = text {
        let deeper: SmallVec<[u8; 16]> = [b'\\'].iter().chain(text).copied().collect();
        tell(&deeper, units);
    }
}

fn escaped(unit: u16) -> [u8; 6] {
    let [high, low] = unit.to_be_bytes();
    let ([a, b], [c, d]) = (digits(high), digits(low));
    [b'\\', b'u', a, b, c, d]
}

fn digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|half| b"0123456789abcdef"[usize::from(half)])
}
