//! How does a runtime ask about a tool call?

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use outgate_hooks::{MAX_EVENT_BYTES, Phase};

use super::Shown;
use super::answer::Refusal;
use super::sent::{Named, whole_body};
use crate::hooks::Unasked;

/// `POST /v1/environments/{id}/hooks/{event}`. A call is approved by an answer that says so, and
/// by nothing else.
pub(super) async fn ask(
    State(shown): State<Shown>,
    Named((id, event)): Named<(String, String)>,
    body: Body,
) -> Response {
    let phases = [Phase::PreToolExecution, Phase::PostToolExecution];
    let Some(phase) = phases.into_iter().find(|phase| phase.as_str() == event) else {
        let message = format!("{event}: there are pre_tool_execution and post_tool_execution");
        return Refusal::missing(message).into_response();
    };
    // One byte more than may be: the event itself is told that it is too large.
    let event = match whole_body(body, MAX_EVENT_BYTES + 1).await {
        Ok(event) => event,
        Err(refusal) => return refusal.into_invalid().into_response(),
    };
    match (shown.hooks)(id, phase, event).await {
        Ok(answer) => Json(answer).into_response(),
        Err(unasked @ Unasked::NoEnvironment(_)) => {
            Refusal::missing(unasked.to_string()).into_response()
        }
        Err(Unasked::Event(wrong)) => Refusal::invalid(wrong.to_string()).into_response(),
        Err(unasked @ (Unasked::Busy(_) | Unasked::Audit(_))) => {
            Refusal::unavailable(unasked.to_string()).into_response()
        }
    }
}
