//! What does a variable of the sandbox hold?

use std::fmt;

use crate::id::CredentialId;

/// The value of one variable of an environment's `env`.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// The text itself.
    Plain(String),
    /// A placeholder for the value of this stored credential.
    Credential(CredentialId),
}

/// People write secrets in plain values, so they are not shown.
impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnvValue::Plain(_) => f.write_str("Plain(…)"),
            EnvValue::Credential(id) => f.debug_tuple("Credential").field(id).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_no_plain_value() {
        let value = EnvValue::Plain("hunter2".to_owned());
        assert_eq!(format!("{value:?}"), "Plain(…)");
    }
}
