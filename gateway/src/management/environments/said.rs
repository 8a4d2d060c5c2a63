//! What may be sent of an environment, and what is answered?

use std::net::IpAddr;

use ipnet::IpNet;
use outgate_credentials::Credentials;
use outgate_policy::{CredentialId, Document};
use serde_json::{Value, json};

use super::super::answer::{Refusal, time};
use super::field;
use crate::environments::Made;

/// Of a sandbox: a few addresses of each family.
const MOST_BLOCKS: usize = 128;

/// What a POST says.
pub(super) struct Said {
    /// The fields of an environment file.
    pub(super) environment: Document,
    pub(super) source_addresses: Vec<IpNet>,
}

/// Reads the body of a POST. What an environment file may say is judged elsewhere.
pub(super) fn read(body: Document) -> Result<Said, Refusal> {
    let Document::Object(mut fields) = body else {
        return Err(Refusal::invalid(format!("expected an object, found {}", body.kind())));
    };
    for (key, _) in &fields {
        match key.as_str() {
            "id" | "environment_id" => {
                return Err(Refusal::invalid(format!("{key}: the gateway makes it; leave it out")));
            }
            "from_environment" => {
                return Err(Refusal::invalid("from_environment: not supported"));
            }
            _ => {}
        }
    }
    let blocks: Vec<_> = fields.extract_if(.., |(key, _)| key == "source_addresses").collect();
    let source_addresses = match blocks.into_iter().next() {
        Some((_, blocks)) => read_blocks(&blocks)?,
        None => Vec::new(),
    };
    Ok(Said { environment: Document::Object(fields), source_addresses })
}

/// Reads the body of a PATCH: nothing but `network` can change.
pub(super) fn network(body: Document) -> Result<Document, Refusal> {
    match body {
        Document::Object(fields) => match <[_; 1]>::try_from(fields) {
            Ok([(key, network)]) if key == "network" => Ok(network),
            _ => Err(Refusal::invalid("write {\"network\": …} and nothing else")),
        },
        other => Err(Refusal::invalid(format!("expected an object, found {}", other.kind()))),
    }
}

fn read_blocks(blocks: &Document) -> Result<Vec<IpNet>, Refusal> {
    let refused =
        || Refusal::invalid("source_addresses: a list of addresses or blocks, as \"10.20.0.2/32\"");
    let Document::Array(blocks) = blocks else { return Err(refused()) };
    if blocks.len() > MOST_BLOCKS {
        return Err(Refusal::invalid(format!("source_addresses: at most {MOST_BLOCKS}")));
    }
    let block = |block: &Document| match block {
        Document::String(text) => text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .ok()
            // Bits behind the mask would be a mistake that nobody sees.
            .filter(|block| block.trunc() == *block)
            // Everybody is no sandbox.
            .filter(|block| block.prefix_len() > 0),
        _ => None,
    };
    blocks.iter().map(|one| block(one).ok_or_else(refused)).collect()
}

/// The answer about an environment, without what it injects. May make placeholders.
pub(super) fn shown(made: &Made, used: u64, credentials: &Credentials) -> Value {
    let mut shown = json!({
        "id": made.id.as_str(),
        "created": time(made.created),
        "updated": time(made.updated),
        "last_accessed": time(used),
        "status": "active",
    });
    if let Some(network) = field(&made.said, "network") {
        shown["network"] = without_values(network);
    }
    if let Some(sources) = field(&made.said, "sources") {
        shown["sources"] = plain(sources);
    }
    if let Some(Document::Object(variables)) = field(&made.said, "env") {
        let variables = variables.iter().map(|(name, value)| {
            let shown = match field(value, "credential") {
                Some(Document::String(id)) => with_placeholder(made, id, credentials),
                _ => plain(value),
            };
            (name.clone(), shown)
        });
        shown["env"] = Value::Object(variables.collect());
    }
    if !made.source_addresses.is_empty() {
        let blocks = made.source_addresses.iter().map(ToString::to_string);
        shown["source_addresses"] = blocks.collect::<Vec<_>>().into();
    }
    shown
}

fn with_placeholder(made: &Made, id: &str, credentials: &Credentials) -> Value {
    let placeholder = CredentialId::parse(id)
        .ok()
        .and_then(|id| credentials.placeholder(&made.id, &id).ok())
        .map_or(Value::Null, Value::String);
    json!({"credential": id, "placeholder": placeholder})
}

fn plain(document: &Document) -> Value {
    serde_json::to_value(document).unwrap_or_default()
}

/// `network` with every value of a `transform` as null.
fn without_values(network: &Document) -> Value {
    let mut network = plain(network);
    let entries = network.get_mut("allowlist").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        match entry.get_mut("transform") {
            Some(Value::Object(headers)) => hide(headers),
            Some(Value::Array(list)) => {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(hide);
            }
            _ => {}
        }
    }
    network
}

fn hide(headers: &mut serde_json::Map<String, Value>) {
    headers.values_mut().for_each(|value| *value = Value::Null);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::read(text).unwrap().0
    }

    #[test]
    fn no_value_of_a_transform_is_answered() {
        let network = document(
            r#"{"allowlist": [{"domain": "a.test", "transform": {"X": "secret"}},
                {"domain": "b.test", "transform": [{"Y": "secret"}, {"Z": "secret"}]}]}"#,
        );
        let shown = without_values(&network);
        assert!(!shown.to_string().contains("secret"));
        assert_eq!(shown["allowlist"][1]["transform"], json!([{"Y": null}, {"Z": null}]));
        assert_eq!(without_values(&document("\"disabled\"")), json!("disabled"));
    }

    #[test]
    fn reads_blocks_and_single_addresses() {
        let read = |text: &str| read(document(text)).map(|said| said.source_addresses.len());
        assert_eq!(read(r#"{"source_addresses": ["10.0.0.0/24", "10.0.0.1", "::1"]}"#), Ok(3));
        assert_eq!(read("{}"), Ok(0));
        for text in [
            r#"{"source_addresses": "10.0.0.1"}"#,
            r#"{"source_addresses": ["10.0.0.1/24"]}"#,
            r#"{"source_addresses": [1]}"#,
            r#"{"source_addresses": ["0.0.0.0/0"]}"#,
            r#"{"source_addresses": ["::/0"]}"#,
            &format!(r#"{{"source_addresses": ["10.0.0.1"{}]}}"#, r#", "10.0.0.1""#.repeat(128)),
            r#"{"environment_id": "a"}"#,
            r#"{"id": "a"}"#,
            r#"{"from_environment": "a"}"#,
            "[]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
