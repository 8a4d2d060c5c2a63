//! Which variables does `env` give the sandbox: plain ones, or from a credential?

use super::object::Object;
use super::report::Report;
use crate::document::{Document, Place};
use crate::id::CredentialId;
use crate::variable::EnvValue;

const FIELDS: [&str; 2] = ["value", "credential"];

/// Reads it, in the order of the file. No message quotes a value: people put secrets there.
pub(super) fn read(
    env: &Document,
    place: &Place<'_>,
    report: &mut Report,
) -> Vec<(String, EnvValue)> {
    let Some(object) = Object::read(env, place, report) else {
        return Vec::new();
    };
    let mut variables = Vec::new();
    for (name, value) in object.iter() {
        let place = place.key(name);
        if name.is_empty() || name.contains(['=', '\0']) {
            report.problem(&place, "the name of a variable has no `=` and no NUL, and isn't empty");
        }
        if let Some(value) = read_value(value, &place, report) {
            variables.push((name.to_owned(), value));
        }
    }
    variables
}

fn read_value(value: &Document, place: &Place<'_>, report: &mut Report) -> Option<EnvValue> {
    let value = match value {
        Document::String(text) => EnvValue::Plain(text.clone()),
        Document::Object(_) => read_object(&Object::read(value, place, report)?, report)?,
        other => {
            let expected = "a string, {\"value\": …} or {\"credential\": …}";
            report.wrong_kind(place, expected, other);
            return None;
        }
    };
    if matches!(&value, EnvValue::Plain(text) if text.contains('\0')) {
        report.problem(place, "a variable's value has no NUL");
    }
    Some(value)
}

fn read_object(object: &Object<'_>, report: &mut Report) -> Option<EnvValue> {
    object.warn_of_unknown(&FIELDS, report);
    if object.get("value").is_some() == object.get("credential").is_some() {
        report.problem(object.place, "write either `value` or `credential`");
    }
    match object.string("credential", report).map(CredentialId::parse) {
        None => {
            let text = object.string("value", report)?;
            Some(EnvValue::Plain(text.to_owned()))
        }
        Some(Ok(id)) => Some(EnvValue::Credential(id)),
        Some(Err(error)) => {
            report.problem(&object.place.key("credential"), error.to_string());
            None
        }
    }
}
