//! Did a handler allow or deny? Only the JSON of the reference is an answer.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_keys;
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
/// space around it and other fields inside, of any depth and with any number. A reason that is no
/// text is left out: it takes nothing from a deny.
pub fn parse(answer: &[u8]) -> Result<Decision, Cause> {
    if answer.iter().all(u8::is_ascii_whitespace) {
        return Err(Cause::EmptyOutput);
    }
    read(answer).ok_or(Cause::InvalidOutput)
}

fn read(answer: &[u8]) -> Option<Decision> {
    let text = std::str::from_utf8(answer).ok()?;
    // A struct would be read from a list too; and a byte order mark is text around it.
    json_keys::object(text)?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    json_keys::check(text).ok()?;
    match decoded(fields.decision)?.as_str() {
        "allow" => Some(Decision::Allow),
        "deny" => {
            let reason = fields.reason.and_then(decoded);
            Some(Decision::Deny(reason.as_deref().map(Reason::new)))
        }
        _ => None,
    }
}

/// Not decoded while the text is read: half a surrogate pair in a reason, or a number beyond a
/// float in a field that is ignored, is no reason to lose a deny.
#[derive(Deserialize)]
struct Fields<'t> {
    #[serde(borrow)]
    decision: &'t RawValue,
    #[serde(borrow, default)]
    reason: Option<&'t RawValue>,
}

/// The text that it is, if it is one.
fn decoded(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
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
    fn a_deny_is_not_lost_to_what_stands_beside_it() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for value in [r#""\ud800""#, r#""\udc00\ud800""#, "1e400", "-1e999", &deep] {
            for text in [
                format!(r#"{{"decision": "deny", "output": {value}}}"#),
                format!(r#"{{"output": {{"x": [{value}]}}, "decision": "deny"}}"#),
                format!(r#"{{"decision": "deny", "reason": {value}}}"#),
            ] {
                assert_eq!(parse(text.as_bytes()), Ok(Decision::Deny(None)), "{text:.60}");
            }
        }
    }

    #[test]
    fn everything_else_is_no_answer() {
        for text in [
            "{}",
            "null",
            "[]",
            r#"["deny"]"#,
            r#"["deny", "no"]"#,
            r#"{"decision": "den\ud800"}"#,
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
