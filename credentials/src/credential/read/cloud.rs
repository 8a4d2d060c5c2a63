//! How are the keys of cloud services read?

use outgate_policy::{Document, Object, Report};

use super::super::fields::{SOURCES, value, word};
use super::super::{AwsKey, Kind, ServiceAccount};
use super::scopes;
use crate::oauth2::ServiceKey;
use crate::secret::{Fit, Secret};
use crate::source::Value;

pub(super) fn aws_key(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    let access_key_id = word(object, "access_key_id", report);
    // It is a part of a header whose parts these end.
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b',' | b'=');
    if access_key_id.as_deref().is_some_and(|id| !id.bytes().all(fits)) {
        let message = "an access key id has letters and digits, such as AKIAIOSFODNN7EXAMPLE";
        report.problem(&object.place.key("access_key_id"), message);
    }
    let secret_access_key = value(object, "secret_access_key", Fit::Header, report);
    let session_token = match object.get("session_token") {
        None => None,
        Some(_) => Some(value(object, "session_token", Fit::Header, report)?),
    };
    Some(Kind::AwsSigV4(Box::new(AwsKey {
        access_key_id: access_key_id?,
        secret_access_key: secret_access_key?,
        session_token,
    })))
}

/// The key file as text, as the object that it is, or where it is.
pub(super) fn service_account(object: &Object<'_>, report: &mut Report) -> Option<Kind> {
    const FIELD: &str = "key_file_json";
    let scopes = scopes(object, report);
    if scopes.is_empty() {
        let message = "name at least one, such as https://www.googleapis.com/auth/cloud-platform";
        report.problem(&object.place.key("scopes"), message);
    }
    let place = object.place.key(FIELD);
    let key_file = match object.get(FIELD) {
        Some(document @ Document::Object(fields))
            if !fields.iter().any(|(name, _)| SOURCES.contains(&name.as_str())) =>
        {
            let text = serde_json::to_string(document).expect("a document has text keys");
            Secret::parse(text, Fit::File)
                .map(Value::Given)
                .map_err(|error| report.problem(&place, error.to_string()))
                .ok()
        }
        _ => value(object, FIELD, Fit::File, report),
    };
    if let Some(Value::Given(secret)) = &key_file
        && let Err(error) = ServiceKey::read(secret)
    {
        report.problem(&place, error.to_string());
    }
    Some(Kind::GcpServiceAccount(Box::new(ServiceAccount { key_file: key_file?, scopes })))
}
