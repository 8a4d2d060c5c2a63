//! Which headers does the `transform` of an entry set?

use http::{HeaderName, HeaderValue};

use super::object::Object;
use super::report::Report;
use crate::document::{Document, Place};
use crate::header_rule::{injectable_name, injectable_value};

type Headers = Vec<(HeaderName, HeaderValue)>;

/// One object of headers, or a list of such objects. No message quotes a value.
pub(super) fn read(entry: &Object<'_>, report: &mut Report) -> Headers {
    let place = entry.place.key("transform");
    let mut headers = Vec::new();
    match entry.get("transform") {
        None => {}
        Some(Document::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                read_object(item, &place.index(index), &mut headers, report);
            }
        }
        Some(object @ Document::Object(_)) => {
            read_object(object, &place, &mut headers, report);
        }
        Some(other) => {
            report.wrong_kind(&place, "an object of headers or a list of them", other);
        }
    }
    headers
}

fn read_object(document: &Document, place: &Place<'_>, headers: &mut Headers, report: &mut Report) {
    let Some(object) = Object::read(document, place, report) else {
        return;
    };
    for (name, value) in object.iter() {
        let place = place.key(name);
        let Document::String(value) = value else {
            report.wrong_kind(&place, "a string", value);
            continue;
        };
        let name = injectable_name(name).map_err(|error| report.problem(&place, error.to_string()));
        let value =
            injectable_value(value).map_err(|error| report.problem(&place, error.to_string()));
        let (Ok(name), Ok(value)) = (name, value) else {
            continue;
        };
        if headers.iter().any(|(known, _)| *known == name) {
            let message = "this entry sets the header twice; names are the same in any case";
            report.problem(&place, message);
        } else {
            headers.push((name, value));
        }
    }
}
