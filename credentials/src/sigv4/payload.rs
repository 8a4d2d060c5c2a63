//! What stands for the body in a signature?

use aws_lc_rs::digest::{SHA256, digest};
use http::header::HeaderMap;

use super::claim::Unsignable;
use super::{CONTENT_SHA256, hex};

/// A hash of the body, or a word in its place. The origin holds the body against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(Box<str>);

impl Payload {
    /// What the client's own header says of the body; `None` where it says nothing, and the body
    /// has to be hashed.
    pub fn stated(headers: &HeaderMap) -> Result<Option<Payload>, Unsignable> {
        let mut all = headers.get_all(CONTENT_SHA256).iter();
        let value = match (all.next(), all.next()) {
            (None, _) => return Ok(None),
            (Some(one), None) => one.to_str().map_err(|_| Unsignable::Payload)?,
            (Some(_), Some(_)) => return Err(Unsignable::Payload),
        };
        let is_hash = value.len() == 64
            && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match value {
            "UNSIGNED-PAYLOAD" | "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => {}
            _ if is_hash => {}
            _ if value.starts_with("STREAMING-") => return Err(Unsignable::SignedPieces),
            _ => return Err(Unsignable::Payload),
        }
        Ok(Some(Payload(value.into())))
    }

    /// Of a body with this SHA-256.
    pub fn of_hash(hash: &[u8]) -> Payload {
        Payload(hex(hash).into())
    }

    /// Of no body.
    pub fn empty() -> Payload {
        Payload::of_hash(digest(&SHA256, b"").as_ref())
    }

    /// Whether it is a hash, which holds for one body alone.
    pub fn is_hash(&self) -> bool {
        self.0.len() == 64
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_hash_or_a_word_is_taken_and_nothing_that_signs_pieces() {
        let stated = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_SHA256, HeaderValue::from_str(value).expect("a value"));
            }
            Payload::stated(&headers)
        };
        let hash = Payload::empty();
        assert_eq!(
            hash.as_str(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(stated(&[]), Ok(None));
        assert_eq!(stated(&[hash.as_str()]), Ok(Some(hash.clone())));
        for word in ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
            assert!(stated(&[word]).is_ok_and(|one| one.is_some_and(|one| !one.is_hash())));
        }
        for word in [
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
            "STREAMING-AWS4-HMAC-SHA256-EVENTS",
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
        ] {
            assert_eq!(stated(&[word]), Err(Unsignable::SignedPieces), "{word}");
        }
        let upper = hash.as_str().to_uppercase();
        for word in ["", "unsigned-payload", &upper, &hash.as_str()[1..], "é"] {
            assert_eq!(stated(&[word]), Err(Unsignable::Payload), "{word}");
        }
        assert_eq!(stated(&[hash.as_str(), hash.as_str()]), Err(Unsignable::Payload));
    }
}
