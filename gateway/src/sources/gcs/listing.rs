//! What does the service say is in a bucket?

use outgate_policy::Problem;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// One page of a list of objects.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing {
    #[serde(default)]
    pub(super) items: Vec<Item>,
    /// Whether there is another page, and how to ask for it.
    pub(super) next_page_token: Option<String>,
}

/// One object.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Item {
    pub(super) name: String,
    /// In bytes, as it is stored.
    #[serde(deserialize_with = "number_in_text")]
    pub(super) size: u64,
}

/// Why a page can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListingError {
    #[error("it is not UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    #[error("{0}")]
    Repeated(Problem),
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
}

impl Listing {
    pub(super) fn read(bytes: &[u8]) -> Result<Listing, ListingError> {
        let text = std::str::from_utf8(bytes)?;
        outgate_policy::refuse_repeated_keys(text).map_err(ListingError::Repeated)?;
        Ok(serde_json::from_str(text)?)
    }
}

/// The API writes numbers of 64 bits as texts.
fn number_in_text<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| D::Error::custom(format!("`{}` is no size", text.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_service_writes() {
        let page = br#"{"kind": "storage#objects", "nextPageToken": "CgRm", "items": [
            {"kind": "storage#object", "name": "a/\u00e9.txt", "size": "18446744073709551615"}
        ]}"#;
        let item = Item { name: "a/é.txt".to_owned(), size: u64::MAX };
        let read = Listing::read(page).unwrap();
        assert_eq!((read.items, read.next_page_token.as_deref()), (vec![item], Some("CgRm")));
        let empty = Listing::read(br#"{"kind": "storage#objects"}"#).unwrap();
        assert_eq!((empty.items.len(), empty.next_page_token), (0, None));
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for (page, said) in [
            (&br#"{"items": [], "items": []}"#[..], "twice"),
            (br#"{"etag": 1, "items": [{"name": "a", "size": "1", "md": 1, "md": 2}]}"#, "twice"),
            (br#"{"items": [{"name": "a", "size": 1}]}"#, "string"),
            (br#"{"items": [{"name": "a", "size": "-1"}]}"#, "`-1` is no size"),
            (br#"{"items": [{"name": "a"}]}"#, "size"),
            (br#"{"items": {}}"#, "sequence"),
            (b"<html>", "JSON"),
            (b"\xff", "UTF-8"),
        ] {
            let error = Listing::read(page).expect_err("it can't be read").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
