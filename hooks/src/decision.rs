//! Did a handler allow or deny? Only the JSON of the reference is an answer.

use outgate_policy::{Document, Object, Place, Report};

use crate::outcome::Cause;
use crate::reason::Reason;

/// What a handler decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Allow,
    /// It may not.
    Deny(Option<Reason>),
}

/// Reads an answer: `{"decision": "allow"}` or `{"decision": "deny", "reason": "…"}` with white
/// space around it and other fields inside. A reason that is no text is left out: it takes nothing
/// from a deny.
pub fn parse(answer: &[u8]) -> Result<Decision, Cause> {
    if answer.iter().all(u8::is_ascii_whitespace) {
        return Err(Cause::EmptyOutput);
    }
    read(answer).ok_or(Cause::InvalidOutput)
}

fn read(answer: &[u8]) -> Option<Decision> {
    // A byte order mark is text around it.
    let text = std::str::from_utf8(answer).ok().filter(|text| !text.starts_with('\u{feff}'))?;
    let (document, repeated) = Document::read(text).ok()?;
    let mut unread = Report::default();
    let object =
        Object::read(&document, &Place::Root, &mut unread).filter(|_| repeated.is_empty())?;
    match object.string("decision", &mut unread)? {
        "allow" => Some(Decision::Allow),
        "deny" => Some(Decision::Deny(object.string("reason", &mut unread).map(Reason::new))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_two_answers_of_the_reference() {
        for (text, decision) in [
            (r#"{"decision": "allow"}"#, Decision::Allow),
            (" \r\n\t{\"decision\":\"allow\",\"x\":[{}]}\n\n", Decision::Allow),
            (r#"{"decision": "deny"}"#, Decision::Deny(None)),
            (r#"{"reason": "no", "decision": "deny"}"#, Decision::Deny(Some(Reason::new("no")))),
            (r#"{"decision": "deny", "reason": null}"#, Decision::Deny(None)),
            (r#"{"decision": "deny", "reason": ["x"]}"#, Decision::Deny(None)),
            (r#"{"decisi\u006fn": "d\u0065ny"}"#, Decision::Deny(None)),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(decision), "{text}");
        }
    }

    #[test]
    fn everything_else_is_no_answer() {
        for text in [
            "{}",
            "null",
            "[]",
            "\"deny\"",
            "deny",
            r#"{"decision": "Deny"}"#,
            r#"{"decision": "DENY"}"#,
            r#"{"decision": "block"}"#,
            r#"{"decision": " deny"}"#,
            r#"{"decision": true}"#,
            r#"{"Decision": "deny"}"#,
            r#"[{"decision": "deny"}]"#,
            r#"{"decision": "deny"} x"#,
            r#"log {"decision": "deny"}"#,
            r#"{"decision": "deny"}{"decision": "allow"}"#,
            r#"{"decision": "deny", "decision": "allow"}"#,
            r#"{"decision": "allow", "decision": "allow"}"#,
            r#"{"decision": "deny", "x": {"a": 1, "a": 2}}"#,
            r#"{"decision": "deny",}"#,
            r#"{"decision": "deny""#,
            r#"{decision: "deny"}"#,
            r#"{'decision': 'deny'}"#,
            "\u{feff}{\"decision\": \"deny\"}",
            "{\"decision\": \"deny\"}\0",
            r#"{"permission": "deny"}"#,
            r#"{"reason": "no"}"#,
        ] {
            assert_eq!(parse(text.as_bytes()), Err(Cause::InvalidOutput), "{text}");
        }
        assert_eq!(parse(b"{\"decision\": \"deny\xff\"}"), Err(Cause::InvalidOutput));
        for text in ["", " ", "\n\r\t "] {
            assert_eq!(parse(text.as_bytes()), Err(Cause::EmptyOutput));
        }
    }
}
