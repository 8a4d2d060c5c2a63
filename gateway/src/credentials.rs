//! `outgate credentials`: store secrets, and change, list or delete them.
//!
//! A running gateway is asked by its socket; where none runs, the store itself is opened. A value
//! is read from stdin, a file or a prompt without echo: arguments can be seen by everybody on the
//! machine, and stay in the shell's history.

mod door;
mod said;
mod value;

use http::Method;
use outgate_policy::CredentialId;
use serde_json::Value;

use self::door::Door;
use crate::cli::{CredentialsCommand, FieldArgs, OperatorArgs};
use crate::console::say;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

const PAGE: usize = 200;

/// Does what is asked and prints what may be shown.
pub(crate) fn run(command: CredentialsCommand, surroundings: &Surroundings) -> Result<(), Failure> {
    match command {
        CredentialsCommand::Create { id, kind, fields } => {
            let mut said = said::read(&fields.fields)?;
            said.insert("id".to_owned(), id.into());
            said.insert("type".to_owned(), kind.clone().into());
            value::fill(&mut said, &kind, fields.value_file.as_deref())?;
            let body = Value::Object(said).to_string();
            show(&open(&fields.operator, surroundings)?.ask(Method::POST, "", Some(body))?)
        }
        CredentialsCommand::Update { id, fields } => update(&id, &fields, surroundings),
        CredentialsCommand::Get { id, operator } => {
            let path = format!("/{}", checked(&id)?);
            show(&open(&operator, surroundings)?.ask(Method::GET, &path, None)?)
        }
        CredentialsCommand::List { operator } => list(&open(&operator, surroundings)?),
        CredentialsCommand::Delete { id, operator } => {
            let path = format!("/{}", checked(&id)?);
            open(&operator, surroundings)?.ask(Method::DELETE, &path, None)?;
            say(format_args!("{id} is deleted"))
        }
    }
}

fn update(id: &str, fields: &FieldArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let path = format!("/{}", checked(id)?);
    let door = open(&fields.operator, surroundings)?;
    let mut said = said::read(&fields.fields)?;
    if said.is_empty() || fields.value_file.is_some() {
        let now = door.ask(Method::GET, &path, None)?;
        let kind = now["type"].as_str().unwrap_or_default();
        value::fill(&mut said, kind, fields.value_file.as_deref())?;
    }
    show(&door.ask(Method::PATCH, &path, Some(Value::Object(said).to_string()))?)
}

fn list(door: &Door) -> Result<(), Failure> {
    let mut token = String::new();
    loop {
        let page = door.ask(Method::GET, &format!("?page_size={PAGE}&page_token={token}"), None)?;
        for credential in page["credentials"].as_array().into_iter().flatten() {
            show(credential)?;
        }
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return Ok(()),
        }
    }
}

fn open(operator: &OperatorArgs, surroundings: &Surroundings) -> Result<Door, Failure> {
    Door::open(operator, surroundings)
}

/// Not repeated in the message: someone may have put the secret itself there.
fn checked(id: &str) -> Result<CredentialId, Failure> {
    CredentialId::parse(id).map_err(Failure::input)
}

fn show(credential: &Value) -> Result<(), Failure> {
    let text = |key: &str| credential[key].as_str().unwrap_or("-");
    let [id, kind, status, time] = ["id", "type", "status", "update_time"].map(text);
    say(format_args!("{id}  {kind}  {status}  {time}"))
}
