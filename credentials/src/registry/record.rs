//! How is a credential written down? As its owner said it, with when that was.

use outgate_policy::{CredentialId, Document};
use zeroize::Zeroizing;

use crate::credential::Credential;
use crate::wiped::Wiped;

/// A stored credential as its record says it.
pub(super) struct Stored {
    /// Milliseconds since 1970.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// What was written by its owner.
    pub(super) said: Document,
}

impl Stored {
    pub(super) fn read(bytes: &[u8]) -> Option<Stored> {
        let (document, repeated) = Document::read(std::str::from_utf8(bytes).ok()?).ok()?;
        let Document::Object(fields) = document else { return None };
        let [(created, Document::Number(c)), (updated, Document::Number(u)), (said, object)] =
            <[_; 3]>::try_from(fields).ok()?
        else {
            return None;
        };
        let named = (created.as_str(), updated.as_str(), said.as_str());
        (repeated.is_empty() && named == ("created", "updated", "credential")).then_some(())?;
        Some(Stored { created: c.as_u64()?, updated: u.as_u64()?, said: object })
    }

    pub(super) fn write(&self) -> Zeroizing<Vec<u8>> {
        let fields = vec![
            ("created".to_owned(), Document::Number(self.created.into())),
            ("updated".to_owned(), Document::Number(self.updated.into())),
            ("credential".to_owned(), self.said.clone()),
        ];
        let text = serde_json::to_vec(&Document::Object(fields));
        Zeroizing::new(text.expect("a document has text keys"))
    }

    pub(super) fn credential(self, id: &CredentialId) -> Option<Credential> {
        Credential::read(&Wiped::new(self.said), Some(id)).ok()
    }
}
