//! How did each handler end, and what does that mean for the tool call?

use serde::Serialize;

use crate::hook_set::HandlerKind;
use crate::reason::Reason;

/// What the runtime is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Names this run, in the audit lines too.
    pub id: String,
    /// Whether the call may be made. After one, always allow.
    pub decision: Verdict,
    /// Why not, if a hook said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Every handler that was concerned, in order.
    pub outcomes: Vec<Outcome>,
}

/// Whether the call may be made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// How one handler ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Its group; of a file that can't be read, the file.
    pub group: String,
    /// Its place in the group. A group or file that can't be read has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<HandlerKind>,
    /// How it ended.
    pub outcome: Ending,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// How long it took, without the time in the queue.
    pub milliseconds: u64,
    /// Whether it stands against the call: a deny, or a failure that denies. For audit lines; the
    /// answer says it once, for all.
    #[serde(skip)]
    pub denied: bool,
}

/// How a handler can end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It allowed the call, or ran after it.
    Allow,
    /// It denied the call.
    Deny,
    /// It gave no answer.
    Failed,
    /// An earlier one denied the call.
    Skipped,
}

/// Why a handler gave no answer: the stable codes, in answers, audit lines and metrics.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The command ended with another status than 0.
    ExitStatus,
    /// A signal ended the command.
    Signal,
    /// No answer within the handler's time.
    Timeout,
    /// The command could not be started.
    CannotStart,
    /// There is no sandbox for the command to run in.
    NoSandbox,
    /// What watches over the command is gone.
    Supervision,
    /// The URL can't be used, or the environment's policy refuses it.
    UrlRefused,
    /// No exchange with the URL's host could be made, or it broke off.
    Transport,
    /// The status was not 2xx.
    HttpStatus,
    /// Nothing was printed or answered.
    EmptyOutput,
    /// Not the JSON of a decision.
    InvalidOutput,
    /// More than 1 MiB.
    OutputTooLarge,
    /// Nobody waited for the answer any longer.
    Cancelled,
    /// The group can't be read.
    InvalidGroup,
    /// The file can't be read, and has no good predecessor.
    InvalidFile,
}

impl Cause {
    /// Every cause, for documents and metrics.
    pub const ALL: [Cause; 15] = [
        Cause::ExitStatus,
        Cause::Signal,
        Cause::Timeout,
        Cause::CannotStart,
        Cause::NoSandbox,
        Cause::Supervision,
        Cause::UrlRefused,
        Cause::Transport,
        Cause::HttpStatus,
        Cause::EmptyOutput,
        Cause::InvalidOutput,
        Cause::OutputTooLarge,
        Cause::Cancelled,
        Cause::InvalidGroup,
        Cause::InvalidFile,
    ];

    /// The code.
    pub fn code(self) -> &'static str {
        match self {
            Cause::ExitStatus => "exit_status",
            Cause::Signal => "signal",
            Cause::Timeout => "timeout",
            Cause::CannotStart => "cannot_start",
            Cause::NoSandbox => "no_sandbox",
            Cause::Supervision => "supervision",
            Cause::UrlRefused => "url_refused",
            Cause::Transport => "transport",
            Cause::HttpStatus => "http_status",
            Cause::EmptyOutput => "empty_output",
            Cause::InvalidOutput => "invalid_output",
            Cause::OutputTooLarge => "output_too_large",
            Cause::Cancelled => "cancelled",
            Cause::InvalidGroup => "invalid_group",
            Cause::InvalidFile => "invalid_file",
        }
    }
}

/// A failure, with what a person needs to mend it. The detail goes to the log, not to the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub cause: Cause,
    /// What was seen: a status, an errno. Quotes no output.
    pub detail: String,
}

impl Failure {
    /// A failure.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Failure {
        Failure { cause, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_what_the_json_says() {
        for cause in Cause::ALL {
            assert_eq!(serde_json::to_value(cause).expect("JSON"), cause.code());
        }
    }

    #[test]
    fn the_answer_has_the_fields_of_the_reference() {
        let outcome = |handler: Option<&str>, outcome, cause| Outcome {
            group: "gate".to_owned(),
            handler: handler.map(str::to_owned),
            kind: handler.map(|_| HandlerKind::Command),
            outcome,
            cause,
            milliseconds: 3,
            denied: outcome == Ending::Deny,
        };
        let answer = Answer {
            id: "h1".to_owned(),
            decision: Verdict::Deny,
            reason: Some(Reason::new("no")),
            outcomes: vec![
                outcome(Some("pre_tool_execution[0].hooks[0]"), Ending::Deny, None),
                outcome(None, Ending::Failed, Some(Cause::InvalidGroup)),
            ],
        };
        assert_eq!(
            serde_json::to_string(&answer).expect("JSON"),
            concat!(
                r#"{"id":"h1","decision":"deny","reason":"no","outcomes":["#,
                r#"{"group":"gate","handler":"pre_tool_execution[0].hooks[0]","type":"command","#,
                r#""outcome":"deny","milliseconds":3},"#,
                r#"{"group":"gate","outcome":"failed","cause":"invalid_group","milliseconds":3}]}"#
            )
        );
    }
}
