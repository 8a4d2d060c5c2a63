//! How is one entry of the allowlist read?

use super::object::Object;
use super::report::Report;
use super::{conflicts, domain, options, transform};
use crate::address::AddressRules;
use crate::document::{Document, Place};
use crate::entry::{Entry, Protocol, TlsMode};
use crate::id::CredentialId;
use crate::path::PathGlob;
use crate::pattern::HostPattern;

const FIELDS: [&str; 16] = [
    "domain",
    "transform",
    "credential",
    "ports",
    "methods",
    "paths",
    "deny",
    "allow_plaintext",
    "protocol",
    "tls",
    "allow_ech",
    "scrub",
    "strip",
    "drop_set_cookie",
    "websocket_text",
    "origin",
];

/// `None` only where there is no pattern to make an entry of; every other fault is in the report.
pub(super) fn read(
    document: &Document,
    place: &Place<'_>,
    addresses: &AddressRules,
    report: &mut Report,
) -> Option<Entry> {
    let object = Object::read(document, place, report)?;
    object.refuse_unknown(&FIELDS, report);
    let (pattern, port) = domain::read_pattern(&object, report).unzip();
    let has_pattern = pattern.is_some();
    // A stand-in, so that the other fields are checked too.
    let entry = read_fields(&object, pattern.unwrap_or(HostPattern::Any), port.flatten(), report);
    conflicts::check_entry(&object, &entry, report);
    if !has_pattern {
        return None;
    }
    domain::check_reach(&entry, &place.key("domain"), addresses, report);
    domain::warn_of_width(&entry, place, report);
    Some(entry)
}

fn read_fields(
    object: &Object<'_>,
    pattern: HostPattern,
    port: Option<u16>,
    report: &mut Report,
) -> Entry {
    let deny = object.flag("deny", report);
    Entry {
        pattern,
        ports: domain::read_ports(object, port, deny, report),
        methods: read_methods(object, report),
        paths: read_paths(object, report),
        deny,
        headers: transform::read(object, report),
        credential: read_credential(object, report),
        allow_plaintext: object.flag("allow_plaintext", report),
        protocol: read_protocol(object, report),
        tls: read_tls(object, report),
        allow_ech: object.flag("allow_ech", report),
        scrub: object.flag("scrub", report),
        drop_set_cookie: object.flag("drop_set_cookie", report),
        websocket_text: object.flag("websocket_text", report),
        strip: options::read_strip(object, report),
        origin: options::read_origin(object, report),
    }
}

fn read_methods(object: &Object<'_>, report: &mut Report) -> Vec<String> {
    object.strings("methods", report, |text| {
        let is_token = http::Method::from_bytes(text.as_bytes()).is_ok();
        if !is_token {
            return Err("not a method".to_owned());
        }
        if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            // Methods are case-sensitive (RFC 9110 §9.1): `get` would match nothing.
            return Err(format!(
                "methods are in upper case; did you mean {}?",
                text.to_uppercase()
            ));
        }
        if text == "CONNECT" {
            return Err("CONNECT opens tunnels and is judged by `domain` and `ports`".to_owned());
        }
        Ok(text.to_owned())
    })
}

fn read_paths(object: &Object<'_>, report: &mut Report) -> Vec<PathGlob> {
    object.strings("paths", report, PathGlob::parse)
}

fn read_protocol(object: &Object<'_>, report: &mut Report) -> Protocol {
    match object.word("protocol", &["http", "tcp"], report) {
        "tcp" => Protocol::Tcp,
        _ => Protocol::Http,
    }
}

fn read_tls(object: &Object<'_>, report: &mut Report) -> TlsMode {
    match object.word("tls", &["intercept", "passthrough"], report) {
        "passthrough" => TlsMode::Passthrough,
        _ => TlsMode::Intercept,
    }
}

fn read_credential(object: &Object<'_>, report: &mut Report) -> Option<CredentialId> {
    let text = object.string("credential", report)?;
    let id = CredentialId::parse(text);
    if let Err(error) = id {
        // Not quoted: someone may have put the secret itself there.
        let message = format!("{error}; the secret itself goes into a credential, not here");
        report.problem(&object.place.key("credential"), message);
    }
    id.ok()
}
