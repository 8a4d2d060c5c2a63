//! How is a request signed for AWS (Signature Version 4, in the `Authorization` header)?
//!
//! The client has signed it already, with a key that is worth nothing: that says which region and
//! service it is for ([`Claim`]). Everything else is taken from what is really sent, once nothing
//! of it changes any more.

mod canonical;
mod claim;
mod payload;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, header};
use jiff::Timestamp;
use smallvec::{SmallVec, smallvec};
use zeroize::Zeroizing;

use self::canonical::Canonical;
pub use self::claim::{Claim, Unsignable};
pub use self::payload::Payload;
use crate::secret::{Secret, header_value};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// A key pair of AWS, as it is at this moment.
#[derive(Clone, Debug)]
pub struct Signer {
    pub(crate) access_key_id: Arc<str>,
    pub(crate) secret: Secret,
    pub(crate) session_token: Option<Secret>,
}

/// What of a request is signed beside its headers.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The method.
    pub method: &'a Method,
    /// `Host` or `:authority`, as sent.
    pub host: &'a HeaderValue,
    /// Path and query, as sent.
    pub target: &'a PathAndQuery,
    /// What stands for the body.
    pub payload: &'a Payload,
}

impl Signer {
    /// The headers that carry a client's signature and that [`Signer::sign`] sets anew, or that must
    /// not be sent beside it.
    pub const CARRIERS: [HeaderName; 3] = [AUTHORIZATION, AMZ_DATE, SECURITY_TOKEN];

    /// The session token and its header: all that is sent of the key itself, beside its id.
    pub fn token(&self) -> Option<(HeaderName, &Secret)> {
        self.session_token.as_ref().map(|token| (SECURITY_TOKEN, token))
    }

    /// The headers that it will set for sure.
    pub fn sets(&self) -> impl Iterator<Item = HeaderName> {
        [AUTHORIZATION, AMZ_DATE]
            .into_iter()
            .chain(self.session_token.is_some().then_some(SECURITY_TOKEN))
    }

    /// Signs a request whose `headers` are those that will be sent, and returns which it has set.
    /// `None` where the session token fits into no header.
    pub fn sign(
        &self,
        claim: &Claim,
        subject: &Subject<'_>,
        headers: &mut HeaderMap,
    ) -> Option<SmallVec<[HeaderName; 4]>> {
        self.sign_at(claim, subject, headers, SystemTime::now())
    }

    pub(crate) fn sign_at(
        &self,
        claim: &Claim,
        subject: &Subject<'_>,
        headers: &mut HeaderMap,
        now: SystemTime,
    ) -> Option<SmallVec<[HeaderName; 4]>> {
        let time = Timestamp::try_from(now).ok()?.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut set: SmallVec<[HeaderName; 4]> = smallvec![AUTHORIZATION, AMZ_DATE];
        headers.insert(AMZ_DATE, HeaderValue::try_from(&time).ok()?);
        if let Some(token) = &self.session_token {
            headers.insert(SECURITY_TOKEN, header_value(token.reveal()).ok()?);
            set.push(SECURITY_TOKEN);
        }
        // S3 wants to be told; others take it if the client says it.
        if claim.is_for_s3() || headers.contains_key(CONTENT_SHA256) {
            headers.insert(CONTENT_SHA256, HeaderValue::try_from(subject.payload.as_str()).ok()?);
            set.push(CONTENT_SHA256);
        }
        let canonical = Canonical::of(claim, subject, headers);
        let scope = claim.scope(&time[..8]);
        let hash = hex(digest(&SHA256, &canonical.text).as_ref());
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{hash}");
        let signature = hex(hmac::sign(&self.key(claim, &time[..8]), text.as_bytes()).as_ref());
        let authorization = format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={}, Signature={signature}",
            self.access_key_id, canonical.signed
        );
        headers.insert(AUTHORIZATION, header_value(&authorization).ok()?);
        Some(set)
    }

    /// The key for one day, region and service.
    fn key(&self, claim: &Claim, date: &str) -> hmac::Key {
        let first = Zeroizing::new(format!("AWS4{}", self.secret.reveal()));
        let mut key = hmac::Key::new(HMAC_SHA256, first.as_bytes());
        for part in [date, claim.region(), claim.service(), "aws4_request"] {
            key = hmac::Key::new(HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        key
    }
}

/// What is hashed and signed.
#[cfg(any(test, fuzzing))]
pub(crate) fn canonical(claim: &Claim, subject: &Subject<'_>, headers: &HeaderMap) -> Vec<u8> {
    Canonical::of(claim, subject, headers).text.to_vec()
}

/// Whether a header is one of AWS's own, which are all signed.
fn is_of_aws(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-amz-")
}

/// Fields that say how the request is sent over one connection: the gateway makes them anew for
/// each, after the signature.
fn is_of_connection(name: &HeaderName) -> bool {
    [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ]
    .contains(name)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests;
