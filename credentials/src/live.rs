//! What does one stored credential put on the wire at this moment?

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use outgate_policy::CredentialId;
use zeroize::Zeroizing;

use crate::credential::{AwsKey, Credential, Kind};
use crate::oauth2::{AssertionGrant, Grant, Means, Minter, RefreshGrant, TokenError};
use crate::query::escape;
use crate::secret::{Fit, Secret, SecretError, header_value};
use crate::sigv4::Signer;
use crate::source::{Files, Held, Reader, SourceError, Value};
use crate::store::Version;

/// One stored credential, ready to be used. Another is made when its owner changes it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) credential: Credential,
    pub(crate) version: Version,
    /// When it was created and last changed, in milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    way: Way,
}

/// What is put on a request.
#[derive(Clone, Debug)]
pub(crate) enum Material {
    /// With the value alone, where a prefix stands before it.
    Header(HeaderName, HeaderValue, Option<Secret>),
    /// The parameter's name, and `name=value` escaped.
    Query(Arc<str>, Secret),
    /// The value of a variable, for where its placeholder stands.
    Value(Secret),
    /// What the whole request is signed with.
    Signer(Signer),
}

/// Where it comes from.
#[derive(Debug)]
enum Way {
    Given(Material),
    Read(Arc<Reader>),
    Minted(Arc<Minter>, Arc<Means>),
    Signed(Box<KeyPair>),
}

/// The parts of a [`Signer`].
#[derive(Debug)]
struct KeyPair {
    access_key_id: Arc<str>,
    secret: Held,
    session_token: Option<Held>,
}

/// Why a request that needs a credential is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Value(#[from] SecretError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl Live {
    pub(crate) fn new(
        credential: Credential,
        version: Version,
        means: Arc<Means>,
    ) -> Result<Live, SecretError> {
        let way = match &credential.kind {
            Kind::OAuth2(settings) => {
                minted(Grant::Refresh(RefreshGrant::new(settings, &means.files)), means)
            }
            Kind::GcpServiceAccount(settings) => {
                minted(Grant::Assertion(AssertionGrant::new(settings, &means.files)), means)
            }
            Kind::AwsSigV4(key) => Way::Signed(Box::new(KeyPair::new(key, &means.files))),
            kind => match Held::new(credential.value(), fit(kind), &means.files) {
                Held::Given(secret) => Way::Given(material(kind, &secret)?),
                Held::Read(reader) => Way::Read(reader),
            },
        };
        Ok(Live { credential, version, created: 0, updated: 0, way })
    }

    /// Whether what it puts on the wire has a form that fits there.
    pub(crate) fn check(credential: &Credential) -> Result<(), SecretError> {
        match credential.value() {
            Value::Given(secret) => material(&credential.kind, secret).map(drop),
            Value::From(_) => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> &CredentialId {
        &self.credential.id
    }

    /// What it puts on a request that is sent now.
    pub(crate) async fn material(&self) -> Result<Material, LiveError> {
        match &self.way {
            Way::Given(material) => Ok(material.clone()),
            Way::Read(reader) => {
                let secret = reader.value().await?;
                Ok(material(&self.credential.kind, &secret)?)
            }
            Way::Minted(minter, means) => {
                let header = minter.token(means).await?;
                Ok(Material::Header(http::header::AUTHORIZATION, header, None))
            }
            Way::Signed(pair) => Ok(Material::Signer(pair.now().await?)),
        }
    }

    /// An origin refused `header`. Whether the next one may be another.
    pub(crate) async fn refused(&self, header: &HeaderValue) -> bool {
        match &self.way {
            Way::Minted(minter, _) => minter.refused(header).await,
            Way::Given(_) | Way::Read(_) | Way::Signed(_) => false,
        }
    }

    /// Its token endpoint said that it is no good any more.
    pub(crate) fn is_revoked(&self) -> bool {
        match &self.way {
            Way::Minted(minter, _) => minter.is_revoked(),
            Way::Given(_) | Way::Read(_) | Way::Signed(_) => false,
        }
    }
}

impl KeyPair {
    fn new(key: &AwsKey, files: &Arc<Files>) -> KeyPair {
        let held = |value: &Value| Held::new(value, Fit::Header, files);
        KeyPair {
            access_key_id: Arc::from(key.access_key_id.as_str()),
            secret: held(&key.secret_access_key),
            session_token: key.session_token.as_ref().map(held),
        }
    }

    async fn now(&self) -> Result<Signer, SourceError> {
        let session_token = match &self.session_token {
            Some(token) => Some(token.value().await?),
            None => None,
        };
        let secret = self.secret.value().await?;
        Ok(Signer { access_key_id: Arc::clone(&self.access_key_id), secret, session_token })
    }
}

fn minted(grant: Grant, means: Arc<Means>) -> Way {
    Way::Minted(Arc::new(Minter::new(grant)), means)
}

fn fit(kind: &Kind) -> Fit {
    match kind {
        Kind::BearerToken { .. } => Fit::Header,
        Kind::EnvironmentVariable(variable) => variable.locations.fit(),
        _ => Fit::Text,
    }
}

fn material(kind: &Kind, secret: &Secret) -> Result<Material, SecretError> {
    let value = secret.reveal();
    Ok(match kind {
        Kind::BearerToken { header_name, prefix, .. } => {
            let (text, bare) = match prefix.as_str() {
                "" => (Zeroizing::new(value.to_owned()), None),
                prefix => (Zeroizing::new(format!("{prefix} {value}")), Some(secret.clone())),
            };
            Material::Header(header_name.clone(), header_value(&text)?, bare)
        }
        Kind::Basic { username, .. } => {
            let pair = Zeroizing::new(format!("{username}:{value}"));
            let text =
                Zeroizing::new(format!("Basic {}", *Zeroizing::new(STANDARD.encode(&*pair))));
            Material::Header(http::header::AUTHORIZATION, header_value(&text)?, None)
        }
        Kind::ApiKeyQuery { name, .. } => {
            let pair = format!("{}={}", escape(name), *Zeroizing::new(escape(value)));
            Material::Query(Arc::from(name.as_str()), Secret::parse(pair, Fit::Header)?)
        }
        Kind::EnvironmentVariable(_)
        | Kind::OAuth2(_)
        | Kind::AwsSigV4(_)
        | Kind::GcpServiceAccount(_) => Material::Value(secret.clone()),
    })
}

#[cfg(test)]
mod tests {
    use outgate_policy::Document;

    use super::*;

    fn given(text: &str) -> Material {
        let (document, _) = Document::read(text).expect("JSON");
        let credential = Credential::read(&document, None).expect("a credential");
        let Value::Given(secret) = credential.value() else { panic!("given") };
        material(&credential.kind, secret).expect("fits")
    }

    #[test]
    fn each_kind_goes_on_the_wire_as_specified() {
        let header = |text: &str| match given(text) {
            Material::Header(name, value, _) => {
                assert!(value.is_sensitive());
                format!("{name}: {}", value.to_str().expect("text"))
            }
            other => panic!("{other:?}"),
        };
        let bearer = r#"{"id": "a", "type": "bearer_token", "token": "t""#;
        assert_eq!(header(&format!("{bearer}}}")), "authorization: Bearer t");
        let named = format!(r#"{bearer}, "header_name": "X-Api-Key", "prefix": ""}}"#);
        assert_eq!(header(&named), "x-api-key: t");
        let prefixed = format!(r#"{bearer}, "prefix": "token"}}"#);
        assert_eq!(header(&prefixed), "authorization: token t");
        let basic = r#"{"id": "a", "type": "basic", "username": "u", "password": "pä"}"#;
        assert_eq!(header(basic), "authorization: Basic dTpww6Q=");
        let query = r#"{"id": "a", "type": "api_key_query", "name": "k y", "key": "a&b"}"#;
        let Material::Query(name, pair) = given(query) else { panic!("a parameter") };
        assert_eq!((&*name, pair.reveal()), ("k y", "k%20y=a%26b"));
    }
}
