//! What does a JSON text say, key by key? A tree that keeps order and refuses a key given twice.
//!
//! `serde_json::Value` keeps the last of two equal keys. Two readers of one file could then see
//! two policies, so a repeated key is a problem here, at any depth.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::problem::Problem;

/// A list of 100,000 entries takes about 10 MiB; inline sources can be larger. Well below what
/// would let a file exhaust the gateway's memory.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// A JSON value. Nesting is bounded by serde_json, at 128.
#[derive(Clone, PartialEq)]
pub enum Document {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as exact as it was written.
    Number(serde_json::Number),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Document>),
    /// An object, its fields in the order of the text.
    Object(Vec<(String, Document)>),
}

/// Where in a document one is; made on the way down, written out only for a problem.
#[derive(Copy, Clone)]
pub enum Place<'a> {
    /// The text as a whole.
    Root,
    /// A field of an object.
    Key(&'a Place<'a>, &'a str),
    /// An item of a list.
    Index(&'a Place<'a>, usize),
}

impl Document {
    /// Reads a whole text. A syntax error is the only problem of its text; repeated keys are all
    /// reported, along with the tree that has the first of each.
    pub fn read(text: &str) -> Result<(Document, Vec<Problem>), Problem> {
        if text.len() > MAX_BYTES {
            let message =
                format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len());
            return Err(Problem::new("", message));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let repeated = RefCell::new(Vec::new());
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let root = Node { place: &Place::Root, repeated: &repeated };
        let document = root
            .deserialize(&mut deserializer)
            .and_then(|document| deserializer.end().map(|()| document))
            .map_err(|error| Problem::new("", format!("not valid JSON: {error}")))?;
        Ok((document, repeated.into_inner()))
    }

    /// What it is, for "expected …, found …". Never the value: it may be a secret.
    pub fn kind(&self) -> &'static str {
        match self {
            Document::Null => "null",
            Document::Bool(_) => "true or false",
            Document::Number(_) => "a number",
            Document::String(_) => "a string",
            Document::Array(_) => "a list",
            Document::Object(_) => "an object",
        }
    }
}

/// Only the kind: a value may be a secret.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Document::Null => serializer.serialize_unit(),
            Document::Bool(value) => serializer.serialize_bool(*value),
            Document::Number(number) => number.serialize(serializer),
            Document::String(text) => serializer.serialize_str(text),
            Document::Array(items) => serializer.collect_seq(items),
            Document::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

/// Refuses a JSON text in which a key occurs twice in one object, at any depth, or that is none:
/// two readers of it could see two things.
pub fn refuse_repeated_keys(text: &str) -> Result<(), Problem> {
    let (_, repeated) = Document::read(text)?;
    repeated.into_iter().next().map_or(Ok(()), Err)
}

impl<'a> Place<'a> {
    /// The field `key` of what stands here.
    pub fn key(&'a self, key: &'a str) -> Place<'a> {
        Place::Key(self, key)
    }

    /// The item `index` of what stands here.
    pub fn index(&'a self, index: usize) -> Place<'a> {
        Place::Index(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Key(Place::Root, key) => write!(f, "{}", key.escape_debug()),
            Place::Key(parent, key) => write!(f, "{parent}.{}", key.escape_debug()),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Reads one value at its place.
#[derive(Copy, Clone)]
struct Node<'a> {
    place: &'a Place<'a>,
    repeated: &'a RefCell<Vec<Problem>>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        let number = serde_json::Number::from_f64(value);
        Ok(number.map_or(Document::Null, Document::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(Document::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = self.place.index(items.len());
            match list.next_element_seed(Node { place: &place, ..self })? {
                Some(item) => items.push(item),
                None => return Ok(Document::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Document, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = object.next_key::<String>()? {
            let place = self.place.key(&key);
            let value = object.next_value_seed(Node { place: &place, ..self })?;
            if fields.has(&key) {
                let message = "the key occurs twice in one object; keep one of them";
                self.repeated.borrow_mut().push(Problem::new(place.to_string(), message));
            } else {
                fields.push(key, value);
            }
        }
        Ok(Document::Object(fields.list))
    }
}

/// The fields of one object so far. Small objects are searched, large ones have an index, so that
/// neither an allowlist of 100,000 small objects nor one object of 100,000 keys is slow.
#[derive(Default)]
struct Fields {
    list: Vec<(String, Document)>,
    index: HashSet<String>,
}

impl Fields {
    const SEARCHED: usize = 16;

    fn has(&self, key: &str) -> bool {
        if self.index.is_empty() {
            self.list.iter().any(|(known, _)| known == key)
        } else {
            self.index.contains(key)
        }
    }

    fn push(&mut self, key: String, value: Document) {
        if self.list.len() == Self::SEARCHED {
            self.index.extend(self.list.iter().map(|(known, _)| known.clone()));
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone());
        }
        self.list.push((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(text: &str) -> Vec<String> {
        let (_, problems) = Document::read(text).expect("valid JSON");
        problems.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn finds_a_key_that_occurs_twice_at_any_depth() {
        let text = r#"{"a": 1, "b": [{"c": {"d": 1, "d": 2}}, {"e": 1, "\u0065": 2}], "a": 3}"#;
        assert_eq!(repeated(text), ["b[0].c.d", "b[1].e", "a"]);
        assert_eq!(repeated(r#"{"a": {"x": 1}, "b": {"x": 1}, "A": 1}"#), Vec::<String>::new());
    }

    #[test]
    fn finds_repeated_keys_in_large_objects() {
        let keys: Vec<_> = (0..40).map(|n| format!("\"k{n}\": 1")).collect();
        let text = format!("{{{}, \"k3\": 1, \"k39\": 2}}", keys.join(","));
        assert_eq!(repeated(&text), ["k3", "k39"]);
    }

    #[test]
    fn refuses_what_is_not_one_json_text() {
        for text in
            ["", "{", "{} {}", "{'a': 1}", "{\"a\": 1,}", "nul", "[1e999]", "{\"a\": \"\n\"}"]
        {
            assert!(Document::read(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(Document::read(&deep).is_err());
        assert!(Document::read("\u{feff}{}").is_ok());
    }

    #[test]
    fn quotes_no_value_of_a_broken_file() {
        let text = r#"{"Authorization": "Bearer hunter2" "x"}"#;
        let problem = Document::read(text).expect_err("a missing comma");
        assert!(!problem.message.contains("hunter2"), "{problem}");
    }

    #[test]
    fn escapes_controls_in_a_path() {
        let (_, problems) =
            Document::read("{\"a\\u001b[2J\": {\"b\": 1, \"b\": 2}}").expect("JSON");
        assert_eq!(problems[0].path, "a\\u{1b}[2J.b");
    }
}
