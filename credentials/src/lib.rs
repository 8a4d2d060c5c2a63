//! WHICH secret goes on the wire? Credentials: stored once, referenced by id, rotated in one place,
//! and never seen by the sandbox, the logs or an API's answers.
//!
//! [`Credentials`] is the handle that the data path asks, per request: what the credentials of an
//! allowlist's entry put on it ([`Credentials::apply`]), and which values stand behind the
//! placeholders in it ([`Credentials::substitute`], [`Credentials::replacement`]). The same handle is what the management API
//! changes; what it changes is in force when its call returns.
//!
//! Where to look: `secret` holds a value, `credential` says which kinds there are and reads them,
//! `source` fetches values from elsewhere, `store` keeps them sealed, `oauth2` gets access tokens,
//! `placeholder`, `substitute`, `body` and `writing` are what the sandbox sees and what becomes of
//! it, `scrub` keeps values out of what comes back, `registry` puts all of it behind the handle.

mod body;
mod credential;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod live;
mod oauth2;
mod placeholder;
mod query;
mod registry;
pub mod scrub;
mod secret;
mod sigv4;
mod source;
mod store;
mod substitute;
mod wiped;
mod writing;

pub use body::{Found, Search, Watch};
pub use credential::{Credential, TokenUrl};
pub use oauth2::{Answering, MAX_ANSWER, TokenAnswer, TokenTransport};
pub use placeholder::Tag;
pub use query::without as without_parameter;
pub use registry::{
    Applied, Asker, Asking, Carrier, ChangeError, Credentials, Parameter, PlaceholderError,
    Replacement, Substituted, Summary, Unreadable, Used,
};
pub use secret::{Fit, Secret, SecretError};
pub use sigv4::{Claim, Payload, Signer, Subject, Unsignable};
pub use store::{
    Collection, CredentialStore, Expected, KeyError, LocalStore, Record, StoreError, StoreKey,
    Version,
};
pub use substitute::holds_placeholders;
pub use writing::Writing;
