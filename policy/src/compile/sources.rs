//! Which files do `sources` bring into the sandbox?

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::object::Object;
use super::report::{Report, did_you_mean, quoted};
use crate::document::{Document, Place};
use crate::host::Host;
use crate::source::{Source, Target};

const TYPES: [&str; 3] = ["inline", "repository", "gcs"];
const INLINE_FIELDS: [&str; 5] = ["type", "target", "content", "encoding", "read_only"];
const FETCHED_FIELDS: [&str; 4] = ["type", "target", "source", "read_only"];

/// What a source is, before its target is known.
enum Kind {
    Inline(Vec<u8>),
    Repository(String),
    Gcs { bucket: String, prefix: String },
}

/// Reads them, in the order of the file. No message quotes a content.
pub(super) fn read(sources: &Document, place: &Place<'_>, report: &mut Report) -> Vec<Source> {
    let Document::Array(items) = sources else {
        report.wrong_kind(place, "a list of sources", sources);
        return Vec::new();
    };
    let mut taken = BTreeMap::new();
    let mut read = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = place.index(index);
        let Some(source) = read_source(item, &place, report) else {
            continue;
        };
        if let Some(other) = overlapping(source.target(), &taken) {
            let message = format!(
                "{}: sources[{other}] brings this too, or something around it or inside it; give \
                 each source a target of its own",
                quoted(&source.target().to_string())
            );
            report.problem(&place.key("target"), message);
        }
        taken.insert(source.target().components().to_vec(), index);
        read.push(source);
    }
    read
}

/// The earlier source whose target this one is, lies inside of, or holds.
///
/// A folder that two sources write to has whatever the later one left of the earlier one, and a
/// repository can't be cloned into a folder that isn't empty.
fn overlapping(target: &Target, taken: &BTreeMap<Vec<String>, usize>) -> Option<usize> {
    let components = target.components();
    let around = (1..components.len()).find_map(|depth| taken.get(&components[..depth]));
    // In the order of components what lies inside a folder comes right after it.
    let inside = || {
        let (other, index) = taken.range(components.to_vec()..).next()?;
        other.starts_with(components).then_some(index)
    };
    around.or_else(inside).copied()
}

fn read_source(source: &Document, place: &Place<'_>, report: &mut Report) -> Option<Source> {
    let object = Object::read(source, place, report)?;
    let kind = object.required("type", report)?;
    let kind = match kind {
        "inline" => {
            object.warn_of_unknown(&INLINE_FIELDS, report);
            read_inline(&object, report)
        }
        "repository" | "gcs" => {
            object.warn_of_unknown(&FETCHED_FIELDS, report);
            read_fetched(kind, &object, report)
        }
        other => {
            report.problem(&place.key("type"), unknown_type(other));
            None
        }
    };
    let read_only = object.flag("read_only", report);
    let target = read_target(&object, report)?;
    Some(match kind? {
        Kind::Inline(content) => Source::Inline { target, content, read_only },
        Kind::Repository(url) => Source::Repository { target, url, read_only },
        Kind::Gcs { bucket, prefix } => Source::Gcs { target, bucket, prefix, read_only },
    })
}

fn unknown_type(kind: &str) -> String {
    let hint = did_you_mean(kind, &TYPES)
        .map_or_else(String::new, |known| format!(", did you mean {known}?"));
    format!(
        "{}: not a type of source that outgate can fetch{hint}; there are inline, repository and \
         gcs",
        quoted(kind)
    )
}

fn read_target(object: &Object<'_>, report: &mut Report) -> Option<Target> {
    let text = object.required("target", report)?;
    let target = Target::parse(text);
    if let Err(error) = target {
        report.problem(&object.place.key("target"), format!("{}: {error}", quoted(text)));
    }
    target.ok()
}

fn read_inline(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let place = object.place.key("content");
    if object.get("content").is_none() {
        report.problem(&place, "required");
    }
    let content = object.string("content", report);
    if object.get("encoding").is_none() {
        return content.map(|content| Kind::Inline(content.into()));
    }
    object.word("encoding", &["base64"], report);
    let decoded = decode(content?);
    if decoded.is_none() {
        report.problem(&place, "not base64");
    }
    decoded.map(Kind::Inline)
}

fn read_fetched(kind: &str, object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let source = object.required("source", report)?;
    let read = if kind == "gcs" { read_bucket(source) } else { read_url(source) };
    if let Err(message) = &read {
        report.problem(&object.place.key("source"), message);
    }
    read.ok()
}

/// The URL may hold a token, so no message quotes it.
fn read_url(source: &str) -> Result<Kind, String> {
    let rest = source.strip_prefix("https://").ok_or("a repository is named by an https:// URL")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match crate::Authority::from_wire(authority.as_bytes()) {
        Ok(_) if rest.contains(|c: char| c.is_control() || c == ' ') => {
            Err("a URL has no blank and no control character".to_owned())
        }
        Ok(_) => Ok(Kind::Repository(source.to_owned())),
        Err(error) => Err(error.to_string()),
    }
}

fn read_bucket(source: &str) -> Result<Kind, String> {
    let rest = source.strip_prefix("gs://").ok_or("a bucket is named as gs://bucket/prefix")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // Names of buckets have the grammar of domains (at most 222 bytes, dots between labels).
    match Host::from_wire(bucket.as_bytes()) {
        Ok(Host::Name(_)) => Ok(Kind::Gcs { bucket: bucket.to_owned(), prefix: prefix.to_owned() }),
        Ok(Host::Address(_)) => Err("an address is no name of a bucket".to_owned()),
        Err(error) => Err(format!("{}: no name of a bucket: {error}", quoted(bucket))),
    }
}

/// Padded, of the standard alphabet; line ends are accepted, as encoders write them.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    STANDARD.decode(digits).ok()
}
