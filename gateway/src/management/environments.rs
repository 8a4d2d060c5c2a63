//! What may be done with environments from outside?
//!
//! Those made here are kept in the store and in force when they are answered. No answer repeats a
//! value that is injected; the token of a new one is in the answer to its POST alone.

mod merge;
mod said;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outgate_credentials::{Collection, Credentials, Expected, StoreError, Version};
use outgate_policy::{AddressRules, Document, EnvironmentId};
use outgate_proxy::Gateway;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

use self::said::Said;
use super::answer::{Refusal, document, whole};
use super::page::{PageQuery, asked};
use super::sent::{Named, Sent};
use crate::environments::{Made, Under, refuse_origin_files};
use crate::reload::Rereads;

/// What the handlers need.
#[derive(Clone)]
pub(crate) struct Nursery {
    pub(crate) credentials: Credentials,
    pub(crate) gateway: Arc<Gateway>,
    /// The operator's rules as they are now.
    pub(crate) rules: watch::Receiver<AddressRules>,
    /// `None` where none is made: under `outgate run` there is one, for its command.
    pub(crate) rereads: Option<Rereads>,
    /// Held from when it is seen that addresses are nobody's until they are somebody's.
    pub(crate) claiming: Arc<Mutex<()>>,
}

pub(super) async fn create(
    State(nursery): State<Nursery>,
    Sent(body): Sent,
) -> Result<Json<Value>, Refusal> {
    let Said { environment, source_addresses } = said::read(document(&body)?)?;
    let now = now();
    let made = Made {
        id: new_id()?,
        created: now,
        updated: now,
        source_addresses,
        proxy_token: new_token()?,
        said: environment,
    };
    whole(async move {
        let _claiming = nursery.claiming.lock().await;
        nursery.check_addresses(&made)?;
        nursery.check(&made)?;
        let token = made.proxy_token.to_string();
        let mut answer = nursery.keep(made, Expected::Absent).await?;
        answer["proxy_token"] = token.into();
        Ok(Json(answer))
    })
    .await
}

pub(super) async fn update(
    State(nursery): State<Nursery>,
    Named(id): Named<String>,
    Sent(body): Sent,
) -> Result<Json<Value>, Refusal> {
    let network = said::network(document(&body)?)?;
    let (made, version) = nursery.find(&id).await?;
    let said = merge::network(&made.said, network)?;
    // Its place in the order of changes, whatever the clock does.
    let updated = now().max(made.updated + 1);
    let made = Made { said, updated, ..made };
    nursery.check(&made)?;
    whole(async move { Ok(Json(nursery.keep(made, Expected::Version(version)).await?)) }).await
}

pub(super) async fn delete(
    State(nursery): State<Nursery>,
    Named(id): Named<String>,
) -> Result<Json<Value>, Refusal> {
    nursery.rereads()?;
    let (made, version) = nursery.find(&id).await?;
    whole(async move {
        let (store, key) = (Arc::clone(nursery.credentials.store()), made.id.clone());
        let expected = Expected::Version(version);
        in_store(move || store.delete(Collection::Environments, key.as_str(), expected)).await?;
        // Denied from here on, whatever becomes of the placeholders that it leaves behind.
        let in_force = nursery.put_in_force(&made.id).await;
        let credentials = nursery.credentials.clone();
        let forgotten = in_store(move || credentials.forget_environment(&made.id)).await;
        in_force.and(forgotten)?;
        Ok(Json(json!({})))
    })
    .await
}

pub(super) async fn get(
    State(nursery): State<Nursery>,
    Named(id): Named<String>,
) -> Result<Json<Value>, Refusal> {
    let (made, _) = nursery.find(&id).await?;
    Ok(Json(nursery.shown(made).await?))
}

pub(super) async fn list(
    State(nursery): State<Nursery>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    let page = asked(query)?.page()?;
    let (store, after, most) =
        (Arc::clone(nursery.credentials.store()), page.after.clone(), page.size + 1);
    let found =
        in_store(move || store.list(Collection::Environments, after.as_deref(), most)).await?;
    let (found, next) = page.cut(found, |(id, _)| id.clone());
    let mut environments = Vec::new();
    for (id, record) in &found {
        if let Some(made) = Made::read(id, &record.value) {
            environments.push(nursery.shown(made).await?);
        }
    }
    let mut answer = json!({"environments": environments});
    if let Some(next) = next {
        answer["next_page_token"] = next.into();
    }
    Ok(Json(answer))
}

impl Nursery {
    async fn find(&self, id: &str) -> Result<(Made, Version), Refusal> {
        let id = EnvironmentId::parse(id).map_err(|error| Refusal::invalid(error.to_string()))?;
        let (store, key) = (Arc::clone(self.credentials.store()), id.clone());
        let record = in_store(move || store.get(Collection::Environments, key.as_str())).await?;
        let found = record.and_then(|record| {
            Made::read(id.as_str(), &record.value).map(|made| (made, record.version))
        });
        found.ok_or_else(|| {
            Refusal::missing(format!("there is no environment {id} that was made here"))
        })
    }

    /// What a file that says the same would be told at load, and what only the API knows.
    fn check(&self, made: &Made) -> Result<(), Refusal> {
        self.rereads()?;
        let rules = self.rules.borrow().clone();
        let under = Under { rules: &rules, credentials: &self.credentials };
        let environment = under
            .compile(&made.text(), made.id.as_str())
            .map_err(|problems| Refusal::invalid(problems.to_string().replace('\n', "; ")))?;
        if let Some(problem) = refuse_origin_files(&environment.policy).first() {
            return Err(Refusal::invalid(problem.to_string()));
        }
        for warning in &environment.warnings {
            tracing::warn!(environment = %made.id, "{warning}");
        }
        for (name, value) in &environment.env {
            if let outgate_policy::EnvValue::Credential(id) = value {
                match self.credentials.is_variable(id) {
                    Some(true) => {}
                    Some(false) | None => {
                        let message = format!(
                            "env.{}: {id} is no stored environment_variable",
                            name.escape_debug()
                        );
                        return Err(Refusal::invalid(message));
                    }
                }
            }
        }
        Ok(())
    }

    /// Clients are known by where they come from: whoever names addresses of another environment
    /// would take its clients, or send by its rules.
    fn check_addresses(&self, made: &Made) -> Result<(), Refusal> {
        let environments = self.gateway.environments();
        for block in &made.source_addresses {
            if let Some(other) = environments.overlapping(block) {
                let message = format!("source_addresses: {block} is of environment {}", other.id());
                return Err(Refusal::exists(message));
            }
        }
        Ok(())
    }

    /// Stores it, and answers when it is in force.
    async fn keep(&self, made: Made, expected: Expected) -> Result<Value, Refusal> {
        let (store, record, key) =
            (Arc::clone(self.credentials.store()), made.write(), made.id.clone());
        in_store(move || {
            store.put(Collection::Environments, key.as_str(), &record, expected).map(drop)
        })
        .await?;
        self.put_in_force(&made.id).await?;
        self.shown(made).await
    }

    /// What the store says of `id` now.
    async fn put_in_force(&self, id: &EnvironmentId) -> Result<(), Refusal> {
        match self.rereads()?.now(id).await {
            true => Ok(()),
            false => Err(Refusal::internal()),
        }
    }

    fn rereads(&self) -> Result<&Rereads, Refusal> {
        self.rereads.as_ref().ok_or_else(|| {
            Refusal::invalid("environments are made under `outgate serve`; this gateway is a run's")
        })
    }

    async fn shown(&self, made: Made) -> Result<Value, Refusal> {
        let credentials = self.credentials.clone();
        let environments = self.gateway.environments();
        let used = environments.get(&made.id).and_then(|environment| environment.last_used());
        let used = used.map_or(made.created, |used| milliseconds(used).max(made.created));
        // A placeholder is made at the first time of asking.
        let shown = spawn_blocking(move || said::shown(&made, used, &credentials));
        shown.await.map_err(|_| Refusal::internal())
    }
}

/// Where the disk may take its time.
async fn in_store<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    match spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Refusal::internal()),
    }
}

fn new_id() -> Result<EnvironmentId, Refusal> {
    let mut bits = [0; 8];
    rand::fill(&mut bits).map_err(|_| Refusal::internal())?;
    let id = format!("env_{:016x}", u64::from_be_bytes(bits));
    EnvironmentId::parse(&id).map_err(|_| Refusal::internal())
}

fn new_token() -> Result<Zeroizing<String>, Refusal> {
    let mut bits = Zeroizing::new([0; 32]);
    rand::fill(bits.as_mut()).map_err(|_| Refusal::internal())?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(bits.as_ref())))
}

fn now() -> u64 {
    milliseconds(SystemTime::now())
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The field of an object.
fn field<'d>(document: &'d Document, name: &str) -> Option<&'d Document> {
    match document {
        Document::Object(fields) => {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
        }
        _ => None,
    }
}
