//! What is a sandbox told to become?
//!
//! Made whole by the gateway's process and sent to the launcher: inside, nothing is read from the
//! surroundings any more.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::filesystem::FilesystemPlan;

/// Everything about one sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The ports that the environment names, for a kernel that can't capture all of them.
    pub(crate) ports: Vec<u16>,
    /// The root that the command sees.
    pub(crate) filesystem: FilesystemPlan,
    /// What runs before the command, one after the other.
    pub(crate) preparations: Vec<Preparation>,
    /// What becomes read-only between the two.
    pub(crate) read_only: Vec<OsString>,
    /// What the sandbox is for; without it, that is the preparations.
    pub(crate) command: Option<Task>,
    /// Whether it gets nothing of the caller's standard streams.
    pub(crate) silent: bool,
    /// Signals that were blocked when outgate was started: the command's too, as `env` has it.
    pub(crate) blocked_signals: Vec<i32>,
}

/// A program to run inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// A name, looked for in the `PATH` of `variables`, or a path.
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// All of its variables.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Its working directory, as seen inside.
    pub(crate) directory: OsString,
}

/// A program that must succeed before the command may start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Preparation {
    /// What it is for, as the message of its failure begins.
    pub(crate) purpose: String,
    pub(crate) task: Task,
    pub(crate) deadline: Duration,
}
