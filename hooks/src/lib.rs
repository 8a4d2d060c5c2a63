//! MAY this tool call run? The hooks of an environment, asked one after the other.

mod command;
mod compile;
mod decision;
mod discovery;
mod engine;
mod event;
mod hook_set;
mod http;
mod json_keys;
mod matcher;
mod outcome;
mod reason;
mod sandbox;
mod supervisor;
mod url;

pub use command::{Spawner, Started, Streams};
pub use compile::{Compiled, MAX_FILE_BYTES, Unreadable, compile};
pub use decision::{Decision, parse as parse_decision};
pub use discovery::{Change, Discovery, Folder, Look, Notice, Places, Root, open_root};
pub use engine::{Busy, Engine, Run};
pub use event::{Event, EventError, MAX_EVENT_BYTES};
pub use hook_set::{
    Action, BrokenFile, Group, GroupState, Handler, HandlerKind, HookFile, HookSet, OnFailure,
    Phase, Rule, Rules, ToolKind,
};
pub use http::HookTransport;
pub use json_keys::RepeatedKey;
pub use matcher::{Matcher, MatcherError, Re2Error};
pub use outcome::{Answer, Cause, Ending, Failure, Outcome, Verdict};
pub use reason::Reason;
pub use sandbox::{InSandbox, Sandbox, spawn_supervisor};
pub use supervisor::supervise;
pub use url::{HookUrl, UrlError};
