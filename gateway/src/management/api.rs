//! Which paths are there, and who may call them?

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use outgate_credentials::Asker;

use super::answer::Refusal;
use super::credentials::{self, Vault};
use super::environments::{self, Nursery};
use super::{Changed, ManagementKey, Shown, explain, hooks};

/// The text format that Prometheus has always read.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The key, where Google's SDKs put it.
const KEY_HEADER: &str = "x-goog-api-key";

/// Everything behind the key, and the two probes beside it.
pub(super) fn router(key: ManagementKey, shown: Shown, changed: Changed, asker: Asker) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics).fallback(unknown_path))
        .route("/v1/environments/{id}/hooks/{event}", post(hooks::ask).fallback(unknown_path))
        .merge(changing(changed, asker))
        .fallback(unknown_path)
        .layer(from_fn_with_state(Arc::new(key), require_key))
        .with_state(shown.clone());
    Router::new()
        .route("/healthz", get(healthz).fallback_service(guarded.clone()))
        .route("/readyz", get(readyz).fallback_service(guarded.clone()))
        .fallback_service(guarded)
        .with_state(shown)
}

/// Credentials and environments, and what is in force for these.
fn changing<S: Clone + Send + Sync + 'static>(changed: Changed, asker: Asker) -> Router<S> {
    let Changed { credentials, audit, gateway, rules, rereads } = changed;
    let vault = Vault { credentials: credentials.clone(), audit, asker };
    let judge = Router::new()
        .route("/v1/explain", post(explain::explain).fallback(unknown_path))
        .with_state(Arc::clone(&gateway));
    let nursery = Nursery { credentials, gateway, rules, rereads, claiming: Arc::default() };
    let all_credentials = get(credentials::list).post(credentials::create);
    let one_credential =
        get(credentials::get).patch(credentials::update).delete(credentials::delete);
    let all_environments = get(environments::list).post(environments::create);
    let one_environment =
        get(environments::get).patch(environments::update).delete(environments::delete);
    let stored = Router::new()
        .route("/credentials", all_credentials.fallback(unknown_path))
        .route("/credentials/{id}", one_credential.fallback(unknown_path))
        .with_state(vault);
    let made = Router::new()
        .route("/environments", all_environments.fallback(unknown_path))
        .route("/environments/{id}", one_environment.fallback(unknown_path))
        .with_state(nursery);
    let both = stored.merge(made);
    // The reference's version, and the one that its SDKs ask for if they are told nothing else.
    judge.nest("/v1beta", both.clone()).nest("/v1", both)
}

/// The process answers, that is all.
async fn healthz() -> Response {
    Json(json!({"healthy": true})).into_response()
}

/// New requests are served. A file that can't be used is no reason to say otherwise: the last good
/// one is in force, and the other environments have nothing to do with it.
async fn readyz(State(shown): State<Shown>) -> Response {
    let (missing, problems) = ((shown.missing)(), (shown.problems)());
    let mut body = json!({"ready": missing.is_empty()});
    if !problems.is_empty() {
        body["problems"] = problems.into();
    }
    if missing.is_empty() {
        return Json(body).into_response();
    }
    body["missing"] = missing.into();
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn metrics(State(shown): State<Shown>) -> Response {
    ([(header::CONTENT_TYPE, PROMETHEUS)], (shown.metrics)()).into_response()
}

async fn require_key(
    State(key): State<Arc<ManagementKey>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let mut given = headers.get_all(KEY_HEADER).iter();
    match (given.next(), given.next()) {
        (Some(value), None) if key.is(value.as_bytes()) => next.run(request).await,
        (Some(_), _) => unauthenticated("x-goog-api-key is not the key in STATE/management.key"),
        (None, _) => {
            unauthenticated("x-goog-api-key is missing: send the key in STATE/management.key")
        }
    }
}

async fn unknown_path(request: Request) -> Response {
    let message = format!("{} {} is not here", request.method(), request.uri().path());
    Refusal::missing(message).into_response()
}

fn unauthenticated(message: &str) -> Response {
    Refusal::unauthenticated(message).into_response()
}
