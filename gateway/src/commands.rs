//! Which command runs, and how much does it log?

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::surroundings::Surroundings;
use crate::{
    ca, check, cli, credentials, demo, explain, hook, process, run, serve, telemetry, verify,
};

/// What the command line says, to its end.
pub(crate) fn run(surroundings: &Surroundings) -> Result<ExitCode, Failure> {
    process::forbid_dumps()?;
    let cli = match Cli::parse_from_args(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error).map(|()| ExitCode::SUCCESS),
    };
    let level = match cli.command {
        // The demo tells its own story.
        Command::Demo(_) => "error",
        // The terminal is the command's.
        Command::Run(_) | Command::Verify(_) | Command::Hook(_) => "warn",
        _ => "info",
    };
    telemetry::start(surroundings, level)?;
    match cli.command {
        Command::Run(args) => return run::run(&args, surroundings),
        Command::Hook(args) => return hook::run(&args, surroundings),
        Command::Serve(args) => serve::run(&args, surroundings)?,
        Command::Check(args) => check::run(&args, surroundings)?,
        Command::Ca(command) => ca::run(command, surroundings)?,
        Command::Credentials(command) => credentials::run(command, surroundings)?,
        Command::Explain(args) => explain::run(&args, surroundings)?,
        Command::Demo(args) => demo::run(&args, surroundings)?,
        Command::Verify(args) => verify::run(&args, surroundings)?,
    }
    Ok(ExitCode::SUCCESS)
}
