//! What may a hook say to the person and the model behind a denied call? A short plain text.

use std::fmt;

use serde::Serialize;

/// Room for a paragraph; more would push the call itself out of a model's sight.
const MAX_BYTES: usize = 4 << 10;

/// Why a call was denied: at most 4 KiB, without characters that move a cursor, begin a line of
/// a log, or turn the direction of what follows.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Reason(String);

impl Reason {
    /// Escapes and cuts a text.
    pub fn new(text: &str) -> Reason {
        let mut shown = String::new();
        for character in text.chars() {
            let escaped = if is_plain(character) {
                character.to_string()
            } else {
                character.escape_default().to_string()
            };
            if shown.len() + escaped.len() > MAX_BYTES {
                break;
            }
            shown.push_str(&escaped);
        }
        Reason(shown)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Neither a control (C0, DEL, C1) nor a line, paragraph or direction mark (UAX 9).
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped() {
        for (text, shown) in [
            ("private folder: try /public/x", "private folder: try /public/x"),
            ("a\n2026 INFO allowed", r"a\n2026 INFO allowed"),
            ("\u{1b}[2Jx\u{9b}1m\0", r"\u{1b}[2Jx\u{9b}1m\u{0}"),
            ("abc\u{202e}def", r"abc\u{202e}def"),
            ("é 猫 <system>", "é 猫 <system>"),
        ] {
            assert_eq!(Reason::new(text).as_str(), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(Reason::new(&"x".repeat(1 << 20)).as_str().len(), MAX_BYTES);
        let cut = Reason::new(&"猫".repeat(1 << 20));
        assert!(cut.as_str().len() <= MAX_BYTES && cut.as_str().ends_with('猫'));
    }
}
