//! Does a value pass in any form, however the stream is cut, and does anything else change?

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::scrub::{Scrubber, Sought};

/// One plain, one that every encoding writes in its own way.
const VALUES: [&str; 2] = ["sk-live-0123456789abcdef", "p\"w/x\\y+z%41 &q="];
/// No form of a value goes on with this.
const FENCE: u8 = b'\n';

/// Numbers that only look like chance.
pub struct Dice(u64);

impl Dice {
    /// The same throws for the same seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// From 0 to `sides` - 1.
    pub fn throw(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or_default()
    }
}

/// `value` with each character in a form of its own.
pub fn mixed(value: &str, dice: &mut Dice) -> String {
    let mut text = String::new();
    for character in value.chars() {
        let bytes = character.to_string().into_bytes();
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        let form: String = match dice.throw(9) {
            0 => bytes.iter().map(|byte| format!("%{byte:02x}")).collect(),
            1 => bytes.iter().map(|byte| format!("%{byte:02X}")).collect(),
            2 => bytes.iter().map(|byte| format!("%25{byte:02X}")).collect(),
            3 => units.iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            4 => units.iter().map(|unit| format!("\\\\u{unit:04X}")).collect(),
            5 if character == ' ' => "+".to_owned(),
            7 if character.is_ascii_punctuation() => format!("&#x{:02x};", bytes[0]),
            6 if character.is_ascii_punctuation() => format!("\\{character}"),
            _ => character.to_string(),
        };
        text.push_str(&form);
    }
    text
}

/// Scrubs a stream made of `input`, in which the bytes 1 to 8 stand for a value in some form, cut
/// into pieces that the input chooses too.
pub fn scrubbed(input: &[u8]) {
    let mut sought = Sought::default();
    for (name, value) in [("x-a", VALUES[0]), ("x-b", VALUES[1])] {
        let value = HeaderValue::from_str(value).expect("a value");
        sought.header(&HeaderName::from_static(name), &value);
    }
    let scrubber = Scrubber::new(&sought);
    let seed =
        input.iter().fold(1_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let mut dice = Dice::new(seed);
    let (text, values) = text_of(input, &mut dice);
    let due = pieces(scrubber.again(), &text, usize::MAX, &mut dice);
    assert_eq!(due.len(), text.len());
    for value in values {
        let passed = due[value.clone()].iter().any(|byte| *byte != b'*');
        assert!(!passed, "passed: {}", text[value].escape_ascii());
    }
    for most in [1, 2, 7, 64] {
        assert_eq!(pieces(scrubber.again(), &text, most, &mut dice), due, "in pieces up to {most}");
    }
    let clean: Vec<u8> = text.iter().map(|byte| byte & 0x1f).collect();
    assert_eq!(pieces(scrubber.again(), &clean, 9, &mut dice), clean);
}

fn pieces(mut scrubber: Scrubber, text: &[u8], most: usize, dice: &mut Dice) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at((1 + dice.throw(most)).min(rest.len()));
        out.extend_from_slice(&scrubber.piece(Bytes::copy_from_slice(piece)));
        rest = behind;
    }
    out.extend_from_slice(&scrubber.rest());
    out
}

/// The text, and where in it every byte belongs to a value.
fn text_of(input: &[u8], dice: &mut Dice) -> (Vec<u8>, Vec<std::ops::Range<usize>>) {
    let (mut text, mut values) = (Vec::new(), Vec::new());
    for byte in input {
        let value = VALUES[usize::from(byte & 1)];
        let form = match byte {
            1..=4 => mixed(value, dice),
            5 | 6 => STANDARD_NO_PAD.encode(value),
            7 | 8 => URL_SAFE_NO_PAD.encode(value),
            other => {
                text.push(*other);
                continue;
            }
        };
        text.push(FENCE);
        let from = text.len();
        text.extend_from_slice(form.as_bytes());
        values.push(from..text.len());
        text.push(FENCE);
    }
    (text, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_of_any_input_holds_of_these() {
        let mut dice = Dice::new(3);
        for _ in 0..50 {
            let length = 1 + dice.throw(60);
            let input: Vec<u8> = (0..length).map(|_| dice.throw(256) as u8 & 0x7f).collect();
            scrubbed(&input);
        }
        for input in [&b""[..], b"\x01", b"%\x01%", b"\\\x02", b"\x05\x06\x07\x08", b"sk-\x03live"]
        {
            scrubbed(input);
        }
    }
}
