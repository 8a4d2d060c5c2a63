//! Which hooks are there, in which order, and what if one fails? Files of hooks, compiled and merged.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::matcher::Matcher;
use crate::url::HookUrl;

/// When a handler runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before a tool call: the answer decides.
    PreToolExecution,
    /// After one: the answer is ignored.
    PostToolExecution,
}

/// What kind of tool is called. Hooks are for the built-in ones unless a group says otherwise.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ToolKind {
    /// One of the runtime's own.
    #[default]
    Builtin,
    /// A function of the application.
    Function,
    /// A tool of an MCP server.
    McpServer,
}

/// What a failure means for the tool call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes on, as in the reference.
    #[default]
    Allow,
    /// It is cancelled.
    Deny,
}

/// One group of a hooks file.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: GroupState,
}

/// What a group does.
#[derive(Debug)]
pub enum GroupState {
    /// Nothing: `"enabled": false`.
    Off,
    /// It can't be read, so it fails on every event.
    Invalid {
        /// What its author wrote about failures, as far as that can be read.
        on_failure: OnFailure,
        /// Whose events it would have seen, as far as that can be read.
        kinds: Vec<ToolKind>,
    },
    /// It runs handlers.
    Active(Rules),
}

/// The rules of a group.
#[derive(Debug)]
pub struct Rules {
    /// Whose events it sees.
    pub kinds: Vec<ToolKind>,
    /// Before tool calls.
    pub pre: Vec<Rule>,
    /// After tool calls.
    pub post: Vec<Rule>,
}

/// Handlers for the tools of one matcher.
#[derive(Debug)]
pub struct Rule {
    /// Which tools.
    pub matcher: Matcher,
    /// What runs, one after the other.
    pub handlers: Vec<Handler>,
}

/// One handler.
#[derive(Debug)]
pub struct Handler {
    /// Its place in the group, as in `pre_tool_execution[0].hooks[1]`.
    pub place: String,
    /// What it does.
    pub action: Action,
    /// How long it may take.
    pub timeout: Duration,
    /// What its failure means.
    pub on_failure: OnFailure,
}

/// What a handler does.
#[derive(Debug)]
pub enum Action {
    /// `/bin/sh -c` inside the sandbox.
    Command(Arc<str>),
    /// A POST through the gateway.
    Http {
        /// Where to; `None` if the URL can't be used, and every call fails.
        url: Option<HookUrl>,
        /// What the author adds.
        headers: Vec<(HeaderName, HeaderValue)>,
    },
}

/// One file, read: its groups in their order.
#[derive(Debug, Default)]
pub struct HookFile {
    /// The groups.
    pub groups: Vec<Arc<Group>>,
}

/// A file that can't be used, and has no good predecessor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenFile {
    /// For a person: which one.
    pub name: String,
    /// What its author wrote about failures, as far as that can be read.
    pub on_failure: OnFailure,
}

/// All that is in force for one event.
#[derive(Debug, Default)]
pub struct HookSet {
    /// The groups, in the order in which they run.
    pub groups: Vec<Arc<Group>>,
    /// Files that fail on every event.
    pub broken: Vec<BrokenFile>,
}

impl Phase {
    /// The name in files and URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::PreToolExecution => "pre_tool_execution",
            Phase::PostToolExecution => "post_tool_execution",
        }
    }
}

/// From a text alone: a derived reader takes `{"builtin": null}` for one too.
impl TryFrom<String> for ToolKind {
    type Error = String;

    fn try_from(text: String) -> Result<ToolKind, String> {
        let known = ToolKind::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| *kind).ok_or_else(|| {
            let [builtin, function, mcp_server] = ToolKind::NAMES.map(|(name, _)| name);
            format!("unknown kind; write {builtin}, {function} or {mcp_server}")
        })
    }
}

impl ToolKind {
    /// What each is called in files and events.
    pub(crate) const NAMES: [(&'static str, ToolKind); 3] = [
        ("builtin", ToolKind::Builtin),
        ("function", ToolKind::Function),
        ("mcp_server", ToolKind::McpServer),
    ];
}

impl Rules {
    /// The rules of one phase.
    pub fn of(&self, phase: Phase) -> &[Rule] {
        match phase {
            Phase::PreToolExecution => &self.pre,
            Phase::PostToolExecution => &self.post,
        }
    }
}

impl Action {
    /// Its `type` in files and answers.
    pub fn kind(&self) -> HandlerKind {
        match self {
            Action::Command(_) => HandlerKind::Command,
            Action::Http { .. } => HandlerKind::Http,
        }
    }
}

/// The `type` of a handler.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HandlerKind {
    /// A command in the sandbox.
    Command,
    /// A POST.
    Http,
}

impl HookSet {
    /// Puts files together, the strongest first. Of two groups with one name the first stays: a
    /// file from the sandbox can't replace a group of the operator's.
    pub fn merge<'f>(files: impl IntoIterator<Item = &'f HookFile>) -> HookSet {
        let mut set = HookSet::default();
        let mut names = HashSet::new();
        for file in files {
            for group in &file.groups {
                if names.insert(group.name.as_str()) {
                    set.groups.push(Arc::clone(group));
                }
            }
        }
        set
    }
}
