//! How is a secret's value held, so that it can't be printed and is gone when it is let go?

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time;
use http::HeaderValue;
use zeroize::Zeroizing;

/// The longest value. Servers refuse longer header lines, and it is far above any token.
pub(crate) const MAX_BYTES: usize = 16 << 10;

/// A value that only the wire may see. Clones share one storage, zeroed when the last is dropped.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<String>>);

/// Where a value has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Into a header as it is: visible ASCII and inner blanks.
    Header,
    /// Into something that escapes or encodes it: any text without control characters.
    Text,
    /// Nowhere as it is: a file that is read for what it says.
    File,
    /// Into bodies alone: line ends and tabs too, as keys in PEM have them. They go only where they
    /// are escaped.
    Body,
}

/// Why a text is no usable secret. Quotes nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing there.
    #[error("the value is empty")]
    Empty,
    /// CR, LF, NUL and their like: it could become a second header.
    #[error("the value has a control character in it; is there a line end?")]
    Control,
    /// Beyond ASCII, where receivers differ.
    #[error("the value has a character outside 0x20 to 0x7E, which no header takes")]
    NotAscii,
    /// Receivers take these blanks off, so two values would be one.
    #[error("the value has a blank at an end; remove it")]
    Blank,
    /// More than servers take.
    #[error("the value is longer than {MAX_BYTES} bytes")]
    Long,
    /// Bytes that are no text.
    #[error("the value is not UTF-8")]
    NotText,
}

impl Secret {
    /// Checks a value and takes it.
    pub fn parse(text: impl Into<String>, fit: Fit) -> Result<Secret, SecretError> {
        let text = Zeroizing::new(text.into());
        check(&text, fit)?;
        Ok(Secret(Arc::new(text)))
    }

    /// Takes what a file or a command gave: one line end at its end is not part of the value, as
    /// editors and `echo` put it there.
    pub(crate) fn of_bytes(bytes: Zeroizing<Vec<u8>>, fit: Fit) -> Result<Secret, SecretError> {
        let text = std::str::from_utf8(&bytes).map_err(|_| SecretError::NotText)?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Secret::parse(text.strip_suffix('\r').unwrap_or(text), fit)
    }

    /// Whether `given` is the value, in a time that tells nothing about it.
    pub fn is(&self, given: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(self.reveal().as_bytes(), given).is_ok()
    }

    /// The value, for the wire alone.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A header's value that `Debug` hides and that header compression never indexes.
pub(crate) fn header_value(text: &str) -> Result<HeaderValue, SecretError> {
    check(text, Fit::Header)?;
    let mut value = HeaderValue::from_str(text).map_err(|_| SecretError::NotAscii)?;
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn check(text: &str, fit: Fit) -> Result<(), SecretError> {
    if text.is_empty() {
        return Err(SecretError::Empty);
    }
    if text.len() > MAX_BYTES {
        return Err(SecretError::Long);
    }
    if fit == Fit::File {
        return Ok(());
    }
    let is_line = |letter| fit == Fit::Body && matches!(letter, '\t' | '\n' | '\r');
    if text.chars().any(|letter| letter.is_control() && !is_line(letter)) {
        return Err(SecretError::Control);
    }
    if fit == Fit::Header && !text.is_ascii() {
        return Err(SecretError::NotAscii);
    }
    if text.trim().len() != text.len() {
        return Err(SecretError::Blank);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<SecretError> {
        Secret::parse(text, Fit::Header).err()
    }

    #[test]
    fn refuses_values_that_could_become_another_line() {
        assert_eq!(refused("tok\r\nX-Evil: 1"), Some(SecretError::Control));
        assert_eq!(refused("tok\n"), Some(SecretError::Control));
        assert_eq!(refused("tok\0"), Some(SecretError::Control));
        assert_eq!(refused("a\tb"), Some(SecretError::Control));
        assert_eq!(refused("tök"), Some(SecretError::NotAscii));
        assert_eq!(refused(" tok "), Some(SecretError::Blank));
        assert_eq!(refused(""), Some(SecretError::Empty));
        assert_eq!(refused(&"a".repeat(64 << 10)), Some(SecretError::Long));
        assert_eq!(refused("Tok en~!"), None);
        assert!(Secret::parse("a\"b&c=d/é", Fit::Text).is_ok());
        assert!(Secret::parse("a\u{85}b", Fit::Text).is_err());
        assert!(Secret::parse("a\nb", Fit::Text).is_err());
        assert!(Secret::parse("a\r\n\tb", Fit::Body).is_ok());
        for text in ["a\0b", "a\u{85}b", "a\u{1b}b", "a\n"] {
            assert!(Secret::parse(text, Fit::Body).is_err(), "{text:?}");
        }
    }

    #[test]
    fn takes_one_line_end_off_what_a_file_holds() {
        let read = |bytes: &[u8]| Secret::of_bytes(Zeroizing::new(bytes.to_vec()), Fit::Header);
        assert!(read(b"tok\n").is_ok_and(|secret| secret.is(b"tok")));
        assert!(read(b"tok\r\n").is_ok_and(|secret| secret.is(b"tok")));
        assert!(matches!(read(b"tok\n\n"), Err(SecretError::Control)));
        assert!(matches!(read(b"\n"), Err(SecretError::Empty)));
        assert!(matches!(read(b"\xff\xfe"), Err(SecretError::NotText)));
    }

    #[test]
    fn shows_nothing_of_itself() {
        let secret = Secret::parse("hunter2", Fit::Header).expect("a secret");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        let value = header_value(secret.reveal()).expect("a value");
        assert!(!format!("{value:?}").contains("hunter2"));
        assert!(secret.is(b"hunter2") && !secret.is(b"hunter") && !secret.is(b"hunter3"));
    }
}
