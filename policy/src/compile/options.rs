//! How are the rarer options of an entry read: what is stripped, and how the origin is met?

use super::object::Object;
use super::report::Report;
use crate::entry::{ClientFiles, MinTls, OriginOptions, Strip};

const ORIGIN_FIELDS: [&str; 4] = ["roots", "client_certificate", "client_key", "min_tls"];

/// Header names and `query:NAME`.
pub(super) fn read_strip(object: &Object<'_>, report: &mut Report) -> Vec<Strip> {
    object.strings("strip", report, |text| match text.strip_prefix("query:") {
        Some("") => Err("name the parameter, as in `query:key`".to_owned()),
        Some(name) => Ok(Strip::Query(name.to_owned())),
        // What may not be injected frames or routes the request, so it may not be removed either.
        None => crate::header_rule::injectable_name(text)
            .map(Strip::Header)
            .map_err(|error| error.to_string()),
    })
}

pub(super) fn read_origin(entry: &Object<'_>, report: &mut Report) -> Option<Box<OriginOptions>> {
    let place = entry.place.key("origin");
    let object = Object::read(entry.get("origin")?, &place, report)?;
    object.refuse_unknown(&ORIGIN_FIELDS, report);
    let mut file = |key| {
        object.get(key)?;
        object.required(key, report).map(str::to_owned)
    };
    let (roots, client_certificate, client_key) =
        (file("roots"), file("client_certificate"), file("client_key"));
    let min_tls = match object.word("min_tls", &["1.2", "1.3"], report) {
        "1.3" => MinTls::Tls13,
        _ => MinTls::Tls12,
    };
    match (object.get("client_certificate"), object.get("client_key")) {
        (Some(_), None) => {
            report.problem(&place.key("client_key"), "required beside the certificate")
        }
        (None, Some(_)) => {
            report.problem(&place.key("client_certificate"), "required beside the key")
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let client = client_certificate
        .zip(client_key)
        .map(|(certificate, key)| ClientFiles { certificate, key });
    Some(Box::new(OriginOptions { roots, client, min_tls }))
}
