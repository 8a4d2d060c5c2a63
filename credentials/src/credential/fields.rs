//! How are the fields of credentials read, of which any may hold a secret? Without quoting one.

use std::path::PathBuf;

use outgate_policy::{Document, Object, Place, Report};

use crate::secret::{self, Fit, Secret};
use crate::source::{Source, Value};

/// Client ids, user names, parameter names: what is said beside a secret.
pub(super) const MAX_WORD: usize = 1024;
const MAX_ITEMS: usize = 128;

/// A list of strings, each turned into something. No message quotes one: arguments of commands, for
/// one, may be secrets.
pub(super) fn strings<T>(
    object: &Object<'_>,
    field: &str,
    report: &mut Report,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let list = object.place.key(field);
    let mut parsed = Vec::new();
    let items = object.list(field, report);
    if items.len() > MAX_ITEMS {
        report.problem(&list, format!("more than {MAX_ITEMS} of them"));
        return parsed;
    }
    for (index, item) in items.iter().enumerate() {
        let place = list.index(index);
        match item {
            Document::String(text) => match parse(text) {
                Ok(item) => parsed.push(item),
                Err(message) => report.problem(&place, message),
            },
            other => report.wrong_kind(&place, "a string", other),
        }
    }
    parsed
}

/// A text that is no secret, but stands beside one: it isn't quoted either.
pub(super) fn word(object: &Object<'_>, field: &str, report: &mut Report) -> Option<String> {
    let text = object.required(field, report)?;
    let checked = match text.len() <= MAX_WORD {
        true => secret::check(text, Fit::Text).map_err(|error| error.to_string()),
        false => Err(format!("longer than {MAX_WORD} bytes")),
    };
    checked
        .map(|()| text.to_owned())
        .map_err(|message| report.problem(&object.place.key(field), message))
        .ok()
}

pub(super) fn value(
    object: &Object<'_>,
    field: &str,
    fit: Fit,
    report: &mut Report,
) -> Option<Value> {
    let place = object.place.key(field);
    match object.get(field) {
        Some(document @ Document::Object(_)) => source(document, &place, report).map(Value::From),
        Some(Document::String(text)) => Secret::parse(text.as_str(), fit)
            .map(Value::Given)
            .map_err(|error| report.problem(&place, error.to_string()))
            .ok(),
        Some(other) => {
            report.wrong_kind(&place, "a string", other);
            None
        }
        None => {
            report.problem(&place, "required");
            None
        }
    }
}

/// Where a value may be read from instead of being there itself.
pub(super) const SOURCES: [&str; 3] = ["from_file", "from_env", "from_command"];

fn source(document: &Document, place: &Place<'_>, report: &mut Report) -> Option<Source> {
    let object = Object::read(document, place, report)?;
    object.refuse_unknown(&SOURCES, report);
    let mut named = SOURCES.iter().filter(|name| object.get(name).is_some());
    let (Some(one), None) = (named.next(), named.next()) else {
        report.problem(place, "write one of from_file, from_env and from_command");
        return None;
    };
    let place = place.key(one);
    match *one {
        "from_file" => {
            let path = PathBuf::from(object.required(one, report)?);
            if !path.is_absolute() {
                report.problem(&place, "not an absolute path");
            }
            Some(Source::File(path))
        }
        "from_env" => {
            let name = object.required(one, report)?;
            if name.contains(['=', '\0']) {
                report.problem(&place, "the name of a variable has no `=` and no NUL");
            }
            Some(Source::Variable(name.to_owned()))
        }
        _ => {
            let words = strings(&object, one, report, |word| match word.contains('\0') {
                true => Err("an argument has no NUL".to_owned()),
                false => Ok(word.to_owned()),
            });
            if words.first().is_some_and(String::is_empty) {
                report.problem(&place, "the program is missing");
            }
            (!words.is_empty()).then_some(Source::Command(words))
        }
    }
}
