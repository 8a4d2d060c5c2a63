//! Where are the sandboxes of `outgate serve`, and what is in their folders?

use std::fs;
use std::path::Path;
use std::sync::Arc;

use outgate_credentials::Credentials;
use outgate_hooks::{Cause, Failure, Folder, InSandbox, Root, Sandbox};
use outgate_policy::{EnvValue, Environment, EnvironmentId, compile};

use super::Commands;
use super::commands::{PATH, own_program};
use crate::config::{EnvironmentSource, Settings};
use crate::environments::{default_id, read_text};
use crate::state_dir::ENVIRONMENTS;

/// A sandbox's working directory, unless something else is known.
const WORKSPACE: &str = "/workspace";

/// The environments whose sandboxes the operator names, and what is found there.
pub(super) fn sandboxes(
    settings: &Settings,
    credentials: &Credentials,
) -> impl Iterator<Item = (EnvironmentId, Commands, Vec<Folder>)> {
    settings.environments.iter().filter_map(|source| {
        let EnvironmentSource::File { path, known_by } = source else { return None };
        let pid_file = known_by.namespaces_of.as_ref()?;
        // An environment that doesn't load denies everything; it has no hooks to ask either.
        let environment = compile(&read_text(path).ok()?, &default_id(path)).ok()?;
        let (commands, folders) = match open(pid_file) {
            Ok(sandbox) => inside(sandbox, &environment, credentials),
            Err(failure) => {
                tracing::warn!(
                    environment = %environment.id,
                    "namespaces_of {}: no command of its hooks will run: {}",
                    pid_file.display(),
                    failure.detail
                );
                (Commands::Nowhere(failure.detail), Vec::new())
            }
        };
        Some((environment.id, commands, folders))
    })
}

/// The folders that the environment's sources are fetched into.
pub(super) fn fetched(state_dir: &Path, id: &EnvironmentId) -> Vec<Folder> {
    let root = state_dir.join(ENVIRONMENTS).join(id.as_str()).join("root");
    Folder::of_sandbox(&Root::At(root), WORKSPACE)
}

fn open(pid_file: &Path) -> Result<Sandbox, Failure> {
    let none = |detail: String| Failure::new(Cause::NoSandbox, detail);
    let text = fs::read_to_string(pid_file).map_err(|error| none(error.to_string()))?;
    let pid = text.trim().parse().map_err(|_| none("no number of a process in it".to_owned()))?;
    Sandbox::open(pid)
}

fn inside(
    sandbox: Sandbox,
    environment: &Environment,
    credentials: &Credentials,
) -> (Commands, Vec<Folder>) {
    let folders = sandbox
        .root()
        .map_or_else(|_| Vec::new(), |root| Folder::of_sandbox(&root.into(), WORKSPACE));
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
        directory: "/".to_owned(),
        env: path.into_iter().chain(plain).collect(),
    };
    (Commands::Namespaces(commands), folders)
}
