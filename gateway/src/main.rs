//! The program `outgate`: the network gateway of a sandbox.
//!
//! ```text
//! main ── commands ─┬── serve ── app      bind everything, say where, serve, drain
//!                   │    │        ├────── management, metrics
//!                   │    │        ├────── reload     files that change, SIGHUP
//!                   │    │        └────── supply     sources, into the state folder
//!                   │    └ config         flags + operator's file + defaults → Settings
//!                   ├── run ── sandbox    a command where nothing but the gateway can be reached
//!                   ├── verify            tries to get out of the same sandbox
//!                   ├── demo              the same parts, an origin and curl, in front of a person
//!                   ├── check, explain    what policy makes of a file, of a request
//!                   ├── hook              whether a tool call may run, once
//!                   ├── credentials       by a running gateway's API, or in the store itself
//!                   └── ca                what clients must trust
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
mod commands;
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

use crate::console::Style;
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
    commands::run(&surroundings).unwrap_or_else(|failure| {
        console::report(&failure, Style::of(&io::stderr(), surroundings.no_color.as_deref()));
        ExitCode::from(failure.code())
    })
}
