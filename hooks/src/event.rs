//! What does the runtime ask about? One tool call, read strictly, its arguments kept byte for byte.
//!
//! Strictly, because two readers of a lenient text could see two calls: the hook would judge one
//! and the runtime make the other. Byte for byte, because a tree would lose large integers and the
//! order of keys, and a bound on depth would be a way past the gate.

use outgate_policy::EnvironmentId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::hook_set::{Phase, ToolKind};
use crate::json_keys::{self, RepeatedKey};

/// An event of 8 MiB holds a file to be written. One that is larger is not approved.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// One tool call, before or after it was made.
#[derive(Debug)]
pub struct Event {
    tool_call: ToolCall,
    error: Option<String>,
    kind: ToolKind,
}

/// Why a text is no event; the tool call it may have meant is not approved. Quotes nothing of it
/// but a name: arguments may be secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Beyond the bound.
    #[error("the event has more than {MAX_EVENT_BYTES} bytes, so it is not approved")]
    Large,
    /// No JSON of the right shape.
    #[error("not an event {{\"tool_call\": {{\"name\": …, \"args\": {{…}}}}}}: {0}")]
    Malformed(String),
    /// A key twice in one object.
    #[error(transparent)]
    RepeatedKey(#[from] RepeatedKey),
    /// `args` is a list or a plain value.
    #[error("tool_call.args: expected an object")]
    Args,
    /// A call of nothing.
    #[error("tool_call.name: empty")]
    Name,
}

impl Event {
    /// Reads the body of an event.
    pub fn parse(text: &[u8]) -> Result<Event, EventError> {
        if text.len() > MAX_EVENT_BYTES {
            return Err(EventError::Large);
        }
        let text =
            std::str::from_utf8(text).map_err(|error| EventError::Malformed(error.to_string()))?;
        let body: Body<'_> = read_object(text)?;
        json_keys::check(text)?;
        let tool_call: ToolCall = read_object(body.tool_call.get())?;
        if json_keys::object(tool_call.args.get()).is_none() {
            return Err(EventError::Args);
        }
        if tool_call.name.is_empty() {
            return Err(EventError::Name);
        }
        Ok(Event { tool_call, error: body.error, kind: body.kind.unwrap_or_default() })
    }

    /// The tool's name, as it was sent.
    pub fn name(&self) -> &str {
        &self.tool_call.name
    }

    /// What kind of tool it is.
    pub fn kind(&self) -> ToolKind {
        self.kind
    }

    /// What a handler is given.
    pub fn payload(&self, phase: Phase, environment: &EnvironmentId) -> Vec<u8> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let error = match (&self.error, phase) {
            (Some(error), Phase::PostToolExecution) if !error.is_empty() => {
                format!(r#","error":{}"#, text(error))
            }
            _ => String::new(),
        };
        format!(
            r#"{{"tool_call":{{"name":{},"args":{}}},"environment_id":{}{error}}}"#,
            text(&self.tool_call.name),
            self.tool_call.args.get(),
            text(environment.as_str()),
        )
        .into_bytes()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'t> {
    #[serde(borrow)]
    tool_call: &'t RawValue,
    error: Option<String>,
    kind: Option<ToolKind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    name: String,
    args: Box<RawValue>,
}

/// A struct would be read from a list too, field after field.
fn read_object<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, EventError> {
    let text = json_keys::object(text)
        .ok_or_else(|| EventError::Malformed("expected an object".to_owned()))?;
    serde_json::from_str(text).map_err(|error| EventError::Malformed(describe(&error)))
}

/// serde_json quotes values where a kind is wrong (`invalid type: string "…"`); those stay out.
fn describe(error: &serde_json::Error) -> String {
    let place = format!("line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let shown = ["missing field", "unknown field", "duplicate field", "unknown kind"];
    match error.classify() {
        serde_json::error::Category::Data if !shown.iter().any(|known| text.starts_with(known)) => {
            format!("a value of the wrong kind at {place}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(text: &str, phase: Phase) -> String {
        let environment = EnvironmentId::parse("env_1").expect("an id");
        let event = Event::parse(text.as_bytes()).expect(text);
        String::from_utf8(event.payload(phase, &environment)).expect("UTF-8")
    }

    #[test]
    fn the_payload_has_the_arguments_byte_for_byte() {
        let args = r#"{ "z":1, "a": 12345678901234567890123, "f":1.10,"e":"\u00e9\/", "n":[ ] }"#;
        let text = format!(r#"{{"tool_call": {{"args": {args}, "name": "view_\u0066ile"}}}}"#);
        assert_eq!(
            payload(&text, Phase::PreToolExecution),
            format!(
                r#"{{"tool_call":{{"name":"view_file","args":{args}}},"environment_id":"env_1"}}"#
            )
        );
    }

    #[test]
    fn the_error_is_in_the_payload_after_a_call_only() {
        let text =
            r#"{"tool_call": {"name": "x", "args": {}}, "error": "no\nfile", "kind": "builtin"}"#;
        assert!(payload(text, Phase::PostToolExecution).ends_with(r#","error":"no\nfile"}"#));
        assert!(!payload(text, Phase::PreToolExecution).contains("error"));
        let silent = r#"{"tool_call": {"name": "x", "args": {}}}"#;
        assert!(!payload(silent, Phase::PostToolExecution).contains("error"));
    }

    #[test]
    fn arguments_may_be_nested_as_deep_as_they_like() {
        let deep = format!("{}1{}", r#"{"a":["#.repeat(100_000), "]}".repeat(100_000));
        let text = format!(r#"{{"tool_call":{{"name":"x","args":{deep}}}}}"#);
        assert!(payload(&text, Phase::PreToolExecution).contains(&deep));
    }

    #[test]
    fn refuses_what_two_readers_could_read_in_two_ways() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            r#"{"tool_call": null}"#,
            r#"{"tool_call": {"name": "x"}}"#,
            r#"{"tool_call": {"args": {}}}"#,
            r#"{"tool_call": {"name": "", "args": {}}}"#,
            r#"{"tool_call": {"name": 1, "args": {}}}"#,
            r#"{"tool_call": {"name": "x", "args": []}}"#,
            r#"{"tool_call": {"name": "x", "args": "{}"}}"#,
            r#"{"tool_call": {"name": "x", "args": null}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}} {}"#,
            r#"{"tool_call": {"name": "x", "args": {},}}"#,
            r#"{"tool_call": {"name": "x", "name": "y", "args": {}}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "tool_call": {"name": "x", "args": {}}}"#,
            r#"{"tool_call": {"name": "x", "args": {"a": 1, "a": 2}}}"#,
            r#"{"tool_call": {"name": "x", "args": {"a": 1, "\u0061": 2}}}"#,
            r#"{"tool_call": {"name": "x", "args": {"l": [{"b": {"c": 1, "d": 2, "c": 3}}]}}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "kind": "bulitin"}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "knd": "function"}"#,
            r#"{"tool_call": {"name": "x", "args": {}, "id": "1"}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "error": 1}"#,
            r#"[{"name": "x", "args": {}}, null, null]"#,
            r#"{"tool_call": ["x", {}]}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "kind": {"builtin": null}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}, "kind": ["builtin"]}"#,
            r#"{"tool_call": {"name": "x", "args": {"\ud800": 1, "\udc00": 2}}}"#,
            "\u{feff}{\"tool_call\": {\"name\": \"x\", \"args\": {}}}",
        ] {
            assert!(Event::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Event::parse(b"{\"tool_call\": {\"name\": \"\xff\", \"args\": {}}}").is_err());
    }

    #[test]
    fn refuses_an_event_over_its_bound_and_takes_one_at_it() {
        let around = r#"{"tool_call": {"name": "x", "args": {"a": ""}}}"#.len();
        let event = |len: usize| {
            format!(r#"{{"tool_call": {{"name": "x", "args": {{"a": "{}"}}}}}}"#, "x".repeat(len))
        };
        assert!(Event::parse(event(MAX_EVENT_BYTES - around).as_bytes()).is_ok());
        let larger = event(MAX_EVENT_BYTES - around + 1);
        assert_eq!(Event::parse(larger.as_bytes()).expect_err("large"), EventError::Large);
    }

    #[test]
    fn an_error_quotes_no_argument() {
        for text in [
            r#"{"tool_call": {"name": "x", "args": {}}, "error": ["hunter2"]}"#,
            r#"{"tool_call": "hunter2"}"#,
            r#"{"tool_call": {"name": "x", "args": {"a": "hunter2" "b"}}}"#,
        ] {
            let error = Event::parse(text.as_bytes()).expect_err("malformed").to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
