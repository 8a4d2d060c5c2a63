//! How is a credential read from JSON? Every problem is said, with the field and without the value.

mod cloud;

use outgate_policy::{
    Authority, CredentialId, Document, HostPattern, Object, Place, Problems, Report,
    injectable_name,
};

use super::fields::{MAX_WORD, strings, value, word};
use super::{Credential, Kind, Locations, OAuth2, TokenUrl, Trusted, Variable};
use crate::secret::{self, Fit};
use crate::source::Value;

/// The types, and the fields of each beside `id` and `type`.
const TYPES: [(&str, &[&str]); 7] = [
    ("bearer_token", &["token", "header_name", "prefix"]),
    ("oauth2", &["client_id", "client_secret", "refresh_token", "token_url", "scopes"]),
    (
        "environment_variable",
        &["value", "injection_location", "trusted_domains", "placeholder_prefix"],
    ),
    ("basic", &["username", "password"]),
    ("api_key_query", &["name", "key"]),
    ("aws_sigv4", &["access_key_id", "secret_access_key", "session_token"]),
    ("gcp_service_account", &["key_file_json", "scopes"]),
];
/// Long enough for the prefixes of known tokens (`github_pat_`), short enough for a header.
const MAX_PREFIX: usize = 32;

impl Credential {
    /// Reads one. Without an `id` in `document`, `id` is its id; both must agree.
    pub fn read(document: &Document, id: Option<&CredentialId>) -> Result<Credential, Problems> {
        let mut report = Report::default();
        let credential = read(document, id, &mut report);
        report.into_result(credential).map(|(credential, _)| credential)
    }
}

/// `document` with one field said anew.
pub(crate) fn with_field(document: &Document, name: &str, value: Document) -> Document {
    let mut fields = match document {
        Document::Object(fields) => fields.clone(),
        _ => Vec::new(),
    };
    fields.retain(|(key, _)| key != name);
    fields.push((name.to_owned(), value));
    Document::Object(fields)
}

/// Whether credentials of this one's type may have a field of this name.
pub(crate) fn has_field(document: &Document, name: &str) -> bool {
    let Document::Object(fields) = document else { return false };
    let kind = fields.iter().find(|(key, _)| key == "type").map(|(_, kind)| kind);
    TYPES.iter().any(|(said, known)| {
        matches!(kind, Some(Document::String(kind)) if kind == said) && known.contains(&name)
    })
}

fn read(document: &Document, id: Option<&CredentialId>, report: &mut Report) -> Option<Credential> {
    let place = Place::Root;
    let object = Object::read(document, &place, report)?;
    let id = read_id(&object, id, report);
    let (kind, fields) = read_type(&object, report)?;
    let known: Vec<&str> = ["id", "type"].iter().chain(fields).copied().collect();
    object.refuse_unknown(&known, report);
    let kind = match kind {
        "bearer_token" => bearer_token(&object, report),
        "oauth2" => oauth2(&object, report).map(|oauth2| Kind::OAuth2(Box::new(oauth2))),
        "environment_variable" => variable(&object, report).map(Kind::EnvironmentVariable),
        "basic" => basic(&object, report),
        "aws_sigv4" => cloud::aws_key(&object, report),
        "gcp_service_account" => cloud::service_account(&object, report),
        _ => api_key_query(&object, report),
    };
    Some(Credential { id: id?, kind: kind? })
}

fn read_id(
    object: &Object<'_>,
    expected: Option<&CredentialId>,
    report: &mut Report,
) -> Option<CredentialId> {
    let place = object.place.key("id");
    let said = match (object.get("id"), expected) {
        (None, Some(expected)) => return Some(expected.clone()),
        _ => object.required("id", report)?,
    };
    match CredentialId::parse(said) {
        Ok(id) if expected.is_none_or(|expected| *expected == id) => return Some(id),
        Ok(_) => report.problem(&place, "an id never changes; leave it out"),
        // Not quoted: someone may have put the secret itself there.
        Err(error) => report.problem(&place, error.to_string()),
    }
    None
}

fn read_type(
    object: &Object<'_>,
    report: &mut Report,
) -> Option<(&'static str, &'static [&'static str])> {
    let said = object.required("type", report)?;
    if let Some(known) = TYPES.iter().find(|(name, _)| *name == said) {
        return Some(*known);
    }
    let names = TYPES.map(|(name, _)| name).join(", ");
    report.problem(&object.place.key("type"), format!("unknown; the types are {names}"));
    None
}

fn bearer_token(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let token = value(object, "token", Fit::Header, report);
    let header_name = match object.get("header_name").is_some() {
        false => Some(http::header::AUTHORIZATION),
        true => object.required("header_name", report).and_then(|name| {
            injectable_name(name)
                .map_err(|error| {
                    report.problem(&object.place.key("header_name"), error.to_string())
                })
                .ok()
        }),
    };
    let prefix = match object.get("prefix").is_some() {
        false => Some("Bearer"),
        true => object.string("prefix", report),
    };
    if let Some(Err(error)) =
        prefix.filter(|prefix| !prefix.is_empty()).map(|text| secret::check(text, Fit::Header))
    {
        report.problem(&object.place.key("prefix"), error.to_string());
    }
    Some(Kind::BearerToken { token: token?, header_name: header_name?, prefix: prefix?.to_owned() })
}

fn oauth2(object: &Object<'_>, report: &mut Report) -> Option<OAuth2> {
    let client_id = word(object, "client_id", report);
    let client_secret = value(object, "client_secret", Fit::Text, report);
    let refresh_token = match object.get("refresh_token") {
        // A rotated one could not be written back to where the first came from.
        Some(Document::Object(_)) => {
            report.problem(&object.place.key("refresh_token"), "only a string will do here");
            None
        }
        _ => value(object, "refresh_token", Fit::Text, report),
    };
    let token_url = object.required("token_url", report).and_then(|text| {
        TokenUrl::parse(text)
            .map_err(|hint| report.problem(&object.place.key("token_url"), hint))
            .ok()
    });
    let scopes = scopes(object, report);
    let Value::Given(refresh_token) = refresh_token? else { return None };
    Some(OAuth2 {
        client_id: client_id?,
        client_secret: client_secret?,
        refresh_token,
        token_url: token_url?,
        scopes,
    })
}

/// RFC 6749 §3.3.
fn scopes(object: &Object<'_>, report: &mut Report) -> Vec<String> {
    strings(object, "scopes", report, |text| {
        let fits = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        match !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(fits) {
            true => Ok(text.to_owned()),
            false => Err("a scope is one word of visible ASCII".to_owned()),
        }
    })
}

fn variable(object: &Object<'_>, report: &mut Report) -> Option<Variable> {
    let locations = locations(object, report);
    let value = value(object, "value", locations.fit(), report);
    let trusted = object.get("trusted_domains").is_some().then(|| {
        strings(object, "trusted_domains", report, |text| {
            HostPattern::parse(text)
                .map(|(pattern, port)| Trusted { pattern, port })
                .map_err(|_| "not a domain, `*.domain` or `*`".to_owned())
        })
    });
    let prefix = object.string("placeholder_prefix", report).unwrap_or_default();
    // Unreserved in a URL (RFC 3986 §2.3), so that no client escapes it.
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if prefix.len() > MAX_PREFIX || !prefix.bytes().all(fits) {
        let message = format!("at most {MAX_PREFIX} of the characters A-Z a-z 0-9 _ - .");
        report.problem(&object.place.key("placeholder_prefix"), message);
    }
    Some(Variable { value: value?, locations, trusted, prefix: prefix.to_owned() })
}

/// Headers where nothing is said: the one place that every client can use.
fn locations(object: &Object<'_>, report: &mut Report) -> Locations {
    let place = object.place.key("injection_location");
    let words = match object.get("injection_location") {
        None => return Locations { headers: true, ..Locations::default() },
        Some(Document::String(word)) => vec![word.clone()],
        Some(Document::Array(_)) => {
            strings(object, "injection_location", report, |word| Ok(word.to_owned()))
        }
        Some(other) => {
            report.wrong_kind(&place, "a string or a list of strings", other);
            return Locations::default();
        }
    };
    let mut locations = Locations::default();
    for word in &words {
        match word.as_str() {
            "header" => locations.headers = true,
            "query" => locations.query = true,
            "body" => locations.body = true,
            _ => report.problem(&place, "write header, query, body or a list of them"),
        }
    }
    locations
}

fn basic(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let username = word(object, "username", report);
    // RFC 7617 §2: the first colon ends it.
    if username.as_deref().is_some_and(|name| name.contains(':')) {
        report.problem(&object.place.key("username"), "a user name has no colon");
    }
    let password = value(object, "password", Fit::Text, report);
    Some(Kind::Basic { username: username?, password: password? })
}

fn api_key_query(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let name = word(object, "name", report);
    let key = value(object, "key", Fit::Text, report);
    Some(Kind::ApiKeyQuery { name: name?, key: key? })
}

impl TokenUrl {
    /// Reads one. The hint quotes nothing: people paste URLs with passwords in them.
    pub(crate) fn parse(text: &str) -> Result<TokenUrl, &'static str> {
        let rest = text.strip_prefix("https://").ok_or("write an https:// URL")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if text.contains(['?', '#', '@']) || text.len() > MAX_WORD {
            return Err("a token URL has no user, query or fragment");
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("percent-encode what is not visible ASCII");
        }
        let authority =
            Authority::from_wire(authority.as_bytes()).map_err(|_| "the host is not valid")?;
        let path = if path.is_empty() { "/" } else { path };
        let port = authority.port.unwrap_or(443);
        Ok(TokenUrl { host: authority.host, port, path: path.to_owned() })
    }
}
