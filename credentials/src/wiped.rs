//! How is a document with secrets in it let go?

use std::ops::Deref;

use outgate_policy::Document;
use zeroize::Zeroize;

/// A document whose texts are zeroed when it is dropped. What the JSON reader needed on its way is
/// its own.
pub(crate) struct Wiped(Document);

impl Wiped {
    pub(crate) fn new(document: Document) -> Wiped {
        Wiped(document)
    }
}

impl Deref for Wiped {
    type Target = Document;

    fn deref(&self) -> &Document {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(document: &mut Document) {
    match document {
        Document::String(text) => text.zeroize(),
        Document::Array(items) => items.iter_mut().for_each(wipe),
        Document::Object(fields) => fields.iter_mut().for_each(|(_, value)| wipe(value)),
        Document::Null | Document::Bool(_) | Document::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_left_at_any_depth() {
        let text = r#"{"private_key": "s3cret", "more": [{"a": "s3cret"}, ["s3cret", 1, null]]}"#;
        let (mut document, _) = Document::read(text).expect("JSON");
        assert!(serde_json::to_string(&document).expect("JSON").contains("s3cret"));
        wipe(&mut document);
        let left = serde_json::to_string(&document).expect("JSON");
        assert_eq!(left, r#"{"private_key":"","more":[{"a":""},["",1,null]]}"#);
    }
}
