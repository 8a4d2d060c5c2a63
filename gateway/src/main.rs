//! The program `outgate`: the network gateway of a sandbox.
//!
//! ```text
//! main ── cli ── serve ── app      bind everything, say where, serve, drain
//!                 │        ├────── management, metrics
//!                 │        ├────── reload     files that change, SIGHUP
//!                 │        └────── supply     sources, into the state folder
//!                 └ config         flags + operator's file + defaults → Settings
//!          ├──── run ── sandbox    a command where nothing but the gateway can be reached
//!          ├──── verify            tries to get out of the same sandbox
//!          ├──── demo              the same parts, an origin and curl, in front of a person
//!          ├──── check, explain    what policy makes of a file, of a request
//!          ├──── hook              whether a tool call may run, once
//!          ├──── credentials       by a running gateway's API, or in the store itself
//!          └──── ca                what clients must trust
//! ```
//!
//! What decides is in `outgate-policy`, what carries bytes in `outgate-proxy`, what signs and
//! verifies in `outgate-certs`; here they are put together.

mod app;
mod audit;
mod base64_bytes;
mod ca;
mod check;
mod cli;
mod config;
mod console;
mod credentials;
mod demo;
mod environments;
mod explain;
mod failure;
mod hook;
mod hooks;
mod management;
mod metrics;
mod process;
mod reload;
mod run;
mod sandbox;
mod serve;
mod sources;
mod state_dir;
mod store;
mod supply;
mod surroundings;
mod telemetry;
mod trust_files;
mod trust_variables;
mod verify;
mod watch;

use std::io;
use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

use crate::cli::{Cli, Command};
use crate::console::Style;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// What a burst took goes back to the system some ten seconds later, and hours of mixed load leave no
/// more than minutes do.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let taken_over = sandbox::take_over().or_else(verify::take_over).or_else(hooks::take_over);
    if let Some(ended) = taken_over {
        return ended;
    }
    let surroundings = Surroundings::read();
    match run(&surroundings) {
        Ok(code) => code,
        Err(failure) => {
            console::report(&failure, Style::of(&io::stderr(), surroundings.no_color.as_deref()));
            ExitCode::from(failure.code())
        }
    }
}

fn run(surroundings: &Surroundings) -> Result<ExitCode, Failure> {
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
