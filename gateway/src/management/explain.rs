//! What would happen to a request of an environment that is served?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use outgate_policy::EnvironmentId;
use outgate_proxy::Gateway;
use serde::Deserialize;

use super::answer::Refusal;
use super::sent::Sent;
use crate::explain::of_environment;

/// A request that nobody sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    environment_id: String,
    #[serde(default = "get")]
    method: String,
    url: String,
}

/// `POST /v1/explain`: what `outgate explain --json` says, of what is in force now.
pub(super) async fn explain(State(gateway): State<Arc<Gateway>>, Sent(body): Sent) -> Response {
    answer(&gateway, &body).unwrap_or_else(IntoResponse::into_response)
}

fn answer(gateway: &Gateway, body: &[u8]) -> Result<Response, Refusal> {
    let asked: Asked = serde_json::from_slice(body)
        .map_err(|error| Refusal::invalid(format!("environment_id, method, url: {error}")))?;
    let environments = gateway.environments();
    let id = EnvironmentId::parse(&asked.environment_id).ok();
    let environment = id.and_then(|id| environments.get(&id)).ok_or_else(|| {
        Refusal::missing(format!("environment {} is not here", asked.environment_id.escape_debug()))
    })?;
    let verdict = of_environment(environment, gateway.credentials(), &asked.method, &asked.url);
    Ok(Json(verdict.map_err(Refusal::invalid)?).into_response())
}

fn get() -> String {
    "GET".to_owned()
}
