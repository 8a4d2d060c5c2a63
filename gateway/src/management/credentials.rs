//! What may be done with stored credentials from outside?
//!
//! Everything but reading a value. Each change is in force when it is answered, and has an audit
//! line of its own.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Method, StatusCode};
use outgate_credentials::{Asker, ChangeError, Credentials, Summary};
use outgate_policy::{CredentialId, Document};
use outgate_proxy::{AuditSink, CredentialChange};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::answer::{Refusal, document, time, whole};
use super::page::{PageQuery, asked};
use super::sent::{Named, Sent};

/// What the handlers need.
#[derive(Clone)]
pub(crate) struct Vault {
    pub(crate) credentials: Credentials,
    pub(crate) audit: AuditSink,
    /// Who comes in here.
    pub(crate) asker: Asker,
}

/// What a PATCH changes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct UpdateQuery {
    update_mask: Option<String>,
}

pub(super) async fn create(
    State(vault): State<Vault>,
    Sent(body): Sent,
) -> Result<Json<Value>, Refusal> {
    whole(async move {
        let said = document(&body);
        let id = said.as_ref().ok().and_then(id_of);
        let asker = vault.asker;
        let outcome = match said {
            Ok(said) => vault.change(move |credentials| credentials.create(&said, asker)).await,
            Err(refusal) => Err(refusal),
        };
        vault.answer(Method::POST, id, outcome.map(|summary| shown(&summary))).await
    })
    .await
}

pub(super) async fn update(
    State(vault): State<Vault>,
    Named(id): Named<String>,
    query: Result<Query<UpdateQuery>, QueryRejection>,
    Sent(body): Sent,
) -> Result<Json<Value>, Refusal> {
    whole(async move {
        let asker = vault.asker;
        let outcome = match (parse(&id), document(&body), asked(query)) {
            (Ok(id), Ok(said), Ok(query)) => {
                let change = move |credentials: &Credentials| {
                    let mask = query.update_mask.as_deref().filter(|mask| !mask.is_empty());
                    let mask: Option<Vec<&str>> = mask.map(|mask| mask.split(',').collect());
                    credentials.update(&id, &said, mask.as_deref(), asker)
                };
                vault.change(change).await
            }
            (Err(refusal), _, _) | (_, Err(refusal), _) | (_, _, Err(refusal)) => Err(refusal),
        };
        let outcome = outcome.map(|summary| shown(&summary));
        vault.answer(Method::PATCH, parse(&id).ok(), outcome).await
    })
    .await
}

pub(super) async fn delete(
    State(vault): State<Vault>,
    Named(id): Named<String>,
) -> Result<Json<Value>, Refusal> {
    whole(async move {
        let outcome = match parse(&id) {
            Ok(id) => vault.change(move |credentials| credentials.delete(&id)).await,
            Err(refusal) => Err(refusal),
        };
        vault.answer(Method::DELETE, parse(&id).ok(), outcome.map(|()| json!({}))).await
    })
    .await
}

pub(super) async fn get(
    State(vault): State<Vault>,
    Named(id): Named<String>,
) -> Result<Json<Value>, Refusal> {
    let id = parse(&id)?;
    let found = vault.credentials.get(&id);
    let found = found.ok_or_else(|| Refusal::from(ChangeError::Missing(id)))?;
    Ok(Json(shown(&found)))
}

pub(super) async fn list(
    State(vault): State<Vault>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    let page = asked(query)?.page()?;
    let found = vault.credentials.list(page.after.as_deref(), page.size + 1);
    let (found, next) = page.cut(found, |summary| summary.id.to_string());
    let mut answer = json!({"credentials": found.iter().map(shown).collect::<Vec<_>>()});
    if let Some(next) = next {
        answer["next_page_token"] = next.into();
    }
    Ok(Json(answer))
}

impl Vault {
    /// A change, where the disk may take its time.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Credentials) -> Result<T, ChangeError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let credentials = self.credentials.clone();
        match spawn_blocking(move || change(&credentials)).await {
            Ok(outcome) => Ok(outcome?),
            Err(error) => {
                tracing::error!(%error, "a change of a credential broke off");
                Err(Refusal::internal())
            }
        }
    }

    /// The answer, after its audit line.
    async fn answer(
        &self,
        method: Method,
        id: Option<CredentialId>,
        outcome: Result<Value, Refusal>,
    ) -> Result<Json<Value>, Refusal> {
        let status = outcome.as_ref().err().map_or(StatusCode::OK, Refusal::code).as_u16();
        self.audit.credential_change(&CredentialChange { method, id, status }).await;
        outcome.map(Json)
    }
}

fn shown(summary: &Summary) -> Value {
    json!({
        "id": summary.id.as_str(),
        "type": summary.kind,
        "status": summary.status,
        "create_time": time(summary.created),
        "update_time": time(summary.updated),
    })
}

fn parse(id: &str) -> Result<CredentialId, Refusal> {
    // Not repeated: someone may have put the secret itself there.
    CredentialId::parse(id).map_err(|error| Refusal::invalid(format!("id: {error}")))
}

fn id_of(said: &Document) -> Option<CredentialId> {
    let Document::Object(fields) = said else { return None };
    let (_, id) = fields.iter().find(|(key, _)| key == "id")?;
    match id {
        Document::String(id) => CredentialId::parse(id).ok(),
        _ => None,
    }
}
