//! Which ids may environments and credentials have? Ones that are safe in a file name, a log line
//! and a generated configuration.

use std::fmt;
use std::sync::Arc;

const MAX_LEN: usize = 63;

/// Names one environment. 1 to 63 of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvironmentId(Arc<str>);

/// Names one stored credential. The same grammar as [`EnvironmentId`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialId(Arc<str>);

/// A text that is no id. The text is left to the caller to quote.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 1 to {MAX_LEN} of the characters A-Z a-z 0-9 _ -")]
pub struct IdError;

impl EnvironmentId {
    /// Checks an id.
    pub fn parse(text: &str) -> Result<EnvironmentId, IdError> {
        check(text).map(EnvironmentId)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CredentialId {
    /// Checks an id.
    pub fn parse(text: &str) -> Result<CredentialId, IdError> {
        check(text).map(CredentialId)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(text: &str) -> Result<Arc<str>, IdError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_LEN).contains(&text.len()) && text.bytes().all(is_allowed) {
        Ok(Arc::from(text))
    } else {
        Err(IdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_ids_that_mean_something_elsewhere() {
        for text in ["", "../../e1", "e1\"; drop", "e 1", "e.1", "é", "a\n", &"a".repeat(64)] {
            assert_eq!(EnvironmentId::parse(text), Err(IdError), "{text}");
        }
        for text in ["e", "env_xyz789", "-", "A-Z_0", &"a".repeat(63)] {
            assert!(CredentialId::parse(text).is_ok(), "{text}");
        }
    }
}
