//! Do the parts of an entry, and the entries of one pattern, go together?

use std::collections::HashMap;

use super::object::Object;
use super::report::Report;
use crate::document::Place;
use crate::entry::{Entry, Ports, Protocol, TlsMode};
use crate::header_rule::SHORTEST_SCRUBBED;
use crate::pattern::HostPattern;

/// Looks for fields that don't go together within one entry.
pub(super) fn check_entry(object: &Object<'_>, entry: &Entry, report: &mut Report) {
    // Opened by default would be 80 and 443, which is hardly ever what raw TCP is for.
    let by_default = entry.ports == Ports::web() && object.get("ports").is_none();
    if entry.protocol == Protocol::Tcp && by_default {
        report.problem(&object.place.key("ports"), "required with protocol \"tcp\"");
    }
    if let Some(unseen) = hides_requests(entry) {
        let flags = [("scrub", entry.scrub), ("drop_set_cookie", entry.drop_set_cookie)];
        let said = flags.into_iter().filter(|(_, said)| *said).map(|(field, _)| field);
        let fields = ["transform", "credential", "methods", "paths"];
        for field in fields.into_iter().filter(|field| object.get(field).is_some()).chain(said) {
            let message = format!("no use with {unseen}: the gateway sees no request there");
            report.problem(&object.place.key(field), message);
        }
    }
    if entry.origin.is_some() && hides_requests(entry).is_some() {
        let message = "no use here: the TLS that passes is the client's own, not the gateway's";
        report.problem(&object.place.key("origin"), message);
    }
    warn_of_short_values(object, entry, report);
    if entry.deny {
        for field in ["transform", "credential", "origin"] {
            if object.get(field).is_some() {
                report.warning(&object.place.key(field), "without effect: the entry denies");
            }
        }
    }
}

/// Says which values `scrub` will not look for.
fn warn_of_short_values(object: &Object<'_>, entry: &Entry, report: &mut Report) {
    for (name, value) in entry.headers.iter().filter(|_| entry.scrub) {
        if value.len() < SHORTEST_SCRUBBED {
            let message = format!(
                "shorter than {SHORTEST_SCRUBBED} bytes, so `scrub` does not look for it in answers"
            );
            report.warning(&object.place.key("transform").key(name.as_str()), message);
        }
    }
}

/// What keeps the gateway from seeing requests, if something does.
fn hides_requests(entry: &Entry) -> Option<&'static str> {
    match (entry.protocol, entry.tls) {
        (Protocol::Tcp, _) => Some("protocol \"tcp\""),
        (Protocol::Http, TlsMode::Passthrough) => Some("tls \"passthrough\""),
        (Protocol::Http, TlsMode::Intercept) => None,
    }
}

/// Refuses entries of one pattern and port that would treat a connection differently, and warns
/// of patterns that only deny in part.
pub(super) fn check(entries: &[Entry], place: &Place<'_>, report: &mut Report) {
    let mut by_pattern: HashMap<&HostPattern, Vec<usize>> = HashMap::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        by_pattern.entry(&entry.pattern).or_default().push(index);
    }
    let mut groups: Vec<_> = by_pattern.into_values().collect();
    groups.sort_unstable();
    for group in groups {
        check_ports(&group, entries, place, report);
        check_denials(&group, entries, place, report);
        if let Some(first) = group.first()
            && group.iter().all(|index| entries[*index].deny)
            && group.iter().any(|index| !entries[*index].is_whole())
        {
            let message = format!(
                "no other entry is for {}, so all of it is denied, not only this; add an entry \
                 that allows the rest",
                entries[*first].pattern
            );
            report.warning(&place.index(*first), message);
        }
    }
}

fn check_ports(group: &[usize], entries: &[Entry], place: &Place<'_>, report: &mut Report) {
    let mut first_at: HashMap<u16, usize> = HashMap::new();
    for index in group.iter().copied().filter(|index| !entries[*index].deny) {
        let Ports::Listed(ports) = &entries[index].ports else {
            continue;
        };
        let mut said = false;
        for port in ports {
            let first = *first_at.entry(*port).or_insert(index);
            if let Some(field) = difference(&entries[first], &entries[index])
                && !said
            {
                let message = format!(
                    "differs from {place}[{first}], which is for {} and port {port} too",
                    entries[index].pattern
                );
                report.problem(&place.index(index).key(field), message);
                said = true;
            }
        }
    }
}

/// Refuses to deny some requests of a connection whose requests pass unseen.
fn check_denials(group: &[usize], entries: &[Entry], place: &Place<'_>, report: &mut Report) {
    let partial = |entry: &Entry| entry.deny && !entry.is_whole();
    for denial in group.iter().copied().filter(|index| partial(&entries[*index])) {
        let meets = |other: &Entry| match &other.ports {
            Ports::Every => true,
            Ports::Listed(ports) => ports.iter().any(|port| entries[denial].ports.contains(*port)),
        };
        let unseen = group.iter().find_map(|index| {
            let other = &entries[*index];
            let hidden = hides_requests(other).filter(|_| !other.deny && meets(other));
            hidden.map(|what| (*index, what))
        });
        if let Some((index, what)) = unseen {
            let message = format!(
                "can't be kept: {place}[{index}] is for the same name and port, with {what}, where \
                 the gateway sees no request"
            );
            report.problem(&place.index(denial).key("deny"), message);
        }
    }
}

/// The first of the fields that are a connection's, not a request's, in which two entries differ.
fn difference(one: &Entry, other: &Entry) -> Option<&'static str> {
    [
        ("protocol", one.protocol == other.protocol),
        ("tls", one.tls == other.tls),
        ("allow_ech", one.allow_ech == other.allow_ech),
        ("origin", one.origin == other.origin),
    ]
    .into_iter()
    .find_map(|(field, same)| (!same).then_some(field))
}
