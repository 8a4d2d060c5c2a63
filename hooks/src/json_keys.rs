//! Does any object of a JSON text have a key twice? Asked of a text whose grammar was checked.
//!
//! The trees of `outgate_policy` answer this too, but hold the whole text as a tree, 128 deep at
//! most. Here the text may be as deep as it likes and costs at most a few words for each open key.

use std::borrow::Cow;

/// The keys of an object can be read in two ways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepeatedKey {
    /// One is there twice.
    #[error("the key {0} occurs twice in one object")]
    Twice(String),
    /// Half a surrogate pair: one reader replaces it, another keeps it, so that it may or may not
    /// be equal to another key (RFC 8259, section 8.2).
    #[error("a key has a lone surrogate: two readers read it in two ways")]
    LoneSurrogate,
}

/// The text, if it begins as an object does.
pub(crate) fn object(text: &str) -> Option<&str> {
    let begins = text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{');
    begins.then_some(text)
}

/// Checks every object of `text`, which must be valid JSON.
pub(crate) fn check(text: &str) -> Result<(), RepeatedKey> {
    let mut scan = Scan { text, at: 0, open: Vec::new(), keys: Vec::new() };
    while let Some(byte) = text.as_bytes().get(scan.at) {
        scan.at += 1;
        match byte {
            b'"' => scan.string()?,
            b'{' => scan.open.push(Some(scan.keys.len())),
            b'[' => scan.open.push(None),
            b'}' | b']' => scan.close()?,
            _ => {}
        }
    }
    Ok(())
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The open containers: of an object, where its keys begin.
    open: Vec<Option<usize>>,
    /// The keys of all open objects.
    keys: Vec<Cow<'t, str>>,
}

impl Scan<'_> {
    /// Passes a string, its opening quote passed already; keeps it if it is a key.
    fn string(&mut self) -> Result<(), RepeatedKey> {
        let bytes = self.text.as_bytes();
        let start = self.at - 1;
        let mut escaped = false;
        while let Some(byte) = bytes.get(self.at)
            && *byte != b'"'
        {
            escaped |= *byte == b'\\';
            self.at += if *byte == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let is_key = matches!(self.open.last(), Some(Some(_)))
            && bytes[self.at.min(bytes.len())..].iter().find(|byte| !byte.is_ascii_whitespace())
                == Some(&b':');
        if is_key {
            let quoted = &self.text[start..self.at];
            let bare = || Cow::Borrowed(&quoted[1..quoted.len() - 1]);
            let key = if escaped {
                Cow::Owned(serde_json::from_str(quoted).map_err(|_| RepeatedKey::LoneSurrogate)?)
            } else {
                bare()
            };
            self.keys.push(key);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), RepeatedKey> {
        let Some(Some(first)) = self.open.pop() else {
            return Ok(());
        };
        let keys = &mut self.keys[first..];
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RepeatedKey::Twice(outgate_policy::quoted(&twice[0])));
        }
        self.keys.truncate(first);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_key_that_occurs_twice_at_any_depth() {
        for (text, twice) in [
            (r#"{"a":1,"b":2,"a":3}"#, true),
            (r#"[{"x":{"a":{},"a":[]}}]"#, true),
            (r#"{"a\"":1,"a\u0022":2}"#, true),
            (r#"{"a":"b","b":"a"}"#, false),
            (r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#, false),
            (r#"{"x":["a","a",{"a":"x"}],"a" : "{\"a\":1,\"a\":2}"}"#, false),
            (r#"{"a\\":1,"a\\\\":2,"A":1,"a":2}"#, false),
            ("\"a\"", false),
            ("{}", false),
        ] {
            assert_eq!(check(text).is_err(), twice, "{text}");
        }
    }

    #[test]
    fn refuses_half_a_surrogate_pair_in_a_key_alone() {
        for (text, refused) in [
            (r#"{"\ud800": 1, "\udfff": 2}"#, true),
            (r#"[{"a": {"x\ud83d": 1}}]"#, true),
            (r#"{"\ud83d\ude00": "\ud800"}"#, false),
        ] {
            assert_eq!(check(text) == Err(RepeatedKey::LoneSurrogate), refused, "{text}");
        }
    }

    #[test]
    fn agrees_with_the_tree_that_files_are_read_with() {
        use proptest::prelude::*;
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\"",
            "\"\\u0061\"",
            "\"\\\"\"",
            "1",
            " ",
        ]);
        let text = prop::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat());
        proptest!(ProptestConfig::with_cases(20_000), |(text in text)| {
            if let Ok((_, repeated)) = outgate_policy::Document::read(&text) {
                prop_assert_eq!(check(&text).is_err(), !repeated.is_empty());
            }
        });
    }
}
