//! `outgate hook pre|post`: may this tool call run? Asked of the sandbox of the environment that
//! runs, else in a fresh one.

mod client;

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use outgate_hooks::{MAX_EVENT_BYTES, Phase};
use serde_json::Value;

use crate::cli::{HookArgs, Moment, RunArgs, ServeArgs};
use crate::config::Settings;
use crate::console::say;
use crate::failure::Failure;
use crate::run::{ask, id};
use crate::surroundings::Surroundings;

/// A hook denied the call.
const DENIED: u8 = 2;

/// A question that was read whole.
pub(crate) struct Question {
    pub(crate) phase: Phase,
    pub(crate) event: Vec<u8>,
}

/// Prints the answer; 2 if the call is denied.
pub(crate) fn run(args: &HookArgs, surroundings: &Surroundings) -> Result<ExitCode, Failure> {
    let question = Question { phase: args.moment.phase(), event: read_event()? };
    // Told before a sandbox is made for it.
    outgate_hooks::Event::parse(&question.event).map_err(Failure::input)?;
    // As `outgate run` does: the id may be the file's name.
    let environment = fs::canonicalize(&args.environment)
        .map_err(|error| Failure::input(format_args!("{}: {error}", args.environment.display())))?;
    let args = HookArgs { environment, ..args.clone() };
    let answer = match client::ask_running(&args, surroundings, &question)? {
        Some(answer) => answer,
        None => {
            let answer = ask(&in_fresh_sandbox(&args), surroundings, &question)?;
            serde_json::to_string(&answer).map_err(Failure::start)?
        }
    };
    let read: Value = serde_json::from_str(&answer).map_err(Failure::start)?;
    say(&answer)?;
    // Approved is what says so, and nothing else.
    Ok(ExitCode::from(if read["decision"] == "allow" { 0 } else { DENIED }))
}

impl Moment {
    fn phase(self) -> Phase {
        match self {
            Moment::Pre => Phase::PreToolExecution,
            Moment::Post => Phase::PostToolExecution,
        }
    }
}

fn read_event() -> Result<Vec<u8>, Failure> {
    let mut event = Vec::new();
    let most = MAX_EVENT_BYTES as u64 + 1;
    let read = io::stdin().lock().take(most).read_to_end(&mut event);
    read.map_err(|error| Failure::input(format_args!("the event on stdin: {error}")))?;
    Ok(event)
}

/// A sandbox in which nothing happens but the hooks.
fn in_fresh_sandbox(args: &HookArgs) -> RunArgs {
    RunArgs {
        operator: args.operator.clone(),
        environment: Some(args.environment.clone()),
        sandbox_root: args.sandbox_root.clone(),
        keep_env: Vec::new(),
        origin_roots: args.origin_roots.clone(),
        command: ["/bin/sh", "-c", "while :; do sleep 3600; done"].map(Into::into).into(),
    }
}

/// The operator's settings, as far as they matter to who asks.
fn settings(args: &HookArgs, surroundings: &Surroundings) -> Result<Settings, Failure> {
    let flags = ServeArgs {
        operator: args.operator.clone(),
        environments: vec![args.environment.clone()],
        origin_roots: args.origin_roots.clone(),
        ..ServeArgs::default()
    };
    Settings::resolve(&flags, surroundings).map_err(Failure::input)
}

/// Where the sandbox of an environment that runs is asked.
fn socket(settings: &Settings, environment: &Path) -> Result<std::path::PathBuf, Failure> {
    Ok(settings.state_dir.join("run").join(format!("{}.sock", id(environment)?)))
}
