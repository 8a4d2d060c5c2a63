//! `outgate demo`: does it really do what it says?
//!
//! An origin, a gateway and a real curl on this machine; no network, no root. Every claim that is
//! printed was checked on the traffic just shown, and the program succeeds only if all are true.

mod curl;
mod origin;
mod stage;
mod steps;

use std::io;

use tokio::runtime::Builder;

use self::stage::Stage;
use self::steps::{STEPS, Step};
use crate::cli::DemoArgs;
use crate::console::{Style, say};
use crate::failure::Failure;
use crate::serve::{Signals, until_stopped};
use crate::surroundings::Surroundings;

/// Tells the story; with `--keep` the gateway stays up afterwards.
pub(crate) fn run(args: &DemoArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let style = Style::of(&io::stdout(), surroundings.no_color.as_deref());
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
    let signals = runtime.block_on(async { Signals::listen() })?;
    let stage = Stage::set(surroundings.path.clone())?;
    let told = tell(&stage, style);
    let Stage { running, folder, hooks, .. } = stage;
    // It holds on to the gateway, which ends with the last who does.
    drop(hooks);
    if args.keep && told.is_ok() {
        say("The gateway runs on, for these commands and others. Ctrl-C ends it.")?;
        runtime.block_on(until_stopped(running, signals))?;
    } else {
        running.drain();
        running.join()?;
    }
    folder.close().map_err(Failure::start)?;
    told?;
    if args.keep {
        return Ok(());
    }
    say("`outgate demo --keep` leaves it running, to try the commands by hand.")
}

/// Shows every step; fails if any claim does not hold.
fn tell(stage: &Stage, style: Style) -> Result<(), Failure> {
    say("An origin, a gateway and curl, all on this machine. Nothing leaves it.")?;
    let mut all_held = true;
    for (index, step) in STEPS.iter().enumerate() {
        let step = step(stage)?;
        show(index + 1, &step, style)?;
        all_held &= step.checks.iter().all(|(_, held)| *held);
    }
    say("")?;
    if !all_held {
        say(style.bad("Not all of it held."))?;
        return Err(Failure::shown());
    }
    say(style.good("All of it really happened."))
}

fn show(number: usize, step: &Step, style: Style) -> Result<(), Failure> {
    say("")?;
    say(format_args!(
        "{} {}",
        style.strong(format_args!("{number}. {}:", step.title)),
        step.about
    ))?;
    if let Some(command) = &step.command {
        say(style.dim(format_args!("   $ {command}")))?;
    }
    for (label, text) in &step.observed {
        say(format_args!("   {label:<16}{text}"))?;
    }
    for (claim, held) in &step.checks {
        let mark = if *held { style.good("✓") } else { style.bad("✗ not so:") };
        say(format_args!("   {mark} {claim}"))?;
    }
    Ok(())
}
