//! What is sent for an access token where there is a service account's key (RFC 7523 §2.1)?
//!
//! A statement of who asks for what, signed with the key and good for an hour at most. The key
//! itself goes nowhere.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use outgate_policy::{Document, Object, Place, Report};
use serde_json::json;
use zeroize::Zeroizing;

use super::{Granted, Means, TokenError, ask};
use crate::credential::{ServiceAccount, TokenUrl};
use crate::query::escape;
use crate::secret::{Fit, Secret};
use crate::source::{Files, Held};
use crate::wiped::Wiped;

/// For how long a statement is good: the most that Google takes.
const GOOD_FOR: u64 = 3600;
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A service account whose key is read when a token is needed.
#[derive(Debug)]
pub(crate) struct AssertionGrant {
    key_file: Held,
    scopes: String,
}

/// A key file as far as it is used.
pub(crate) struct ServiceKey {
    email: String,
    key_id: Option<String>,
    pair: RsaKeyPair,
    token_uri: TokenUrl,
    audience: String,
}

/// Why a text is no usable key file. Quotes nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFileError {
    #[error("the key file is not one JSON object without repeated keys")]
    Json,
    #[error("the key file's type is not service_account")]
    Type,
    #[error("the key file has no {0}")]
    Missing(&'static str),
    #[error("the key file's token_uri: {0}")]
    TokenUri(&'static str),
    #[error("the key file's private_key is no RSA key in PEM (PKCS#8, 2048 to 8192 bits)")]
    PrivateKey,
}

impl AssertionGrant {
    pub(crate) fn new(settings: &ServiceAccount, files: &Arc<Files>) -> AssertionGrant {
        AssertionGrant {
            key_file: Held::new(&settings.key_file, Fit::File, files),
            scopes: settings.scopes.join(" "),
        }
    }

    pub(super) async fn call(&self, means: &Means) -> Result<Granted, TokenError> {
        let text = self.key_file.value().await;
        let text = text.map_err(|error| TokenError::NoSecret(error.to_string()))?;
        let key = ServiceKey::read(&text);
        let unreadable = |error: KeyFileError| TokenError::NoSecret(error.to_string());
        let key = key.map_err(unreadable)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let assertion = key.assertion(&self.scopes, now).map_err(unreadable)?;
        let form = format!("grant_type={}&assertion={}", escape(GRANT_TYPE), *assertion);
        ask(means, &key.token_uri, Zeroizing::new(form)).await
    }
}

impl ServiceKey {
    /// Reads a key file as Google gives it out.
    pub(crate) fn read(text: &Secret) -> Result<ServiceKey, KeyFileError> {
        let (document, repeated) = Document::read(text.reveal()).map_err(|_| KeyFileError::Json)?;
        let (document, place) = (Wiped::new(document), Place::Root);
        let object = Object::read(&document, &place, &mut Report::default());
        let object = object.filter(|_| repeated.is_empty()).ok_or(KeyFileError::Json)?;
        let field = |name: &'static str| match object.get(name) {
            Some(Document::String(text)) if !text.is_empty() => Ok(text.as_str()),
            _ => Err(KeyFileError::Missing(name)),
        };
        if field("type")? != "service_account" {
            return Err(KeyFileError::Type);
        }
        let audience = field("token_uri")?;
        Ok(ServiceKey {
            email: field("client_email")?.to_owned(),
            key_id: field("private_key_id").ok().map(str::to_owned),
            pair: key_pair(field("private_key")?)?,
            token_uri: TokenUrl::parse(audience).map_err(KeyFileError::TokenUri)?,
            audience: audience.to_owned(),
        })
    }

    /// A JWT that is good from `now` on, in seconds since 1970.
    fn assertion(&self, scopes: &str, now: u64) -> Result<Zeroizing<String>, KeyFileError> {
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(key_id) = &self.key_id {
            header["kid"] = key_id.as_str().into();
        }
        let claims = json!({
            "iss": self.email,
            "scope": scopes,
            "aud": self.audience,
            "iat": now,
            "exp": now + GOOD_FOR,
        });
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        let (header, claims) = (header.to_string(), claims.to_string());
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| KeyFileError::PrivateKey)?;
        Ok(Zeroizing::new(format!("{signed}.{}", encode(&signature))))
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceKey(…)")
    }
}

/// RFC 7468 §10, in one block.
fn key_pair(pem: &str) -> Result<RsaKeyPair, KeyFileError> {
    let inside = pem
        .trim()
        .strip_prefix("-----BEGIN PRIVATE KEY-----")
        .and_then(|rest| rest.strip_suffix("-----END PRIVATE KEY-----"))
        .ok_or(KeyFileError::PrivateKey)?;
    let mut text = Zeroizing::new(String::with_capacity(inside.len()));
    text.extend(inside.split_ascii_whitespace());
    let der = STANDARD.decode(text.as_bytes()).map_err(|_| KeyFileError::PrivateKey)?;
    RsaKeyPair::from_pkcs8(&Zeroizing::new(der)).map_err(|_| KeyFileError::PrivateKey)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    fn key_file() -> (Value, Vec<u8>) {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'_> = pair.as_der().expect("it can be written");
        let text = STANDARD.encode(der.as_ref());
        let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            lines.join("\n")
        );
        let file = json!({
            "type": "service_account", "project_id": "p", "private_key_id": "abc123",
            "private_key": pem, "client_email": "robot@p.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
        });
        (file, pair.public_key().as_ref().to_vec())
    }

    fn read(file: &Value) -> Result<ServiceKey, KeyFileError> {
        ServiceKey::read(&Secret::parse(file.to_string(), Fit::File).expect("a text"))
    }

    #[test]
    fn states_who_asks_for_what_for_an_hour_signed_with_the_key() {
        let (file, public) = key_file();
        let key = read(&file).expect("a key file");
        let jwt = key.assertion("a b", 1_000_000).expect("signed");
        let parts: Vec<_> = jwt.split('.').collect();
        let json = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
        };
        assert_eq!(json(parts[0]), json!({"alg": "RS256", "typ": "JWT", "kid": "abc123"}));
        let claims = json!({
            "iss": "robot@p.iam.gserviceaccount.com", "scope": "a b",
            "aud": "https://oauth2.googleapis.com/token", "iat": 1_000_000, "exp": 1_003_600,
        });
        assert_eq!(json(parts[1]), claims);
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).expect("base64");
        let signed = format!("{}.{}", parts[0], parts[1]);
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
        public.verify(signed.as_bytes(), &signature).expect("a good signature");
        assert!(public.verify(b"other", &signature).is_err());
    }

    #[test]
    fn takes_no_file_that_would_not_work_and_quotes_nothing_of_it() {
        let (file, _) = key_file();
        let with = |name: &str, value: Value| {
            let mut file = file.clone();
            file[name] = value;
            read(&file).expect_err("refused")
        };
        assert_eq!(with("type", json!("authorized_user")), KeyFileError::Type);
        assert_eq!(with("client_email", json!("")), KeyFileError::Missing("client_email"));
        assert_eq!(with("private_key", json!(1)), KeyFileError::Missing("private_key"));
        for url in ["http://a.test/token", "https://u:p@a.test/", "a.test"] {
            let refused = with("token_uri", json!(url));
            assert!(matches!(refused, KeyFileError::TokenUri(_)), "{url}");
        }
        let pem = file["private_key"].as_str().expect("text");
        for key in [
            pem.replace("PRIVATE KEY", "RSA PRIVATE KEY"),
            pem.replace("-----END PRIVATE KEY-----", ""),
            pem.replace("MII", "AAA"),
            format!("{pem}{pem}"),
        ] {
            assert_eq!(with("private_key", json!(key)), KeyFileError::PrivateKey);
        }
        for text in ["", "[]", r#"{"type": "service_account", "type": "x"}"#] {
            let secret = Secret::parse(format!("{text} "), Fit::File).expect("a text");
            assert_eq!(ServiceKey::read(&secret).err(), Some(KeyFileError::Json), "{text}");
        }
    }
}
