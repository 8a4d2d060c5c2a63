use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::AUTHORIZATION;

use super::*;
use crate::fuzzing::{Dice, mixed};
use crate::secret::Fit;

/// What JSON, URLs, forms and base64 each write differently.
const AWKWARD: &str = "s3cr\"t/va\\lue+x%y é😀&z";

fn sought(value: &str) -> Sought {
    let mut sought = Sought::default();
    sought.add(value.as_bytes(), Place::Body);
    sought
}

fn in_pieces(mut scrubber: Scrubber, pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&scrubber.piece(Bytes::copy_from_slice(piece)));
    }
    out.extend_from_slice(&scrubber.rest());
    out
}

fn whole(value: &str, text: &str) -> String {
    let scrubber = Scrubber::new(&sought(value));
    String::from_utf8_lossy(&in_pieces(scrubber, &[text.as_bytes()])).into_owned()
}

fn per_byte(value: &str, form: impl Fn(u8) -> String) -> String {
    value.bytes().map(form).collect()
}

fn per_unit(value: &str, form: impl Fn(u16) -> String) -> String {
    value.encode_utf16().map(form).collect()
}

/// With each character that is no letter or digit in another form.
fn per_character(value: &str, form: impl Fn(u8) -> String) -> String {
    let form = |one: char| match u8::try_from(one) {
        Ok(byte) if byte.is_ascii_punctuation() => form(byte),
        _ => one.to_string(),
    };
    value.chars().map(form).collect()
}

/// Every form that is promised, whole and mixed.
fn forms(value: &str) -> Vec<String> {
    let json = |value: &str| {
        let quoted = serde_json::to_string(value).expect("text");
        quoted[1..quoted.len() - 1].to_owned()
    };
    let minimal = crate::query::escape(value);
    let mut forms = vec![
        value.to_owned(),
        minimal.replace("%20", "+"),
        minimal.to_lowercase().replace(&value.to_lowercase(), value),
        per_byte(value, |byte| format!("%{byte:02X}")),
        per_byte(value, |byte| format!("%{byte:02x}")),
        per_byte(value, |byte| format!("%25{byte:02x}")),
        json(value),
        json(&json(value)),
        json(value).replace('/', "\\/"),
        per_unit(value, |unit| format!("\\u{unit:04x}")),
        per_unit(value, |unit| format!("\\u{unit:04X}")),
        per_unit(value, |unit| format!("\\\\u{unit:04X}")),
        crate::query::escape(&json(value)),
        per_character(value, |byte| format!("&#x{byte:X};")),
        per_character(value, |byte| format!("&#0{byte};")),
        value.replace('&', "&amp;").replace('"', "&quot;").replace('/', "&#x2F;"),
        minimal,
    ];
    for before in 0..4 {
        for inside in [value.to_owned(), crate::query::escape(value), json(value)] {
            let inside = format!("{}{inside}\u{1}behind", &"x:yz"[..before]);
            let standard = STANDARD.encode(&inside);
            let cut = inside.len() - "\u{1}behind".len();
            forms.push(json(&standard).replace('/', "\\/"));
            forms.push(
                standard
                    .as_bytes()
                    .chunks(7)
                    .map(|line| String::from_utf8_lossy(line) + "\r\n")
                    .collect(),
            );
            forms.push(standard.replace('+', "%2b").replace('/', "%2F"));
            forms.push(standard);
            forms.push(URL_SAFE.encode(&inside));
            forms.push(STANDARD_NO_PAD.encode(&inside[..cut]));
            forms.push(URL_SAFE_NO_PAD.encode(&inside[..cut]));
        }
    }
    forms
}

#[test]
fn masks_every_form_wherever_the_stream_is_cut() {
    for value in [AWKWARD, "sk-live-0123456789abcdef", "hunter2"] {
        let scrubber = Scrubber::new(&sought(value));
        for form in forms(value) {
            let text = format!("{{\"a\": \"{form}\", \"b\": 1}}");
            let due = in_pieces(scrubber.again(), &[text.as_bytes()]);
            let masked = due.iter().filter(|byte| **byte == b'*').count();
            assert!(
                masked >= value.len(),
                "{value} as {form} came through as {}",
                String::from_utf8_lossy(&due)
            );
            assert_eq!(due.len(), text.len());
            assert!(due.starts_with(b"{\"a\": \"") && due.ends_with(b"\", \"b\": 1}"), "{form}");
            for cut in 0..=text.len() {
                let (one, other) = text.as_bytes().split_at(cut);
                assert_eq!(in_pieces(scrubber.again(), &[one, other]), due, "{form} cut at {cut}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(in_pieces(scrubber.again(), &bytes), due, "{form} byte by byte");
        }
    }
}

#[test]
fn masks_values_whose_every_character_is_written_another_way() {
    let mut dice = Dice::new(7);
    for value in [AWKWARD, "sk-live-0123456789abcdef", "a b c d e f"] {
        for _ in 0..400 {
            let form = mixed(value, &mut dice);
            assert_eq!(whole(value, &form), "*".repeat(form.len()), "{form}");
        }
    }
}

#[test]
fn a_value_is_seen_in_a_name_whatever_its_case() {
    let mut scrubber = Scrubber::new(&sought("Sk-Live-0123456789ABCDEF"));
    let name = |text: &str| HeaderName::try_from(text).expect("a name");
    assert!(scrubber.is_in_name(&name("x-sk-live-0123456789abcdef")));
    assert!(!scrubber.is_in_name(&name("x-sk-live-0123456789")));
    assert_eq!(scrubber.found().count(), 1);
}

#[test]
fn leaves_a_clean_stream_as_it_is() {
    let mut scrubber = Scrubber::new(&sought("sk-live-0123456789abcdef"));
    let text = Bytes::from_static(b"sk-live-0123456789abcdeF %73 \\u0073 c2stbGl2ZQ== end.\n\n");
    let passed = scrubber.piece(text.clone());
    assert_eq!(passed.as_ptr(), text.as_ptr(), "copied");
    assert_eq!((passed, scrubber.held()), (text, 0));
    assert!(scrubber.rest().is_empty() && scrubber.found().next().is_none());
}

#[test]
fn holds_back_no_more_than_what_may_be_a_beginning() {
    let mut scrubber = Scrubber::new(&sought("sk-live-0123456789abcdef"));
    assert_eq!(scrubber.piece(Bytes::from_static(b"data: sk-li")), "data: ");
    assert_eq!(scrubber.held(), 5);
    assert_eq!(scrubber.piece(Bytes::from_static(b"ne\n\n")), "sk-line\n\n");
    assert_eq!(scrubber.held(), 0);
    assert_eq!(scrubber.piece(Bytes::from_static(b"sk-live")), "");
    assert_eq!(scrubber.rest(), "sk-live", "a beginning alone is not the value");
}

#[test]
fn masks_all_of_values_that_overlap() {
    let mut sought = sought("abcdefgh");
    sought.add(b"efghijkl", Place::Query);
    let text = b"<abcdefghijkl>".to_vec();
    for cut in 0..=text.len() {
        let mut scrubber = Scrubber::new(&sought);
        let (one, other) = text.split_at(cut);
        let mut out = scrubber.piece(Bytes::copy_from_slice(one)).to_vec();
        out.extend_from_slice(&scrubber.piece(Bytes::copy_from_slice(other)));
        out.extend_from_slice(&scrubber.rest());
        assert_eq!(out, b"<************>", "cut at {cut}");
        assert_eq!(scrubber.found().collect::<Vec<_>>(), [&Place::Body, &Place::Query]);
    }
}

#[test]
fn finds_the_real_one_behind_any_number_of_decoys() {
    let value = "sk-live-0123456789abcdef";
    let decoys = "sk-live-0123456789abcdeX ".repeat(5000);
    let text = format!("{decoys}{}", format!("{value} ").repeat(5000));
    let out = whole(value, &text);
    assert!(out.starts_with(&decoys) && !out.contains(value));
    assert_eq!(out.matches("************************ ").count(), 5000);
}

#[test]
fn looks_for_what_a_header_holds() {
    let looked_for = |name: &'static str, value: &str| {
        let mut sought = Sought::default();
        let value = HeaderValue::from_str(value).expect("a value");
        sought.header(&HeaderName::from_static(name), &value);
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        sought.values.iter().map(|(value, _)| text(value)).collect::<Vec<_>>()
    };
    assert_eq!(looked_for("authorization", "Bearer abcdef1"), ["abcdef1"]);
    assert_eq!(looked_for("x-key", "abc def ghi"), ["abc def ghi", "def ghi"]);
    assert_eq!(looked_for("x-key", "Token id abcdef1"), ["id abcdef1", "abcdef1"]);
    let custom = looked_for("authorization", "Our own scheme abcdef1");
    assert_eq!(custom, ["Our own scheme abcdef1", "own scheme abcdef1", "abcdef1"]);
    assert_eq!(
        looked_for("cookie", "a=0123456; b=x; c=abcdef")[1..],
        ["b=x; c=abcdef", "0123456", "abcdef"]
    );
    let pair = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
    let basic = looked_for("authorization", &pair("user:password"));
    assert_eq!(basic[1..], ["password"]);
    let token = looked_for("authorization", &pair("ghp_0123:x-oauth-basic"));
    assert!(token.contains(&"ghp_0123".to_owned()), "{token:?}");
    assert!(looked_for("x-team", "blue").is_empty());
}

#[test]
fn shows_nothing_of_what_it_looks_for() {
    let mut sought = Sought::default();
    let secret = Secret::parse("sk-live-0123", Fit::Header).expect("a secret");
    sought.secret(&secret, Place::Header(AUTHORIZATION));
    assert_eq!(format!("{sought:?}"), "Sought(in [Header(\"authorization\")])");
    assert_eq!(Place::Parameter("key".into()).to_string(), "query:key");
}
