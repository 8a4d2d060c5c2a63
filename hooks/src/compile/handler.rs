//! Is this handler right: a command, or a URL to call?

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use outgate_policy::{
    Document, Object, Place, Report, did_you_mean, injectable_name, injectable_value, quoted,
};

use super::group::Findings;
use super::on_failure;
use crate::hook_set::{Action, Handler, OnFailure};
use crate::url::HookUrl;

const TYPES: [&str; 2] = ["command", "http"];
const COMMAND_FIELDS: [&str; 4] = ["type", "command", "timeout", "on_failure"];
const HTTP_FIELDS: [&str; 5] = ["type", "url", "headers", "timeout", "on_failure"];

const DEFAULT_TIMEOUT: u64 = 30;
const MAX_TIMEOUT: u64 = 600;

/// Reads it. `at` is its place within the group, `failing` what the group says of failures.
pub(super) fn read(
    handler: &Document,
    at: String,
    place: &Place<'_>,
    failing: OnFailure,
    findings: &mut Findings,
) -> Option<Handler> {
    let object = Object::read(handler, place, &mut findings.disabling)?;
    let timeout = read_timeout(&object, findings);
    let on_failure = on_failure(&object, &mut findings.disabling).unwrap_or(failing);
    let action = match object.required("type", &mut findings.disabling)? {
        "command" => {
            object.warn_of_unknown(&COMMAND_FIELDS, &mut findings.other);
            read_command(&object, &mut findings.disabling)
        }
        "http" => {
            object.warn_of_unknown(&HTTP_FIELDS, &mut findings.other);
            read_http(&object, findings)
        }
        other => {
            let hint = did_you_mean(other, &TYPES)
                .map_or_else(String::new, |known| format!(", did you mean {known}?"));
            let message = format!("{}: write command or http{hint}", quoted(other));
            findings.disabling.problem(&place.key("type"), message);
            None
        }
    };
    Some(Handler { place: at, action: action?, timeout, on_failure })
}

/// Whole seconds.
fn read_timeout(object: &Object<'_>, findings: &mut Findings) -> Duration {
    let place = object.place.key("timeout");
    let mut seconds = DEFAULT_TIMEOUT;
    match object.get("timeout") {
        None => {}
        Some(Document::Number(number)) => match whole_seconds(number) {
            Some(read) if read > MAX_TIMEOUT => {
                let message = format!("{number} counts as {MAX_TIMEOUT}; the unit is seconds");
                findings.other.warning(&place, message);
                seconds = MAX_TIMEOUT;
            }
            Some(read) => seconds = read,
            None => {
                let message = format!("{number}: write whole seconds, 1 to {MAX_TIMEOUT}");
                findings.disabling.problem(&place, message);
            }
        },
        Some(other) => findings.disabling.wrong_kind(&place, "a number of seconds", other),
    }
    Duration::from_secs(seconds)
}

/// At least one; a number too large for its type is only large.
fn whole_seconds(number: &serde_json::Number) -> Option<u64> {
    match (number.as_u64(), number.as_f64()) {
        (Some(seconds), _) => (seconds >= 1).then_some(seconds),
        // Exact up to 2^53, and every larger float is whole.
        (None, Some(float)) if float >= 1.0 && float.fract() == 0.0 => Some(float as u64),
        _ => None,
    }
}

fn read_command(object: &Object<'_>, report: &mut Report) -> Option<Action> {
    let command = object.required("command", report)?;
    if command.contains('\0') {
        report.problem(&object.place.key("command"), "a command has no NUL");
        return None;
    }
    Some(Action::Command(Arc::from(command)))
}

fn read_http(object: &Object<'_>, findings: &mut Findings) -> Option<Action> {
    let headers = read_headers(object, findings);
    let text = object.required("url", &mut findings.disabling)?;
    let url = HookUrl::parse(text)
        .map_err(|error| findings.other.problem(&object.place.key("url"), error.to_string()))
        .ok();
    Some(Action::Http { url, headers })
}

fn read_headers(object: &Object<'_>, findings: &mut Findings) -> Vec<(HeaderName, HeaderValue)> {
    let place = object.place.key("headers");
    let Some(document) = object.get("headers") else {
        return Vec::new();
    };
    let Some(fields) = Object::read(document, &place, &mut findings.disabling) else {
        return Vec::new();
    };
    let mut headers: Vec<(HeaderName, HeaderValue)> = Vec::new();
    for (name, _) in fields.iter() {
        let place = place.key(name);
        let Some(value) = fields.string(name, &mut findings.disabling) else {
            continue;
        };
        match injectable_name(name).and_then(|name| Ok((name, injectable_value(value)?))) {
            Ok((name, _)) if headers.iter().any(|(known, _)| *known == name) => {
                findings.disabling.problem(&place, "the header occurs twice; names have no case");
            }
            Ok((name, value)) => {
                refuse_secret(&name, &place, findings);
                headers.push((name, value));
            }
            Err(error) => findings.disabling.problem(&place, error.to_string()),
        }
    }
    headers
}

/// The file lies in the sandbox, and so does every secret in it.
fn refuse_secret(name: &HeaderName, place: &Place<'_>, findings: &mut Findings) {
    if matches!(name.as_str(), "authorization" | "x-api-key" | "x-goog-api-key" | "cookie") {
        let message = "the sandbox can read this; let the environment put it on the wire, with a \
                       transform or a credential for the URL's domain";
        findings.other.problem(place, message);
    }
}
