//! What is wrong with a file, and where? Collected, so that a person sees every problem at once.

use std::fmt;

/// One thing that is wrong: its place and what would be right. Quotes no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The JSON path, as in `network.allowlist[2].domain`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// What must be mended; never empty.
    pub problems: Vec<Problem>,
    /// What is worth a look besides.
    pub warnings: Vec<Problem>,
}

impl Problem {
    /// A problem at `path`. The message quotes no secret.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The problems, one a line; the warnings are left to the caller.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
