//! How does a hooks file become groups? Read, checked, every problem said at once; a group that
//! can't be read is disabled alone.

mod group;
mod handler;

use std::sync::Arc;

use outgate_policy::{Document, Object, Place, Problem, Report};

use crate::hook_set::{Group, HookFile, OnFailure};

/// Hooks files are written by hand. Larger ones are refused, here and where they are found.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// What may be in one object: groups of a file, headers of a handler. Every event waits for a file
/// that has changed, and the file may come from the sandbox.
const MAX_FIELDS: usize = 256;

/// What a hooks file says.
#[derive(Debug)]
pub struct Compiled {
    /// The groups.
    pub file: HookFile,
    /// What does not work as it is written: disabled groups, matchers that match nothing, URLs
    /// that can't be called.
    pub problems: Vec<Problem>,
    /// What is worth a look; it works all the same.
    pub warnings: Vec<Problem>,
}

/// A file of which no part is used.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What must be mended.
    pub problems: Vec<Problem>,
    /// What its author wrote about failures, as far as that can be read.
    pub on_failure: OnFailure,
}

/// Compiles a hooks file.
pub fn compile(text: &str) -> Result<Compiled, Unreadable> {
    if text.len() > MAX_FILE_BYTES {
        let message =
            format!("the file has {} bytes; at most {MAX_FILE_BYTES} are read", text.len());
        return Err(Unreadable::new(vec![Problem::new("", message)], OnFailure::Allow));
    }
    let (document, repeated) =
        Document::read(text).map_err(|problem| Unreadable::new(vec![problem], OnFailure::Allow))?;
    let on_failure = readable_on_failure(&document);
    // "The last wins" in one reader and "the first" in another: then nobody knows what is in force.
    if !repeated.is_empty() {
        return Err(Unreadable::new(repeated, on_failure));
    }
    let mut report = Report::default();
    let place = Place::Root;
    if widest(&document) > MAX_FIELDS {
        let message = format!("an object has more than {MAX_FIELDS} fields; use fewer groups");
        return Err(Unreadable::new(vec![Problem::new("", message)], on_failure));
    }
    let Some(object) = Object::read(&document, &place, &mut report) else {
        return Err(Unreadable::new(report.into_findings().0, on_failure));
    };
    let mut read = group::Read::default();
    let groups = object
        .iter()
        .map(|(name, group)| {
            let state = group::read(group, &place.key(name), &mut read, &mut report);
            Arc::new(Group { name: name.to_owned(), state })
        })
        .collect();
    let (problems, warnings) = report.into_findings();
    Ok(Compiled { file: HookFile { groups }, problems, warnings })
}

impl Unreadable {
    fn new(problems: Vec<Problem>, on_failure: OnFailure) -> Unreadable {
        Unreadable { problems, on_failure }
    }
}

/// Whether anything in it says `"on_failure": "deny"`. Of a group or a file that can't be read
/// otherwise this much is obeyed: its author wanted a failure to be seen.
fn readable_on_failure(document: &Document) -> OnFailure {
    let denies = |child: &Document| readable_on_failure(child) == OnFailure::Deny;
    let denied = match document {
        Document::Object(fields) => fields.iter().any(|(key, value)| {
            let says_deny = matches!(value, Document::String(text) if text == "deny");
            (key == "on_failure" && says_deny) || denies(value)
        }),
        Document::Array(items) => items.iter().any(denies),
        _ => false,
    };
    if denied { OnFailure::Deny } else { OnFailure::Allow }
}

/// The most fields that any object in it has.
fn widest(document: &Document) -> usize {
    match document {
        Document::Object(fields) => {
            fields.iter().map(|(_, value)| widest(value)).fold(fields.len(), usize::max)
        }
        Document::Array(items) => items.iter().map(widest).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A list, which may be empty; anything else is reported.
fn items<'d>(object: &Object<'d>, key: &str, report: &mut Report) -> Option<&'d [Document]> {
    match object.get(key)? {
        Document::Array(items) => Some(items),
        other => {
            report.wrong_kind(&object.place.key(key), "a list", other);
            None
        }
    }
}

/// The `on_failure` of a group or handler.
fn on_failure(object: &Object<'_>, report: &mut Report) -> Option<OnFailure> {
    object.get("on_failure")?;
    match object.word("on_failure", &["allow", "deny"], report) {
        "deny" => Some(OnFailure::Deny),
        _ => Some(OnFailure::Allow),
    }
}
