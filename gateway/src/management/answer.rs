//! How does the API say yes and no? As Google's APIs do, so that their SDKs understand it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use outgate_credentials::{ChangeError, StoreError};
use outgate_policy::Document;
use serde_json::{Value, json};

/// A no, in the words of google.rpc. Quotes no secret.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    code: StatusCode,
    status: &'static str,
    message: String,
}

impl Refusal {
    /// What was sent is wrong.
    pub(super) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message)
    }

    /// There is no such thing.
    pub(super) fn missing(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    /// The name is taken.
    pub(super) fn exists(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, "ALREADY_EXISTS", message)
    }

    /// Who asks has not said the key.
    pub(super) fn unauthenticated(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message)
    }

    /// Not now: ask again.
    pub(super) fn unavailable(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message)
    }

    /// Our own fault; the log has the details.
    pub(super) fn internal() -> Refusal {
        let message = "the gateway could not do it; its log says why";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }

    /// Its HTTP status.
    pub(super) fn code(&self) -> StatusCode {
        self.code
    }

    fn new(code: StatusCode, status: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, status, message: message.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal { code, status, message } = self;
        let error = json!({"code": code.as_u16(), "message": message, "status": status});
        (code, Json(json!({"error": error}))).into_response()
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Refusal {
        match error {
            ChangeError::Invalid(problems) => {
                Refusal::invalid(problems.to_string().replace('\n', "; "))
            }
            ChangeError::Exists(_) => Refusal::exists(error.to_string()),
            ChangeError::Missing(_) => Refusal::missing(error.to_string()),
            ChangeError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::Conflict { .. } => {
                Refusal::new(StatusCode::CONFLICT, "ABORTED", format!("{error}; try again"))
            }
            other => {
                tracing::error!(error = %other, "the store failed");
                Refusal::internal()
            }
        }
    }
}

/// A body as a document; a key twice is a problem, whoever reads it after us.
pub(super) fn document(body: &[u8]) -> Result<Document, Refusal> {
    let text = std::str::from_utf8(body).map_err(|_| Refusal::invalid("the body is not UTF-8"))?;
    let (document, repeated) =
        Document::read(text).map_err(|problem| Refusal::invalid(problem.to_string()))?;
    match repeated.first() {
        None => Ok(document),
        Some(problem) => Err(Refusal::invalid(problem.to_string())),
    }
}

/// A moment as the API writes it.
pub(super) fn time(milliseconds: u64) -> Value {
    let time = i64::try_from(milliseconds).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or(Value::Null, |time| format!("{time:.3}").into())
}
