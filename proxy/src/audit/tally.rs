//! What of an audit line is counted?
//!
//! Nothing of what a client may choose freely: the labels of metrics come from here.

use std::time::Duration;

use outgate_policy::Reason;

use super::line::{Kind, Line};

/// One written line, as metrics see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// It tells of a request; otherwise of a tunnel that carried none, or of a hook.
    pub request: bool,
    /// It tells of a handler of a hook: its event, its outcome, and why it failed.
    pub hook: Option<[&'static str; 3]>,
    /// The gateway refused it.
    pub denied: bool,
    /// Why it was refused, or why it failed.
    pub reason: Option<Reason>,
    /// Injected values came back in its answer.
    pub reflected: bool,
    /// Bytes towards the origin.
    pub bytes_up: u64,
    /// Bytes towards the client.
    pub bytes_down: u64,
    /// From its first to its last moment.
    pub lasted: Duration,
}

impl Tally {
    /// `None` for what is neither.
    pub(super) fn of(line: &Line) -> Option<Tally> {
        (line.kind != Kind::Credential).then(|| Tally {
            request: line.kind == Kind::Request,
            hook: line
                .hook
                .as_ref()
                .map(|hook| [hook.event, hook.outcome, hook.cause.unwrap_or("none")]),
            denied: line.denied,
            reason: line.reason,
            reflected: !line.reflected.is_empty(),
            bytes_up: line.bytes_up,
            bytes_down: line.bytes_down,
            lasted: line.times.total,
        })
    }
}
