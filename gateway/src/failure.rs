//! How does the program end when it can't do what it was asked?

use std::fmt::Display;

/// Why a command ended without success, with its exit code.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    code: u8,
    /// `None` when it was already shown.
    message: Option<String>,
}

impl Failure {
    /// A problem of what the program was given: exit 1.
    pub(crate) fn input(message: impl Display) -> Failure {
        Failure { code: 1, message: Some(message.to_string()) }
    }

    /// Exit 1 after everything that went wrong has been printed.
    pub(crate) fn shown() -> Failure {
        Failure { code: 1, message: None }
    }

    /// A command line that makes no sense and was explained: exit 64 (`EX_USAGE`).
    pub(crate) fn usage_shown() -> Failure {
        Failure { code: 64, message: None }
    }

    /// A command line that makes no sense: exit 64 (`EX_USAGE`).
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure { code: 64, message: Some(message.to_string()) }
    }

    /// What was asked is right, but it can't be done here: exit 70.
    pub(crate) fn start(message: impl Display) -> Failure {
        Failure { code: 70, message: Some(message.to_string()) }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}
