//! What becomes of bytes that a sandbox or a token endpoint chose?
//!
//! For fuzz targets: the reading of token answers, the substitution of placeholders, the scrubbing of
//! answers and the signing of requests for AWS, with what must hold of their results.

mod bodies;
mod scrubbing;
mod signing;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;

pub use self::bodies::body;
pub use self::scrubbing::{Dice, mixed, scrubbed};
pub use self::signing::signed;
use crate::oauth2::{TokenAnswer, read};
use crate::placeholder::Tag;
use crate::secret::{Fit, Secret};
use crate::substitute::{self, Found, Stand};

const VALUES: [&str; 2] = ["first-value", "s3cond/value"];

/// Reads `body` as a token endpoint's answer; whatever it is, what comes out fits on the wire.
pub fn token_answer(status: u16, body: &[u8]) {
    let answer = TokenAnswer { status, body: body.to_vec().into() };
    match read(&answer) {
        Ok(granted) => {
            let value = granted.header.as_bytes();
            let token = value.strip_prefix(b"Bearer ").expect("a bearer token");
            assert!(!token.is_empty() && token.iter().all(u8::is_ascii_graphic));
            assert!((1..=86_400).contains(&granted.lifetime.as_secs()));
            assert_eq!(status, 200);
        }
        Err(error) => {
            // A sentence of ours, whatever the endpoint said.
            assert!(error.to_string().is_ascii() && error.to_string().len() < 200);
        }
    }
}

/// Substitutes in a header, in the same inside `Basic`, and in a query made of `input`, where the
/// bytes 1 and 2 stand for two placeholders.
pub fn substituted(input: &[u8]) {
    let stands = VALUES.map(|value| Stand {
        tag: Tag::issue().expect("random bytes"),
        prefix: "p_".to_owned(),
        value: Secret::parse(value, Fit::Header).expect("a secret"),
    });
    let placeholders = [0, 1].map(|at| stands[at].tag.placeholder("p_"));
    let (sent, due) = (filled(input, &placeholders), filled(input, &VALUES.map(str::to_owned)));
    let is_misread = Found::look_in(&due) > 0;
    let basic = [b"Basic ", STANDARD.encode(&sent).as_bytes()].concat();
    for (sent, inside) in [(&sent, false), (&basic, true)] {
        let Ok(value) = HeaderValue::from_bytes(sent) else { continue };
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value);
        if substitute::headers(&mut headers, &stands).is_err() || is_misread {
            continue;
        }
        let value = headers[AUTHORIZATION].as_bytes();
        if inside {
            let text = value.strip_prefix(b"Basic ").expect("the scheme stays");
            assert_eq!(STANDARD.decode(text).expect("base64 stays base64"), due);
        } else if !value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"basic ")) {
            assert_eq!(value, due);
        }
    }
    let target = [b"/p?", sent.as_slice()].concat();
    if let Ok(target) = PathAndQuery::from_maybe_shared(target)
        && let Ok(Some(changed)) = substitute::query(&target, &stands)
    {
        assert_eq!(changed.path(), target.path());
        assert!(placeholders.iter().all(|one| !changed.as_str().contains(one.as_str())));
    }
}

fn filled(input: &[u8], by: &[String; 2]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in input {
        match byte {
            1 | 2 => text.extend_from_slice(by[usize::from(byte - 1)].as_bytes()),
            other => text.push(*other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_of_any_input_holds_of_these() {
        for input in [&b"\x01"[..], b"a\x01b\x02\x01", b"x=\x01&y=\x02%20", b"p_\x01", b"\xff\x01"]
        {
            substituted(input);
        }
        for body in [&b"{\"access_token\":\"a\"}"[..], b"{}", b"\xff", b"{\"error\":\"x\"}"] {
            token_answer(200, body);
            token_answer(400, body);
        }
    }
}
