//! For which region and service has the client signed, and which headers?
//!
//! Its signature itself is worth nothing: it is made with a key that anybody may know.

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::uri::PathAndQuery;

use super::{ALGORITHM, is_of_connection};
use crate::query;

/// More than any client signs.
const MOST_HEADERS: usize = 100;
/// Longer than any name of a region or service.
const MOST_WORD: usize = 64;
/// What a presigned URL has in its query, each alone enough to be one.
/// Of version 4, and the one of version 2 that stands in no other URL.
const PRESIGNED: [&str; 4] =
    ["X-Amz-Signature", "X-Amz-Credential", "X-Amz-Algorithm", "AWSAccessKeyId"];

/// What a client's signature says it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    region: Box<str>,
    service: Box<str>,
    signed: Vec<HeaderName>,
}

/// Why a request can't be signed anew, to be read by who runs its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsignable {
    /// Nothing says for which region and service.
    #[error(
        "has no AWS signature to take region and service from: give the client any access key \
         (AWS_ACCESS_KEY_ID=any, AWS_SECRET_ACCESS_KEY=any)"
    )]
    Anonymous,
    /// The signature is in the URL.
    #[error(
        "is signed in its query (a presigned URL), which is not done anew: have the client sign \
         the request in its Authorization header"
    )]
    Presigned,
    /// Asymmetric signatures.
    #[error(
        "is signed by SigV4A (AWS4-ECDSA-P256-SHA256), which is not done anew: use a regional \
         endpoint, for which clients sign by AWS4-HMAC-SHA256"
    )]
    Asymmetric,
    /// Another scheme.
    #[error("has an Authorization other than AWS4-HMAC-SHA256: have the client sign by SigV4")]
    Algorithm,
    /// Two of them.
    #[error("has more than one Authorization header")]
    Twice,
    /// Not as clients write it.
    #[error("has an AWS signature that can't be read: {0}")]
    Malformed(&'static str),
    /// Each piece of the body is signed with the client's key.
    #[error(
        "signs its body piece by piece (x-amz-content-sha256: STREAMING-…), which is not done \
         anew: have the client send UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a hash"
    )]
    SignedPieces,
    /// Neither a hash nor a known word.
    #[error("has an x-amz-content-sha256 that is neither a SHA-256 in hex nor a known word")]
    Payload,
}

impl Claim {
    /// Reads what the client has signed for.
    pub fn read(headers: &HeaderMap, target: &PathAndQuery) -> Result<Claim, Unsignable> {
        if target.query().is_some_and(|query| PRESIGNED.iter().any(|name| query::has(query, name)))
        {
            return Err(Unsignable::Presigned);
        }
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let value = match (all.next(), all.next()) {
            (None, _) => return Err(Unsignable::Anonymous),
            (Some(one), None) => one.to_str().map_err(|_| Unsignable::Algorithm)?,
            (Some(_), Some(_)) => return Err(Unsignable::Twice),
        };
        match value.split_once(' ') {
            Some((ALGORITHM, parameters)) => Claim::of_parameters(parameters),
            Some(("AWS4-ECDSA-P256-SHA256", _)) => Err(Unsignable::Asymmetric),
            _ => Err(Unsignable::Algorithm),
        }
    }

    /// `Credential=…, SignedHeaders=…, Signature=…`, each once and in the order that all clients
    /// write.
    fn of_parameters(text: &str) -> Result<Claim, Unsignable> {
        let mut parameters = text.split(',').map(|one| one.trim_matches(' '));
        let mut value = |name: &str, missing| {
            let parameter = parameters.next().and_then(|one| one.strip_prefix(name));
            parameter.ok_or(Unsignable::Malformed(missing))
        };
        let credential = value("Credential=", "it does not begin with Credential")?;
        let signed = value("SignedHeaders=", "SignedHeaders does not follow Credential")?;
        let signature = value("Signature=", "Signature does not follow SignedHeaders")?;
        if parameters.next().is_some() {
            return Err(Unsignable::Malformed("something follows Signature"));
        }
        if signature.len() != 64 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unsignable::Malformed("Signature is not 64 hexadecimal digits"));
        }
        let (region, service) = scope(credential)?;
        let signed = names(signed)?;
        Ok(Claim { region: region.into(), service: service.into(), signed })
    }

    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    /// Paths for these are encoded once and taken as they are; for all others, twice, and
    /// normalised.
    pub(crate) fn is_for_s3(&self) -> bool {
        matches!(&*self.service, "s3" | "s3express" | "s3-object-lambda" | "s3-outposts")
    }

    pub(super) fn scope(&self, date: &str) -> String {
        format!("{date}/{}/{}/aws4_request", self.region, self.service)
    }

    /// Whether the client has signed this header, and it means the same behind the gateway.
    pub(crate) fn covers(&self, name: &HeaderName) -> bool {
        !is_of_connection(name) && self.signed.contains(name)
    }
}

/// `KEY/date/region/service/aws4_request`. The date is the client's clock; ours counts.
fn scope(credential: &str) -> Result<(&str, &str), Unsignable> {
    let malformed =
        Err(Unsignable::Malformed("Credential is not KEY/YYYYMMDD/REGION/SERVICE/aws4_request"));
    let mut parts = credential.split('/');
    let mut part = || parts.next().unwrap_or_default();
    let (key, date, region, service, end) = (part(), part(), part(), part(), part());
    let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    if key.is_empty() || !is_date || end != "aws4_request" || parts.next().is_some() {
        return malformed;
    }
    match is_word(region) && is_word(service) {
        true => Ok((region, service)),
        false => malformed,
    }
}

fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MOST_WORD).contains(&text.len()) && text.bytes().all(fits)
}

/// Names in lower case; `host` is always among them.
fn names(list: &str) -> Result<Vec<HeaderName>, Unsignable> {
    let malformed = Unsignable::Malformed("SignedHeaders is not a list of header names with host");
    let mut names = Vec::new();
    for name in list.split(';') {
        if names.len() == MOST_HEADERS || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(malformed);
        }
        names.push(HeaderName::from_bytes(name.as_bytes()).map_err(|_| malformed)?);
    }
    match names.contains(&http::header::HOST) {
        true => Ok(names),
        false => Err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SIGNATURE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn read(target: &str, values: &[&str]) -> Result<(String, String), Unsignable> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
        }
        let claim = Claim::read(&headers, &target.parse().expect("a target"))?;
        Ok((claim.region.into(), claim.service.into()))
    }

    fn signed(credential: &str, headers: &str) -> Result<(String, String), Unsignable> {
        let value = format!(
            "{ALGORITHM} Credential={credential}, SignedHeaders={headers}, Signature={SIGNATURE}"
        );
        read("/", &[&value])
    }

    #[test]
    fn region_and_service_are_read_in_their_order_and_in_no_other_form() {
        let pair = |region: &str, service: &str| Ok((region.to_owned(), service.to_owned()));
        assert_eq!(
            signed("AKIA/20261201/eu-west-1/s3/aws4_request", "host"),
            pair("eu-west-1", "s3")
        );
        // A swap is signed as it was said; the origin refuses it.
        assert_eq!(
            signed("AKIA/20261201/s3/eu-west-1/aws4_request", "host"),
            pair("s3", "eu-west-1")
        );
        for credential in [
            "AKIA/2026/eu-west-1/s3/aws4_request",
            "AKIA/202612011/eu-west-1/s3/aws4_request",
            "AKIA/2026120x/eu-west-1/s3/aws4_request",
            "AKIA/20261201/eu-west-1/s3",
            "AKIA/20261201/s3/aws4_request",
            "AKIA/20261201//s3/aws4_request",
            "AKIA/20261201/eu-west-1//aws4_request",
            "AKIA/20261201/eu-west-1/s3/aws4_request/",
            "AKIA/20261201/eu-west-1/s3/aws4_request/more",
            "AKIA/20261201/eu-west-1/s3/AWS4_REQUEST",
            "AKIA/20261201/eu west/s3/aws4_request",
            "AKIA/20261201/eu-west-1/s3%2f/aws4_request",
            "/20261201/eu-west-1/s3/aws4_request",
            "",
        ] {
            let refused = signed(credential, "host");
            assert!(matches!(refused, Err(Unsignable::Malformed(_))), "{credential}: {refused:?}");
        }
        let long = "a".repeat(MOST_WORD + 1);
        assert!(signed(&format!("AKIA/20261201/{long}/s3/aws4_request"), "host").is_err());
    }

    #[test]
    fn each_parameter_is_there_once_and_in_order() {
        let credential = "Credential=A/20261201/r/s/aws4_request";
        let (headers, signature) = ("SignedHeaders=host", format!("Signature={SIGNATURE}"));
        let ask = |parameters: &str| read("/", &[&format!("{ALGORITHM} {parameters}")]);
        assert!(ask(&format!("{credential}, {headers}, {signature}")).is_ok());
        assert!(ask(&format!("{credential},{headers},{signature}")).is_ok());
        for parameters in [
            format!("{headers}, {credential}, {signature}"),
            format!("{credential}, {credential}, {headers}, {signature}"),
            format!("{credential}, {headers}, {signature}, {signature}"),
            format!("{credential}, {headers}"),
            format!("{credential}, {headers}, {signature},"),
            format!("{credential}, {headers}, Signature=short"),
            format!("{credential}, SignedHeaders=, {signature}"),
            format!("{credential}, SignedHeaders=Host, {signature}"),
            format!("{credential}, SignedHeaders=x-amz-date, {signature}"),
            format!("{credential}, SignedHeaders=host;, {signature}"),
            format!("{credential}, SignedHeaders=host{}, {signature}", ";a".repeat(MOST_HEADERS)),
            String::new(),
        ] {
            assert!(matches!(ask(&parameters), Err(Unsignable::Malformed(_))), "{parameters}");
        }
    }

    #[test]
    fn what_is_no_signature_in_one_header_is_named() {
        let good = format!(
            "{ALGORITHM} Credential=A/20261201/r/s/aws4_request, SignedHeaders=host, \
             Signature={SIGNATURE}"
        );
        assert!(read("/?x-amz-signature-not=1", &[&good]).is_ok());
        assert_eq!(read("/", &[]), Err(Unsignable::Anonymous));
        assert_eq!(read("/", &[&good, &good]), Err(Unsignable::Twice));
        for query in ["X-Amz-Signature=a", "a=b&X%2dAmz-Credential", "X-Amz-Algorithm="] {
            assert_eq!(read(&format!("/?{query}"), &[&good]), Err(Unsignable::Presigned));
            assert_eq!(read(&format!("/?{query}"), &[]), Err(Unsignable::Presigned));
        }
        let asymmetric = good.replace(ALGORITHM, "AWS4-ECDSA-P256-SHA256");
        assert_eq!(read("/", &[&asymmetric]), Err(Unsignable::Asymmetric));
        for other in ["Bearer t", "AWS AKIA:c2ln", "", "aws4-hmac-sha256 x", ALGORITHM] {
            assert_eq!(read("/", &[other]), Err(Unsignable::Algorithm), "{other}");
        }
    }
}
