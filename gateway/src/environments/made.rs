//! Which environments were made through the management API?
//!
//! They live in the store, sealed, and are read like files: what a file says in its folder, such a
//! one says in its record.

use ipnet::IpNet;
use outgate_credentials::{Collection, CredentialStore, StoreError};
use outgate_policy::{Document, EnvironmentId};
use zeroize::Zeroizing;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) id: EnvironmentId,
    /// Milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// Where its clients come from.
    pub(crate) source_addresses: Vec<IpNet>,
    /// What they may say instead.
    pub(crate) proxy_token: Zeroizing<String>,
    /// The fields of an environment file.
    pub(crate) said: Document,
}

/// Every one in the store, by id. A record that can't be read is passed over, loudly.
pub(crate) fn all(store: &dyn CredentialStore) -> Result<Vec<Made>, StoreError> {
    const PAGE: usize = 256;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.list(Collection::Environments, after.as_deref(), PAGE)?;
        for (id, record) in &page {
            match Made::read(id, &record.value) {
                Some(made) => found.push(made),
                None => tracing::error!(environment = %id, "its record can't be used"),
            }
        }
        after = page.last().map(|(id, _)| id.clone());
        if page.len() < PAGE {
            return Ok(found);
        }
    }
}

impl Made {
    /// The record of `id`.
    pub(crate) fn read(id: &str, bytes: &[u8]) -> Option<Made> {
        let (document, _) = Document::read(std::str::from_utf8(bytes).ok()?).ok()?;
        let field = |name: &str| match &document {
            Document::Object(fields) => {
                fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        };
        let number = |name: &str| match field(name)? {
            Document::Number(number) => number.as_u64(),
            _ => None,
        };
        let Document::String(token) = field("proxy_token")? else { return None };
        let Document::Array(blocks) = field("source_addresses")? else { return None };
        let blocks = blocks.iter().map(|block| match block {
            Document::String(text) => text.parse().ok(),
            _ => None,
        });
        Some(Made {
            id: EnvironmentId::parse(id).ok()?,
            created: number("created")?,
            updated: number("updated")?,
            source_addresses: blocks.collect::<Option<_>>()?,
            proxy_token: Zeroizing::new(token.clone()),
            said: field("environment")?.clone(),
        })
    }

    /// What [`Made::read`] reads.
    pub(crate) fn write(&self) -> Zeroizing<Vec<u8>> {
        let blocks = self.source_addresses.iter();
        let record = Document::Object(vec![
            ("created".to_owned(), Document::Number(self.created.into())),
            ("updated".to_owned(), Document::Number(self.updated.into())),
            ("proxy_token".to_owned(), Document::String(self.proxy_token.to_string())),
            (
                "source_addresses".to_owned(),
                Document::Array(blocks.map(|b| Document::String(b.to_string())).collect()),
            ),
            ("environment".to_owned(), self.said.clone()),
        ]);
        Zeroizing::new(serde_json::to_vec(&record).expect("a document has text keys"))
    }

    /// The text of an environment file that says the same.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&self.said).expect("a document has text keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let (said, _) = Document::read(r#"{"network": {"allowlist": []}}"#).unwrap();
        let made = Made {
            id: EnvironmentId::parse("env_1").unwrap(),
            created: 1,
            updated: 2,
            source_addresses: vec!["10.20.0.2/32".parse().unwrap()],
            proxy_token: Zeroizing::new("token".to_owned()),
            said,
        };
        assert_eq!(Made::read("env_1", &made.write()), Some(made));
        assert_eq!(Made::read("env_1", b"{}"), None);
    }
}
