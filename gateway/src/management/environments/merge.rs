//! Which values does a new `network` keep that it can't say?
//!
//! Values are answered as null, so who reads a network, changes it and writes it back has nulls in
//! it. A null means the value that the same entry has now.

use outgate_policy::Document;

use super::super::answer::Refusal;
use super::field;

/// What makes two entries the same one.
const SAME: [&str; 4] = ["domain", "ports", "methods", "paths"];

/// `said` with another `network`, its nulls filled from the one it had.
pub(super) fn network(said: &Document, mut network: Document) -> Result<Document, Refusal> {
    let Document::Object(fields) = said else { return Ok(said.clone()) };
    let before = field(said, "network").and_then(entries).unwrap_or_default();
    if let Document::Object(parts) = &mut network {
        let lists = parts.iter_mut().filter(|(key, _)| key == "allowlist");
        for (_, list) in lists {
            let Document::Array(list) = list else { continue };
            for (index, entry) in list.iter_mut().enumerate() {
                fill(entry, before, index)?;
            }
        }
    }
    let mut fields = fields.clone();
    fields.retain(|(key, _)| key != "network");
    fields.push(("network".to_owned(), network));
    Ok(Document::Object(fields))
}

fn fill(entry: &mut Document, before: &[Document], index: usize) -> Result<(), Refusal> {
    let is_same = |old: &&Document| SAME.iter().all(|key| field(old, key) == field(entry, key));
    // Several may be the same; of these the last one's value is what goes out.
    let same: Vec<&Document> = before.iter().rev().filter(is_same).collect();
    let Document::Object(fields) = entry else { return Ok(()) };
    let transforms = fields.iter_mut().filter(|(key, _)| key == "transform");
    for (_, transform) in transforms {
        for headers in objects_mut(transform) {
            for (name, value) in headers {
                if *value != Document::Null {
                    continue;
                }
                let kept = same.iter().find_map(|old| value_of(old, name)).ok_or_else(|| {
                    Refusal::invalid(format!(
                        "network.allowlist[{index}].transform.{}: null keeps a value, and there is \
                         none to keep",
                        name.escape_debug()
                    ))
                })?;
                *value = kept.clone();
            }
        }
    }
    Ok(())
}

fn entries(network: &Document) -> Option<&[Document]> {
    match field(network, "allowlist")? {
        Document::Array(list) => Some(list),
        _ => None,
    }
}

/// The value that `entry` sets this header to; names are the same in any case.
fn value_of<'d>(entry: &'d Document, name: &str) -> Option<&'d Document> {
    let transform = field(entry, "transform")?;
    let all: Vec<&Document> = match transform {
        Document::Array(list) => list.iter().collect(),
        one => vec![one],
    };
    all.into_iter().find_map(|headers| match headers {
        Document::Object(headers) => {
            headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        }
        _ => None,
    })
}

fn objects_mut(transform: &mut Document) -> Vec<&mut Vec<(String, Document)>> {
    match transform {
        Document::Object(headers) => vec![headers],
        Document::Array(list) => list
            .iter_mut()
            .filter_map(|item| match item {
                Document::Object(headers) => Some(headers),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::read(text).unwrap().0
    }

    fn merged(new: &str) -> Result<String, Refusal> {
        let said = document(
            r#"{"env": {}, "network": {"allowlist": [
                {"domain": "a.test", "transform": {"Authorization": "one", "X": "two"}},
                {"domain": "a.test", "methods": ["POST"], "transform": [{"X": "three"}]}]}}"#,
        );
        network(&said, document(new)).map(|said| serde_json::to_string(&said).unwrap())
    }

    #[test]
    fn a_null_keeps_the_value_of_the_same_entry_and_header() {
        let kept = merged(
            r#"{"allowlist": [{"domain": "a.test", "transform": [{"authorization": null}]},
                {"domain": "a.test", "methods": ["POST"], "transform": {"X": null, "Y": "new"}}]}"#,
        )
        .unwrap();
        assert_eq!(
            kept,
            r#"{"env":{},"network":{"allowlist":[{"domain":"a.test","transform":[{"authorization":"one"}]},{"domain":"a.test","methods":["POST"],"transform":{"X":"three","Y":"new"}}]}}"#
        );
    }

    #[test]
    fn a_null_keeps_the_last_value_of_several_entries_that_are_the_same() {
        let said = document(
            r#"{"network": {"allowlist": [{"domain": "a.test", "transform": {"X": "1", "Y": "2"}},
                {"domain": "a.test", "transform": {"X": "3"}},
                {"domain": "a.test", "transform": {"Z": "4"}}]}}"#,
        );
        let new = document(
            r#"{"allowlist": [{"domain": "a.test", "transform": {"X": null, "Y": null, "Z": null}}]}"#,
        );
        let kept = serde_json::to_string(&network(&said, new).unwrap()).unwrap();
        assert!(kept.contains(r#"{"X":"3","Y":"2","Z":"4"}"#), "{kept}");
    }

    #[test]
    fn a_null_without_a_value_to_keep_is_refused() {
        for new in [
            r#"{"allowlist": [{"domain": "b.test", "transform": {"X": null}}]}"#,
            r#"{"allowlist": [{"domain": "a.test", "transform": {"Z": null}}]}"#,
            r#"{"allowlist": [{"domain": "a.test", "ports": [8443], "transform": {"X": null}}]}"#,
        ] {
            assert!(merged(new).is_err(), "{new}");
        }
    }

    #[test]
    fn a_network_is_replaced_whole() {
        assert_eq!(merged("\"disabled\"").unwrap(), r#"{"env":{},"network":"disabled"}"#);
    }
}
