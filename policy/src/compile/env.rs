//! Is `env` right: variables of the sandbox, plain or from a credential?

use super::object::Object;
use super::report::Report;
use crate::document::{Document, Place};
use crate::id::CredentialId;

const FIELDS: [&str; 2] = ["value", "credential"];

/// Checks it. No message quotes a value: people put secrets there.
pub(super) fn check(env: &Document, place: &Place<'_>, report: &mut Report) {
    let Some(object) = Object::read(env, place, report) else {
        return;
    };
    for (name, value) in object.iter() {
        let place = place.key(name);
        if name.is_empty() || name.contains(['=', '\0']) {
            report.problem(&place, "the name of a variable has no `=` and no NUL, and isn't empty");
        }
        check_value(value, &place, report);
    }
    if !object.is_empty() {
        report.refuse_if_not_supported_yet(place, "env");
    }
}

fn check_value(value: &Document, place: &Place<'_>, report: &mut Report) {
    let text = match value {
        Document::String(text) => Some(text.as_str()),
        Document::Object(_) => {
            let Some(object) = Object::read(value, place, report) else {
                return;
            };
            object.warn_of_unknown(&FIELDS, report);
            let credential = object.string("credential", report).map(CredentialId::parse);
            if let Some(Err(error)) = credential {
                report.problem(&place.key("credential"), error.to_string());
            }
            if object.get("value").is_some() == object.get("credential").is_some() {
                report.problem(place, "write either `value` or `credential`");
            }
            object.string("value", report)
        }
        other => {
            let expected = "a string, {\"value\": …} or {\"credential\": …}";
            report.wrong_kind(place, expected, other);
            None
        }
    };
    if text.is_some_and(|text| text.contains('\0')) {
        report.problem(place, "a variable's value has no NUL");
    }
}
