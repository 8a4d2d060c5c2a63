//! How does a runtime ask about a tool call?

use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use outgate_hooks::{MAX_EVENT_BYTES, Phase};
use tokio::time::timeout;

use super::Shown;
use super::answer::Refusal;
use crate::hooks::Unasked;

/// From the head of a request to the end of its event.
const EVENT: Duration = Duration::from_secs(30);

/// `POST /v1/environments/{id}/hooks/{event}`. A call is approved by an answer that says so, and
/// by nothing else.
pub(super) async fn ask(
    State(shown): State<Shown>,
    Path((id, event)): Path<(String, String)>,
    body: Body,
) -> Response {
    let phases = [Phase::PreToolExecution, Phase::PostToolExecution];
    let Some(phase) = phases.into_iter().find(|phase| phase.as_str() == event) else {
        let message = format!("{event}: there are pre_tool_execution and post_tool_execution");
        return Refusal::missing(message).into_response();
    };
    // One byte more than may be: the event itself is told that it is too large.
    let event = match timeout(EVENT, to_bytes(body, MAX_EVENT_BYTES + 1)).await {
        Ok(Ok(event)) => event,
        Ok(Err(_)) => return invalid("the event is too large or broke off"),
        Err(_) => return invalid("the event did not come within 30 s"),
    };
    match (shown.hooks)(id, phase, event).await {
        Ok(answer) => Json(answer).into_response(),
        Err(unasked @ Unasked::NoEnvironment(_)) => {
            Refusal::missing(unasked.to_string()).into_response()
        }
        Err(Unasked::Event(wrong)) => invalid(&wrong.to_string()),
        Err(unasked @ (Unasked::Busy(_) | Unasked::Audit(_))) => {
            Refusal::unavailable(unasked.to_string()).into_response()
        }
    }
}

fn invalid(message: &str) -> Response {
    Refusal::invalid(message).into_response()
}
