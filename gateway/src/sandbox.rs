//! How does a command come to run where nothing but the gateway can be reached?
//!
//! ```text
//! outgate run           Launched::launch, serves the sockets, Launched::start, Running::event
//!   └ outgate-sandbox   this program again, one thread: namespaces, network, sockets passed out
//!       └ PID 1         root of the file system, preparations, then no rights at all; reaps
//!           └ COMMAND   no capability, no new privileges, a filter on system calls
//! ```
//!
//! The launcher executes itself anew because a process with threads can't enter a user namespace,
//! and so that nothing of the gateway's memory is in there. Whatever part of the chain dies, all
//! below it does.

mod channel;
mod descriptors;
mod environment_variables;
mod error;
mod filesystem;
mod hook;
mod init;
mod launch;
mod launcher;
mod message;
mod namespace;
mod network;
mod plan;
mod preparation;
mod privileges;
mod running;
mod seccomp;
mod task;
mod terminal;

pub(crate) use self::descriptors::leave_input_and_output;
pub(crate) use self::environment_variables::{proxies_in, variables};
pub(crate) use self::error::SandboxError;
pub(crate) use self::filesystem::{
    FilesystemPlan, FilesystemRequest, FoundSockets, PlanError, SocketSearch, real_name,
    trust_paths,
};
pub(crate) use self::launch::{Launched, blocked_signals};
pub(crate) use self::launcher::take_over;
pub(crate) use self::network::{Capture, OWN_V4, OWN_V6, Sockets};
pub(crate) use self::plan::{Plan, Preparation, Task};
pub(crate) use self::running::{Event, Running};
