//! What does a token endpoint's answer say, read strictly (RFC 6749 §5)?
//!
//! The endpoint is not the gateway's: its text reaches no log and no client, only what is known
//! beforehand of it.

use std::time::Duration;

use http::HeaderValue;
use outgate_policy::{Document, Object, Place, Report};

use crate::secret::{Fit, Secret, header_value};
use crate::wiped::Wiped;

/// The largest answer that is read; real ones have a few KiB.
pub const MAX_ANSWER: usize = 64 << 10;
/// Where the endpoint says nothing: short enough to be true of every one in use.
const UNSAID: Duration = Duration::from_secs(300);
/// A token that is said to be over at once is used for what waits for it.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What a token endpoint answered.
pub struct TokenAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most [`MAX_ANSWER`] bytes of it.
    pub body: zeroize::Zeroizing<Vec<u8>>,
}

/// What came of asking for a token.
#[derive(Debug)]
pub(crate) struct Granted {
    /// `Bearer` and the access token.
    pub(crate) header: HeaderValue,
    pub(crate) lifetime: Duration,
    /// In place of the one that was used.
    pub(crate) refresh_token: Option<Secret>,
}

/// Why there is no token. Safe to log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token endpoint can't be reached: {0}")]
    Unreached(String),
    #[error("no answer of the token endpoint within {0:?}")]
    Late(Duration),
    #[error("the token endpoint answered {status}, error {code}")]
    Refused { status: u16, code: &'static str },
    #[error("the token endpoint's answer can't be used: {0}")]
    Malformed(&'static str),
    #[error("what is needed to ask for a token can't be read: {0}")]
    NoSecret(String),
    #[error("the new refresh token can't be stored: {0}")]
    NotDurable(String),
    #[error("the refresh token can't be used now: {0}")]
    NoRefreshToken(String),
}

impl TokenError {
    /// Whether asking again later may help without anybody doing anything.
    pub(crate) fn passes_by_itself(&self) -> bool {
        match self {
            TokenError::Unreached(_)
            | TokenError::Late(_)
            | TokenError::Malformed(_)
            | TokenError::NotDurable(_)
            | TokenError::NoRefreshToken(_) => true,
            TokenError::Refused { code, .. } => !matches!(
                *code,
                "invalid_grant"
                    | "invalid_client"
                    | "unauthorized_client"
                    | "invalid_scope"
                    | "unsupported_grant_type"
            ),
            TokenError::NoSecret(_) => false,
        }
    }

    /// Whether the endpoint itself has said no, and will say no again.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, TokenError::Refused { .. }) && !self.passes_by_itself()
    }
}

/// Reads an answer.
pub(crate) fn read(answer: &TokenAnswer) -> Result<Granted, TokenError> {
    if answer.body.len() > MAX_ANSWER {
        return Err(TokenError::Malformed("it is too long"));
    }
    let text = std::str::from_utf8(&answer.body);
    let document = text.ok().and_then(|text| match Document::read(text) {
        Ok((document, repeated)) => Some((Wiped::new(document), !repeated.is_empty())),
        Err(_) => None,
    });
    if answer.status != 200 {
        let code = document.as_ref().map_or("unknown", |(document, _)| known_code(document));
        return Err(TokenError::Refused { status: answer.status, code });
    }
    let Some((document, repeated)) = document else {
        return Err(TokenError::Malformed("it is not JSON"));
    };
    if repeated {
        return Err(TokenError::Malformed("a key occurs twice"));
    }
    granted(&document)
}

fn granted(document: &Document) -> Result<Granted, TokenError> {
    let place = Place::Root;
    let Some(object) = Object::read(document, &place, &mut Report::default()) else {
        return Err(TokenError::Malformed("it is no object"));
    };
    let token = match object.get("access_token") {
        Some(Document::String(token)) if !token.is_empty() => token,
        _ => return Err(TokenError::Malformed("access_token is not a string")),
    };
    match object.get("token_type") {
        Some(Document::String(kind)) if kind.eq_ignore_ascii_case("bearer") => {}
        None => {}
        Some(_) => return Err(TokenError::Malformed("token_type is not Bearer")),
    }
    let header = header_value(&zeroize::Zeroizing::new(format!("Bearer {token}")))
        .map_err(|_| TokenError::Malformed("access_token does not fit into a header"))?;
    // `Bearer x y` would be another scheme's syntax.
    if token.contains(' ') {
        return Err(TokenError::Malformed("access_token has a blank in it"));
    }
    let refresh_token = match object.get("refresh_token") {
        None | Some(Document::Null) => None,
        Some(Document::String(token)) => Some(
            Secret::parse(token.as_str(), Fit::Text)
                .map_err(|_| TokenError::Malformed("refresh_token is no usable text"))?,
        ),
        Some(_) => return Err(TokenError::Malformed("refresh_token is not a string")),
    };
    Ok(Granted { header, lifetime: lifetime(object.get("expires_in"))?, refresh_token })
}

/// A number of seconds, also as text: some endpoints write it so.
fn lifetime(said: Option<&Document>) -> Result<Duration, TokenError> {
    let seconds = match said {
        None | Some(Document::Null) => return Ok(UNSAID),
        Some(Document::Number(number)) => number.as_f64(),
        Some(Document::String(text)) if text.len() <= 20 => {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        }
        Some(_) => None,
    };
    let seconds = seconds.filter(|seconds| seconds.is_finite());
    let Some(seconds) = seconds else {
        return Err(TokenError::Malformed("expires_in is not a number"));
    };
    Ok(Duration::from_secs_f64(seconds.clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64())))
}

/// The `error` of RFC 6749 §5.2 if it is one that is known: anything else may repeat what was sent.
fn known_code(document: &Document) -> &'static str {
    const CODES: [&str; 9] = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "access_denied",
        "server_error",
        "temporarily_unavailable",
    ];
    let place = Place::Root;
    let object = Object::read(document, &place, &mut Report::default());
    match object.and_then(|object| object.get("error")) {
        Some(Document::String(said)) => {
            CODES.into_iter().find(|code| code == said).unwrap_or("unknown")
        }
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> Result<Granted, TokenError> {
        read(&TokenAnswer { status, body: body.as_bytes().to_vec().into() })
    }

    fn lives(expires_in: &str) -> Option<u64> {
        let body = format!(r#"{{"access_token": "a"{expires_in}}}"#);
        answered(200, &body).ok().map(|granted| granted.lifetime.as_secs())
    }

    #[test]
    fn reads_every_way_to_say_how_long() {
        let table = [
            ("", Some(300)),
            (r#", "expires_in": null"#, Some(300)),
            (r#", "expires_in": 3600"#, Some(3600)),
            (r#", "expires_in": "3600""#, Some(3600)),
            (r#", "expires_in": 3599.5"#, Some(3599)),
            (r#", "expires_in": 0"#, Some(1)),
            (r#", "expires_in": -1"#, Some(1)),
            (r#", "expires_in": 1e18"#, Some(86400)),
            (r#", "expires_in": "99999999999999999999""#, Some(86400)),
            (r#", "expires_in": "-1""#, None),
            (r#", "expires_in": "inf""#, None),
            (r#", "expires_in": """#, None),
            (r#", "expires_in": [1]"#, None),
            (r#", "expires_in": 1, "expires_in": 2"#, None),
        ];
        for (said, expected) in table {
            assert_eq!(lives(said), expected, "{said}");
        }
    }

    #[test]
    fn takes_no_token_that_would_be_another_header() {
        for token in ["tok\\r\\nX-Evil: 1", "tok\\u0000", "tök", " tok ", "", "a b"] {
            let body = format!(r#"{{"access_token": "{token}"}}"#);
            assert!(matches!(answered(200, &body), Err(TokenError::Malformed(_))), "{token}");
        }
        let long = format!(r#"{{"access_token": "{}"}}"#, "a".repeat(40_000));
        assert!(answered(200, &long).is_err());
    }

    #[test]
    fn takes_no_answer_that_is_not_one_clear_object() {
        for body in [
            "",
            "[]",
            "null",
            "{}",
            "<html>",
            r#"{"access_token": 1}"#,
            r#"{"access_token": "a", "access_token": "b"}"#,
            r#"{"access_token": "a", "token_type": "mac"}"#,
            r#"{"access_token": "a", "token_type": 1}"#,
            r#"{"access_token": "a", "refresh_token": ""}"#,
            r#"{"access_token": "a", "refresh_token": {}}"#,
            r#"{"access_token": "a"} {}"#,
        ] {
            assert!(answered(200, body).is_err(), "{body}");
        }
        let good = answered(200, r#"{"access_token": "a", "token_type": "bearer", "x": [1]}"#);
        assert!(good.is_ok_and(|granted| granted.header == "Bearer a"));
    }

    #[test]
    fn an_error_shows_status_and_a_known_code_only() {
        let echo = r#"{"error": "client_secret=hunter2", "error_description": "hunter2"}"#;
        let error = answered(400, echo).expect_err("refused");
        assert_eq!(error, TokenError::Refused { status: 400, code: "unknown" });
        let revoked = answered(400, r#"{"error": "invalid_grant"}"#).expect_err("refused");
        assert!(!revoked.passes_by_itself());
        let down = answered(503, "<html>hunter2").expect_err("refused");
        assert!(down.passes_by_itself() && !down.to_string().contains("hunter2"));
        // A redirect is followed by nobody.
        assert!(answered(302, r#"{"access_token": "a"}"#).is_err());
    }
}
