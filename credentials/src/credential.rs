//! What kinds of credentials are there, and what does each say?
//!
//! A [`Credential`] is read from the JSON object that its owner wrote ([`Credential::read`]): every
//! problem at once, each naming a field and never a value.

mod fields;
mod read;

use std::fmt;
use std::path::Path;

use http::HeaderName;
use outgate_policy::{CredentialId, Destination, Host, HostPattern};

use crate::secret::{Fit, Secret};
use crate::source::{Source, Value};

pub(crate) use self::read::{has_field, with_field};

/// One stored credential.
#[derive(Clone, Debug)]
pub struct Credential {
    /// What entries and variables call it.
    pub id: CredentialId,
    pub(crate) kind: Kind,
}

/// The kinds, each with what it needs (SPEC 5).
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    BearerToken { token: Value, header_name: HeaderName, prefix: String },
    OAuth2(Box<OAuth2>),
    EnvironmentVariable(Variable),
    Basic { username: String, password: Value },
    ApiKeyQuery { name: String, key: Value },
    AwsSigV4(Box<AwsKey>),
    GcpServiceAccount(Box<ServiceAccount>),
}

/// A refresh token and where it is turned into access tokens (RFC 6749 §6).
#[derive(Clone, Debug)]
pub(crate) struct OAuth2 {
    pub(crate) client_id: String,
    pub(crate) client_secret: Value,
    pub(crate) refresh_token: Secret,
    pub(crate) token_url: TokenUrl,
    pub(crate) scopes: Vec<String>,
}

/// A key pair of AWS.
#[derive(Clone, Debug)]
pub(crate) struct AwsKey {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: Value,
    /// Where the pair is a temporary one.
    pub(crate) session_token: Option<Value>,
}

/// A key file of Google's, which is turned into access tokens (RFC 7523).
#[derive(Clone, Debug)]
pub(crate) struct ServiceAccount {
    pub(crate) key_file: Value,
    pub(crate) scopes: Vec<String>,
}

/// A value that the sandbox knows by a placeholder.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) value: Value,
    pub(crate) locations: Locations,
    /// `None`: what the environment's allowlist names.
    pub(crate) trusted: Option<Vec<Trusted>>,
    pub(crate) prefix: String,
}

/// Where in a request a placeholder may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locations {
    pub(crate) headers: bool,
    pub(crate) query: bool,
    pub(crate) body: bool,
}

/// Hosts, and the ports on them, that may be given the value.
#[derive(Clone, Debug)]
pub(crate) struct Trusted {
    pattern: HostPattern,
    port: Option<u16>,
}

/// An `https` URL without user, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUrl {
    /// Its host.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// Its path.
    pub path: String,
}

impl Credential {
    /// The word that its `type` says.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::BearerToken { .. } => "bearer_token",
            Kind::OAuth2(_) => "oauth2",
            Kind::EnvironmentVariable(_) => "environment_variable",
            Kind::Basic { .. } => "basic",
            Kind::ApiKeyQuery { .. } => "api_key_query",
            Kind::AwsSigV4(_) => "aws_sigv4",
            Kind::GcpServiceAccount(_) => "gcp_service_account",
        }
    }

    /// The header that it sets on the requests of an entry, if it sets one.
    pub fn header(&self) -> Option<&HeaderName> {
        match &self.kind {
            Kind::BearerToken { header_name, .. } => Some(header_name),
            Kind::OAuth2(_)
            | Kind::Basic { .. }
            | Kind::AwsSigV4(_)
            | Kind::GcpServiceAccount(_) => Some(&http::header::AUTHORIZATION),
            Kind::EnvironmentVariable(_) | Kind::ApiKeyQuery { .. } => None,
        }
    }

    /// Whether it stands for a variable of the sandbox, and not for an entry's requests.
    pub fn is_variable(&self) -> bool {
        matches!(self.kind, Kind::EnvironmentVariable(_))
    }

    /// Whether its placeholders may stand in bodies.
    pub(crate) fn goes_into_bodies(&self) -> bool {
        matches!(&self.kind, Kind::EnvironmentVariable(variable) if variable.locations.body)
    }

    /// The files that its values are read from, which no sandbox may see.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources().filter_map(|source| match source {
            Source::File(path) => Some(path.as_path()),
            Source::Variable(_) | Source::Command(_) => None,
        })
    }

    /// Whether a value of it is read from the machine that the gateway runs on.
    pub fn reads_this_machine(&self) -> bool {
        self.sources().next().is_some()
    }

    /// Where its values are read from.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.values().filter_map(|value| match value {
            Value::From(source) => Some(source),
            Value::Given(_) => None,
        })
    }

    /// The value that is the credential; others stand beside it.
    pub(crate) fn value(&self) -> &Value {
        self.both_values().0
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        let (one, other) = self.both_values();
        [one].into_iter().chain(other)
    }

    fn both_values(&self) -> (&Value, Option<&Value>) {
        match &self.kind {
            Kind::BearerToken { token, .. } => (token, None),
            Kind::OAuth2(oauth2) => (&oauth2.client_secret, None),
            Kind::EnvironmentVariable(variable) => (&variable.value, None),
            Kind::Basic { password, .. } => (password, None),
            Kind::ApiKeyQuery { key, .. } => (key, None),
            Kind::AwsSigV4(key) => (&key.secret_access_key, key.session_token.as_ref()),
            Kind::GcpServiceAccount(account) => (&account.key_file, None),
        }
    }
}

impl Locations {
    /// What a value has to be to fit wherever it may go.
    pub(crate) fn fit(self) -> Fit {
        match self {
            Locations { headers: true, .. } => Fit::Header,
            Locations { query: false, body: true, .. } => Fit::Body,
            Locations { .. } => Fit::Text,
        }
    }
}

impl TokenUrl {
    /// Host and port.
    pub fn destination(&self) -> Destination {
        Destination { host: self.host.clone(), port: self.port }
    }
}

impl Trusted {
    /// A pattern without a port means the ports of the web, as an entry's does.
    pub(crate) fn covers(&self, to: &Destination) -> bool {
        let port = self.port.map_or(matches!(to.port, 80 | 443), |port| port == to.port);
        port && self.pattern.matches(&to.host)
    }
}

impl fmt::Display for TokenUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            443 => write!(f, "https://{}{}", self.host, self.path),
            port => write!(f, "https://{}:{port}{}", self.host, self.path),
        }
    }
}
