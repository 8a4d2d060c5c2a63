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

    /// More was sent than is read.
    pub(super) fn too_large(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "INVALID_ARGUMENT", message)
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

    /// The same where everything that is wrong with what was sent is a 400.
    pub(super) fn into_invalid(self) -> Refusal {
        Refusal::invalid(self.message)
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

/// Does what must not stop half-way. The future of a handler is dropped when the caller hangs up;
/// what is stored is put in force all the same, and has its audit line.
pub(super) async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, "a change broke off");
            Err(Refusal::internal())
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_change_is_made_whole_though_its_caller_hangs_up() {
        let (go_on, told) = oneshot::channel::<()>();
        let (done, seen) = oneshot::channel();
        let change = whole(async move {
            told.await.unwrap();
            done.send(()).unwrap();
            Ok(())
        });
        let hung_up = timeout(Duration::from_millis(1), change).await;
        assert!(hung_up.is_err(), "it waits");
        go_on.send(()).unwrap();
        seen.await.expect("it went on");
    }

    #[tokio::test]
    async fn a_change_that_breaks_off_is_no_yes() {
        let broken: Result<(), _> = whole(async { panic!("on purpose") }).await;
        assert_eq!(broken, Err(Refusal::internal()));
    }
}
