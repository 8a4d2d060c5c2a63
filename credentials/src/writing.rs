//! How is a value written into a body, so that it means itself there and nothing else?

use zeroize::Zeroizing;

use crate::query;
use crate::substitute::Misfit;

/// What a text is, as far as that decides how a value is written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Inside a string (RFC 8259 §7).
    Json,
    /// As part of a name or a value of `application/x-www-form-urlencoded`.
    Form,
    /// As text or inside a quoted attribute.
    Xml,
    /// As it stands; a value with a line end in it doesn't go there, since it may become another
    /// line: a field of a part's head, for one.
    Plain,
}

impl Writing {
    /// How a body of this media type is written; `None` for bytes that are no text, into which
    /// nothing is written. An absent type is a plain text.
    pub fn of(content_type: Option<&str>) -> Option<Writing> {
        let Some(said) = content_type else { return Some(Writing::Plain) };
        let essence = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, name) = essence.split_once('/')?;
        // Each message says its length before itself.
        if kind == "application" && (name.starts_with("grpc") || name.starts_with("connect+")) {
            return None;
        }
        match (kind, name) {
            ("application", "x-www-form-urlencoded") => Some(Writing::Form),
            ("application" | "text", "xml") => Some(Writing::Xml),
            (_, name) if name.ends_with("+xml") => Some(Writing::Xml),
            ("application" | "text", name) if is_json(name) => Some(Writing::Json),
            (_, name) if name.ends_with("+json") => Some(Writing::Json),
            ("text" | "multipart", _) => Some(Writing::Plain),
            ("application", name) if is_plain(name) => Some(Writing::Plain),
            _ => None,
        }
    }

    /// How a text is written that says no type: JSON, if it begins like an object or an array.
    pub fn guess(text: &[u8]) -> Writing {
        match text.trim_ascii_start().first() {
            Some(b'{' | b'[') => Writing::Json,
            _ => Writing::Plain,
        }
    }

    pub(crate) fn write(self, value: &str) -> Result<Zeroizing<String>, Misfit> {
        match self {
            Writing::Json => Ok(escaped(value, json)),
            Writing::Form => Ok(Zeroizing::new(query::escape(value))),
            Writing::Xml => Ok(escaped(value, xml)),
            Writing::Plain if value.chars().any(char::is_control) => Err(Misfit::Value),
            Writing::Plain => Ok(Zeroizing::new(value.to_owned())),
        }
    }
}

fn is_json(name: &str) -> bool {
    matches!(
        name,
        "json" | "x-ndjson" | "ndjson" | "jsonl" | "x-jsonlines" | "jsonlines" | "json-seq"
    ) || name.starts_with("x-amz-json-")
}

fn is_plain(name: &str) -> bool {
    let known = matches!(
        name,
        "graphql"
            | "javascript"
            | "ecmascript"
            | "x-javascript"
            | "sql"
            | "toml"
            | "yaml"
            | "x-yaml"
    );
    known || name.ends_with("+yaml")
}

/// Room enough that nothing is moved, and left behind, while it grows.
fn escaped(value: &str, escape: fn(char) -> Option<&'static str>) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(6 * value.len()));
    for letter in value.chars() {
        match escape(letter) {
            Some(escape) => text.push_str(escape),
            None => text.push(letter),
        }
    }
    text
}

/// Of the control characters, a value has these at most.
fn json(letter: char) -> Option<&'static str> {
    Some(match letter {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\t' => "\\t",
        '\n' => "\\n",
        '\r' => "\\r",
        _ => return None,
    })
}

fn xml(letter: char) -> Option<&'static str> {
    Some(match letter {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        '\t' => "&#9;",
        '\n' => "&#10;",
        '\r' => "&#13;",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_decides() {
        let json = [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.api+json",
            "application/x-ndjson",
            "application/json-seq",
            "application/x-amz-json-1.1",
            "text/json",
        ];
        let plain =
            ["text/plain", "multipart/form-data; boundary=x", "text/csv", "application/yaml"];
        let xml = ["text/xml", "application/xml", "application/soap+xml;charset=UTF-8"];
        let none = [
            "application/octet-stream",
            "application/grpc",
            "application/grpc+json",
            "application/grpc-web+proto",
            "application/connect+json",
            "application/x-protobuf",
            "image/png",
            "nonsense",
            "",
        ];
        let form = ["application/x-www-form-urlencoded"];
        for (types, writing) in [
            (&json[..], Some(Writing::Json)),
            (&plain, Some(Writing::Plain)),
            (&xml, Some(Writing::Xml)),
            (&form, Some(Writing::Form)),
            (&none, None),
        ] {
            for said in types {
                assert_eq!(Writing::of(Some(said)), writing, "{said}");
            }
        }
        assert_eq!(Writing::of(None), Some(Writing::Plain));
    }

    #[test]
    fn a_value_means_itself_in_its_place() {
        let value = "a\"b\\c&d=é<'\n\te f";
        let json = Writing::Json.write(value).expect("fits");
        let read: String = serde_json::from_str(&format!("\"{}\"", *json)).expect("a string");
        assert_eq!(read, value);
        let form = Writing::Form.write(value).expect("fits");
        assert_eq!(*form, "a%22b%5Cc%26d%3D%C3%A9%3C%27%0A%09e%20f");
        let xml = Writing::Xml.write(value).expect("fits");
        assert_eq!(*xml, "a&quot;b\\c&amp;d=é&lt;&#39;&#10;&#9;e f");
        assert_eq!(Writing::Plain.write(value), Err(Misfit::Value));
        assert_eq!(
            Writing::Plain.write("a\"b&é").map(|text| text.to_string()),
            Ok("a\"b&é".to_owned())
        );
    }

    #[test]
    fn a_text_without_a_type_is_json_if_it_begins_so() {
        for text in [&b" \n{\"a\":1}"[..], b"[1]"] {
            assert_eq!(Writing::guess(text), Writing::Json);
        }
        for text in [&b""[..], b"a {", b"\"x\"", b"42[\"x\"]"] {
            assert_eq!(Writing::guess(text), Writing::Plain);
        }
    }
}
