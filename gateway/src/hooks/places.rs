//! Where is an environment's sandbox under `outgate serve`, and what is in its folders?

use std::path::Path;
use std::sync::Arc;

use outgate_credentials::Credentials;
use outgate_hooks::{Cause, Failure, Folder, InSandbox, Root, Sandbox};
use outgate_policy::{EnvValue, Environment, EnvironmentId, compile};

use super::Commands;
use super::commands::{PATH, own_program};
use crate::config::EnvironmentSource;
use crate::environments::{default_id, read_text};
use crate::state_dir::ENVIRONMENTS;

/// A sandbox's working directory, unless something else is known.
const WORKSPACE: &str = "/workspace";

/// Digits and blanks.
const LONGEST_NUMBER: usize = 4 << 10;

/// Where an environment's hooks are, and where their commands run.
pub(super) struct Found {
    pub(super) commands: Commands,
    pub(super) folders: Vec<Folder>,
}

/// The sandbox that the operator names for an environment, in one of `sources`; it may turn out not
/// to be there.
pub(super) fn named(
    id: &EnvironmentId,
    sources: &[EnvironmentSource],
    state_dir: &Path,
    credentials: &Credentials,
) -> Option<Found> {
    let (pid_file, environment) = sources.iter().find_map(|source| {
        let EnvironmentSource::File { path, known_by } = source else { return None };
        let pid_file = known_by.namespaces_of.as_ref()?;
        // One that doesn't load denies everything; it is looked for again at the next event.
        let environment = compile(&read_text(path).ok()?, &default_id(path)).ok()?;
        (environment.id == *id).then_some((pid_file, environment))
    })?;
    let found = open(pid_file).and_then(|sandbox| inside(sandbox, &environment, credentials));
    Some(found.unwrap_or_else(|failure| {
        tracing::warn!(
            environment = %id,
            "namespaces_of {}: no command of its hooks will run: {}",
            pid_file.display(),
            failure.detail
        );
        // What can be found is to fail visibly, not to be forgotten.
        Found { commands: Commands::Nowhere(failure.detail), folders: fetched(state_dir, id) }
    }))
}

/// What there is of an environment without a sandbox: its sources.
pub(super) fn without_sandbox(state_dir: &Path, id: &EnvironmentId) -> Found {
    let commands = Commands::none("the environment has no sandbox");
    Found { commands, folders: fetched(state_dir, id) }
}

/// The folders that the environment's sources are fetched into.
fn fetched(state_dir: &Path, id: &EnvironmentId) -> Vec<Folder> {
    let root = state_dir.join(ENVIRONMENTS).join(id.as_str()).join("root");
    Folder::of_sandbox(&Root::At(root), WORKSPACE)
}

fn open(pid_file: &Path) -> Result<Sandbox, Failure> {
    let none = |detail: String| Failure::new(Cause::NoSandbox, detail);
    let text = outgate_files::read_text(pid_file, LONGEST_NUMBER)
        .map_err(|error| none(error.to_string()))?;
    let pid = text.trim().parse().map_err(|_| none("no number of a process in it".to_owned()))?;
    Sandbox::open(pid)
}

fn inside(
    sandbox: Sandbox,
    environment: &Environment,
    credentials: &Credentials,
) -> Result<Found, Failure> {
    let root = sandbox.root();
    let root = root.map_err(|error| Failure::new(Cause::NoSandbox, error.to_string()))?;
    let folders = Folder::of_sandbox(&root.into(), WORKSPACE);
    let plain = environment.env.iter().filter_map(|(name, value)| match value {
        EnvValue::Plain(text) => Some((name.clone(), text.clone())),
        // Without a stand-in the variable is better absent than wrong.
        EnvValue::Credential(credential) => {
            Some((name.clone(), credentials.placeholder(&environment.id, credential).ok()?))
        }
    });
    let path = (environment.env.iter().all(|(name, _)| name != "PATH"))
        .then(|| ("PATH".to_owned(), PATH.to_owned()));
    let commands = InSandbox {
        sandbox: Arc::new(sandbox),
        supervisor: own_program(),
        directory: WORKSPACE.to_owned(),
        env: path.into_iter().chain(plain).collect(),
    };
    Ok(Found { commands: Commands::Namespaces(commands), folders })
}
