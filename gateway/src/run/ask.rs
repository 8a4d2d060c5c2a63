//! How are the hooks of a fresh sandbox asked about one tool call?

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use outgate_hooks::Answer;
use outgate_proxy::Resolver;

use super::inside::Inside;
use super::{Prepared, door};
use crate::cli::RunArgs;
use crate::config::BindAddress;
use crate::failure::Failure;
use crate::hook::Question;
use crate::state_dir;
use crate::surroundings::Surroundings;

/// Makes a sandbox as `outgate run` would, asks, and lets go of it.
pub(crate) fn ask(
    args: &RunArgs,
    surroundings: &Surroundings,
    question: &Question,
) -> Result<Answer, Failure> {
    let mut prepared = Prepared::new(args, surroundings)?;
    // Not where it would be found by others: it is gone in a moment.
    let folder = tempfile::tempdir().map_err(Failure::start)?;
    prepared.settings.management = BindAddress::Unix(folder.path().join("management.sock"));
    prepared.memory = Some(memory(&prepared)?);
    prepared.answering = true;
    let resolver = Resolver::system(&prepared.settings.limits);
    prepared.occupy(resolver, async |inside: Inside<'_>| {
        let ((hooks, id), ready) = (inside.hooks(), inside.ready());
        let asked = async {
            // The sources may bring hooks along.
            ready.notified().await;
            hooks.ask(id.as_str(), question.phase, &question.event).await
        };
        tokio::select! {
            ended = inside.attend() => {
                Err(Failure::start(format_args!("the sandbox ended with {}", ended?)))
            }
            answer = asked => answer.map_err(Failure::input),
        }
    })
}

/// Where the last good hooks of an environment are kept between its fresh sandboxes.
fn memory(prepared: &Prepared<'_>) -> Result<PathBuf, Failure> {
    state_dir::open(&prepared.settings.state_dir).map_err(Failure::start)?;
    let folder = prepared.settings.state_dir.join("hooks");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| Failure::start(format_args!("{}: {error}", folder.display())))?;
    Ok(folder.join(format!("{}.json", door::id(prepared.environment())?)))
}
