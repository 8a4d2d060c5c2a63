//! Is `sources` right: files to be put into the sandbox?

use super::object::Object;
use super::report::{Report, did_you_mean, quoted};
use crate::document::{Document, Place};
use crate::host::Host;

const TYPES: [&str; 3] = ["inline", "repository", "gcs"];
const INLINE_FIELDS: [&str; 5] = ["type", "target", "content", "encoding", "read_only"];
const FETCHED_FIELDS: [&str; 4] = ["type", "target", "source", "read_only"];

/// Checks it. No message quotes a content.
pub(super) fn check(sources: &Document, place: &Place<'_>, report: &mut Report) {
    let Document::Array(items) = sources else {
        report.wrong_kind(place, "a list of sources", sources);
        return;
    };
    for (index, item) in items.iter().enumerate() {
        check_source(item, &place.index(index), report);
    }
    if !items.is_empty() {
        report.refuse_if_not_supported_yet(place, "sources");
    }
}

fn check_source(source: &Document, place: &Place<'_>, report: &mut Report) {
    let Some(object) = Object::read(source, place, report) else {
        return;
    };
    let Some(kind) = object.required("type", report) else {
        return;
    };
    match kind {
        "inline" => {
            object.warn_of_unknown(&INLINE_FIELDS, report);
            check_inline(&object, report);
        }
        "repository" | "gcs" => {
            object.warn_of_unknown(&FETCHED_FIELDS, report);
            if let Some(source) = object.required("source", report) {
                let checked = if kind == "gcs" { check_bucket(source) } else { check_url(source) };
                if let Err(message) = checked {
                    report.problem(&place.key("source"), message);
                }
            }
        }
        other => {
            let hint = did_you_mean(other, &TYPES)
                .map_or_else(String::new, |known| format!(", did you mean {known}?"));
            let message = format!(
                "{}: not a type of source that outgate can fetch{hint}; there are inline, \
                 repository and gcs",
                quoted(other)
            );
            report.problem(&place.key("type"), message);
        }
    }
    object.flag("read_only", report);
    if let Some(target) = object.required("target", report)
        && let Err(message) = check_target(target)
    {
        report.problem(&place.key("target"), format!("{}: {message}", quoted(target)));
    }
}

fn check_inline(object: &Object<'_>, report: &mut Report) {
    let place = object.place.key("content");
    if object.get("content").is_none() {
        report.problem(&place, "required");
    }
    let content = object.string("content", report);
    if object.get("encoding").is_none() {
        return;
    }
    object.word("encoding", &["base64"], report);
    if content.is_some_and(|content| !is_base64(content)) {
        report.problem(&place, "not base64");
    }
}

/// Targets resolve against the sandbox's `/`; `..` may walk back, but not above it.
fn check_target(target: &str) -> Result<(), &'static str> {
    if target.contains('\0') {
        return Err("a path has no NUL");
    }
    let mut depth = 0usize;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.checked_sub(1).ok_or("leads out of the sandbox's `/`")?,
            _ => depth += 1,
        }
    }
    if depth == 0 { Err("names no file or folder below `/`") } else { Ok(()) }
}

/// The URL may hold a token, so no message quotes it.
fn check_url(source: &str) -> Result<(), String> {
    let rest = source.strip_prefix("https://").ok_or("a repository is named by an https:// URL")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match crate::Authority::from_wire(authority.as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn check_bucket(source: &str) -> Result<(), String> {
    let rest = source.strip_prefix("gs://").ok_or("a bucket is named as gs://bucket/prefix")?;
    let bucket = rest.split('/').next().unwrap_or_default();
    // Names of buckets have the grammar of domains (at most 222 bytes, dots between labels).
    match Host::from_wire(bucket.as_bytes()) {
        Ok(Host::Name(_)) => Ok(()),
        Ok(Host::Address(_)) => Err("an address is no name of a bucket".to_owned()),
        Err(error) => Err(format!("{}: no name of a bucket: {error}", quoted(bucket))),
    }
}

/// Padded, of the standard alphabet; line ends are accepted, as encoders write them.
fn is_base64(text: &str) -> bool {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let digits = bytes.iter().rev().skip_while(|byte| **byte == b'=').count();
    bytes.len().is_multiple_of(4)
        && bytes.len() - digits <= 2
        && bytes[..digits]
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
