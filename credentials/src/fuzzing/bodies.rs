//! Does a body come out the same however it is cut, and mean the same but for its values?

use bytes::Bytes;
use outgate_policy::CredentialId;

use super::filled;
use crate::body::{Found, Search, Watch};
use crate::placeholder::Tag;
use crate::registry::Replacement;
use crate::secret::{Fit, Secret};
use crate::substitute::Stand;
use crate::writing::Writing;

const PREFIX: &str = "og_";
/// The second has line ends, which go only where they are escaped.
const VALUES: [&str; 2] = ["a\"b\\c&d=é<'>/", "one\r\n\ttwo"];

/// Searches a body made of `input`, where the bytes 1 and 2 stand for two placeholders and the first
/// byte says what it is, in pieces of these lengths and whole.
pub fn body(input: &[u8], pieces: &[usize]) {
    let Some((kind, input)) = input.split_first() else { return };
    let all = [Writing::Json, Writing::Form, Writing::Xml, Writing::Plain];
    let writing = all[usize::from(kind % 4)];
    let known = VALUES.map(|value| Replacement {
        stand: Stand {
            tag: Tag::issue().expect("random bytes"),
            prefix: PREFIX.to_owned(),
            value: Secret::parse(value, Fit::Body).expect("a secret"),
        },
        used: (CredentialId::parse("fuzzed").expect("an id"), 1),
    });
    let placeholders = [0, 1].map(|at| known[at].stand.tag.placeholder(PREFIX));
    let sent = filled(input, &placeholders);
    let whole = swapped(&sent, &[], writing, &known);
    assert_eq!(swapped(&sent, pieces, writing, &known), whole, "the cut decides");
    if let (Some(text), Writing::Json) = (&whole, writing)
        && let Ok(before) = serde_json::from_slice::<serde_json::Value>(&sent)
    {
        let after: serde_json::Value = serde_json::from_slice(text).expect("it stays JSON");
        assert_eq!(after, replaced(&before, &placeholders));
    }
    let mut watch = Watch::default();
    let seen = cut(&sent, pieces).any(|piece| watch.sees(piece).is_some());
    assert_eq!(seen, Watch::default().sees(&sent).is_some());
    assert!(whole.is_none_or(|_| seen == (input.contains(&1) || input.contains(&2))));
}

/// The body with values put in; `None` where it is refused.
fn swapped(
    sent: &[u8],
    pieces: &[usize],
    writing: Writing,
    known: &[Replacement],
) -> Option<Vec<u8>> {
    let mut search = Search::new([PREFIX.to_owned()]);
    let mut out = Vec::new();
    for piece in cut(sent, pieces).map(Some).chain([None]) {
        match piece {
            Some(piece) => search.push(Bytes::copy_from_slice(piece)),
            None => search.end(),
        }
        loop {
            match search.step() {
                Found::Text(text) => out.extend_from_slice(&text),
                Found::Placeholder(before, tag) => {
                    let known = known.iter().find(|known| known.is_for(&tag))?;
                    let (before, value) = known.write(&before, writing).ok()?;
                    out.extend_from_slice(&before);
                    out.extend_from_slice(&value);
                }
                Found::Nothing => break,
            }
        }
    }
    Some(out)
}

/// `text` in pieces of these lengths, the rest as one.
fn cut<'a>(mut text: &'a [u8], pieces: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let lengths: Vec<usize> = pieces.iter().map(|length| (*length).max(1)).collect();
    let mut lengths = lengths.into_iter();
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let length = lengths.next().unwrap_or(text.len()).min(text.len());
        let (piece, rest) = text.split_at(length);
        text = rest;
        Some(piece)
    })
}

fn replaced(json: &serde_json::Value, placeholders: &[String; 2]) -> serde_json::Value {
    use serde_json::Value;
    let text = |text: &str| {
        let text = text.replace(&placeholders[0], VALUES[0]);
        text.replace(&placeholders[1], VALUES[1])
    };
    match json {
        Value::String(one) => Value::String(text(one)),
        Value::Array(all) => all.iter().map(|one| replaced(one, placeholders)).collect(),
        Value::Object(all) => {
            all.iter().map(|(key, one)| (text(key), replaced(one, placeholders))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_of_any_body_holds_of_these() {
        for text in [
            &b"\0{\"a\":\"\x01\",\"x\x02\":[\"\x01\x02\",1,null]}"[..],
            b"\x01k=\x01&l=\x02",
            b"\x02<t a='\x02'>\x01</t>",
            b"\x03plain \x01 og_ogph",
            b"\x03plain \x02",
            b"\x00og_og_ogph00\x01",
            b"",
        ] {
            for size in [1, 2, 3, 5, 36, 37, 40] {
                body(text, &vec![size; 400]);
            }
            body(text, &[]);
        }
    }
}
