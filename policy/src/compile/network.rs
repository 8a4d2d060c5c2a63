//! What does `network` say: nothing at all, or which entries?

use super::object::Object;
use super::report::{Report, quoted};
use super::{conflicts, entry};
use crate::address::AddressRules;
use crate::document::{Document, Place};
use crate::policy::Policy;

const FIELDS: [&str; 1] = ["allowlist"];

/// `None` if anything in it is wrong; there is no half of a policy.
pub(super) fn read(
    network: &Document,
    place: &Place<'_>,
    addresses: &AddressRules,
    report: &mut Report,
) -> Option<Policy> {
    if let Document::String(text) = network {
        return disabled(text, place, report);
    }
    let object = Object::read(network, place, report)?;
    object.refuse_unknown(&FIELDS, report);
    let place = place.key("allowlist");
    match object.get("allowlist") {
        None => {
            let hint = "required; write [] to allow nothing, or leave `network` out to allow \
                        every public domain";
            report.problem(&place, hint);
            None
        }
        Some(Document::String(text)) => disabled(text, &place, report),
        Some(Document::Array(items)) => read_list(items, &place, addresses, report),
        Some(other) => {
            report.wrong_kind(&place, "a list of entries or \"disabled\"", other);
            None
        }
    }
}

fn disabled(text: &str, place: &Place<'_>, report: &mut Report) -> Option<Policy> {
    if text == "disabled" {
        return Some(Policy::disabled());
    }
    report.problem(place, format!("{}: the only word here is \"disabled\"", quoted(text)));
    None
}

fn read_list(
    items: &[Document],
    place: &Place<'_>,
    addresses: &AddressRules,
    report: &mut Report,
) -> Option<Policy> {
    let mut entries = Vec::with_capacity(items.len());
    // With an entry missing, indices would no longer be those of the file.
    let mut complete = true;
    for (index, item) in items.iter().enumerate() {
        match entry::read(item, &place.index(index), addresses, report) {
            Some(entry) => entries.push(entry),
            None => complete = false,
        }
    }
    if !complete {
        return None;
    }
    conflicts::check(&entries, place, report);
    Some(Policy::of_entries(entries))
}
