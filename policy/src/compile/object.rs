//! How are the fields of one JSON object read? By name, each with its place for messages.

use super::report::{Report, did_you_mean, one_of, quoted};
use crate::document::{Document, Place};

/// A JSON object at its place.
#[derive(Copy, Clone)]
pub struct Object<'d> {
    /// Where it stands.
    pub place: &'d Place<'d>,
    fields: &'d [(String, Document)],
}

impl<'d> Object<'d> {
    /// The object that `document` is; anything else is reported.
    pub fn read(
        document: &'d Document,
        place: &'d Place<'d>,
        report: &mut Report,
    ) -> Option<Object<'d>> {
        match document {
            Document::Object(fields) => Some(Object { place, fields }),
            other => {
                report.wrong_kind(place, "an object", other);
                None
            }
        }
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&'d Document> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Every field, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&'d str, &'d Document)> {
        self.fields.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The names of the fields that are not among the `known` ones.
    pub fn unknown(&self, known: &[&str]) -> impl Iterator<Item = &'d str> {
        self.iter().map(|(key, _)| key).filter(|key| !known.contains(key))
    }

    /// Reports every field but the `known` ones.
    pub fn refuse_unknown(&self, known: &[&str], report: &mut Report) {
        for key in self.unknown(known) {
            report.problem(&self.place.key(key), unknown_field(key, known));
        }
    }

    /// Warns of every field but the `known` ones.
    pub fn warn_of_unknown(&self, known: &[&str], report: &mut Report) {
        for key in self.unknown(known) {
            report.warning(&self.place.key(key), unknown_field(key, known));
        }
    }

    /// A string; absent is `None`, anything else is reported.
    pub fn string(&self, key: &str, report: &mut Report) -> Option<&'d str> {
        match self.get(key)? {
            Document::String(text) => Some(text),
            other => {
                report.wrong_kind(&self.place.key(key), "a string", other);
                None
            }
        }
    }

    /// A string that must be there and not be empty.
    pub fn required(&self, key: &str, report: &mut Report) -> Option<&'d str> {
        let place = self.place.key(key);
        match self.get(key) {
            None => report.problem(&place, "required"),
            Some(Document::String(text)) if text.is_empty() => report.problem(&place, "empty"),
            Some(_) => return self.string(key, report),
        }
        None
    }

    /// One of a few words; the first is the default.
    pub fn word(&self, key: &str, words: &[&'static str], report: &mut Report) -> &'static str {
        let default = words.first().copied().unwrap_or_default();
        let Some(text) = self.string(key, report) else {
            return default;
        };
        if let Some(word) = words.iter().find(|word| **word == text) {
            return word;
        }
        let message = format!("{}: write {}", quoted(text), one_of(words));
        report.problem(&self.place.key(key), message);
        default
    }

    /// `true` or `false`; absent is `false`.
    pub fn flag(&self, key: &str, report: &mut Report) -> bool {
        match self.get(key) {
            None => false,
            Some(Document::Bool(value)) => *value,
            Some(other) => {
                report.wrong_kind(&self.place.key(key), "true or false", other);
                false
            }
        }
    }

    /// A list that has something in it; absent is empty. An empty list that was written would be
    /// read as "nothing" by one person and as "everything" by another.
    pub fn list(&self, key: &str, report: &mut Report) -> &'d [Document] {
        let place = self.place.key(key);
        match self.get(key) {
            None => {}
            Some(Document::Array(items)) if items.is_empty() => {
                report.problem(&place, "an empty list; name something or leave the field out");
            }
            Some(Document::Array(items)) => return items,
            Some(other) => report.wrong_kind(&place, "a list", other),
        }
        &[]
    }

    /// A list of strings, each turned into something; what can't be is reported.
    pub fn strings<T, E: std::fmt::Display>(
        &self,
        key: &str,
        report: &mut Report,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let place = self.place.key(key);
        let mut parsed = Vec::new();
        for (index, item) in self.list(key, report).iter().enumerate() {
            let place = place.index(index);
            match item {
                Document::String(text) => match parse(text) {
                    Ok(item) => parsed.push(item),
                    Err(error) => report.problem(&place, format!("{}: {error}", quoted(text))),
                },
                other => report.wrong_kind(&place, "a string", other),
            }
        }
        parsed
    }
}

fn unknown_field(key: &str, known: &[&str]) -> String {
    match did_you_mean(key, known) {
        Some(known) => format!("unknown field, did you mean {known}?"),
        None => "unknown field".to_owned(),
    }
}
