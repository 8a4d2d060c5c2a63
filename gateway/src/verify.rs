//! `outgate verify`: does the sandbox that `run` would make hold?
//!
//! ```text
//! outside   witness    sockets, files, a process, a terminal: what must not be reached or read
//! inside    probes     this program again, as the sandbox's command: tries everything
//! outside   judge      what the prober saw, what the witness met, what the gateway wrote down
//! ```
//!
//! It judges by what left. A connection that somebody took is held only if the gateway has an audit
//! line for it that tells of no address dialled; whatever reached the witness is open, and so is a
//! probe that says nothing. Names lead nowhere meanwhile, so that nothing is asked of anyone.

mod brief;
mod finding;
mod judge;
mod ledger;
mod probes;
mod witness;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use nix::unistd::{dup2_stdin, dup2_stdout};
use outgate_proxy::Resolver;
use tempfile::NamedTempFile;

use self::brief::Brief;
use self::judge::Evidence;
use self::ledger::Ledger;
use self::witness::Witness;
use crate::cli::{RunArgs, VerifyArgs};
use crate::config::AuditFile;
use crate::console::{complain, say};
use crate::environments::read_text;
use crate::failure::Failure;
use crate::run::Prepared;
use crate::surroundings::Surroundings;

/// The program of the sandbox: this one, which need not be visible in there.
const ITSELF: &str = "/proc/self/exe";

/// Ends the program here if it was started as the prober or as a witness's process.
pub(crate) fn take_over() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let (role, rest) = (arguments.next()?, arguments.next());
    match role.to_str()? {
        probes::ROLE => Some(probes::run(rest)),
        witness::ROLE => Some(witness::stand()),
        _ => None,
    }
}

/// Verifies, and prints one line for each probe.
pub(crate) fn run(args: &VerifyArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let mut prepared = Prepared::new(&args.as_run(), surroundings)?;
    let state_dir = prepared.settings.state_dir.clone();
    let home = surroundings.home.as_deref();
    let witness = Witness::call(&state_dir, home).map_err(Failure::start)?;
    let mut brief = Brief::new(&witness, &prepared).map_err(Failure::start)?;
    brief.allowed = brief::allowed_name(&read_text(prepared.environment())?);
    let audit = NamedTempFile::new().map_err(Failure::start)?;
    prepared.settings.audit = AuditFile::Path(audit.path().to_owned());
    prepared.fetching = false;
    prepared.args.command = words(&brief)?;
    // The caller's may be one that a sandbox doesn't have.
    prepared.directory = PathBuf::from("/");
    let streams = Streams::lay(&witness).map_err(Failure::start)?;
    let ended = match args.without_sandbox {
        true => unconfined(&prepared.args.command),
        false => in_sandbox(prepared),
    };
    let report = streams.restore().map_err(Failure::start)?;
    let code = ended?;
    if code != 0 {
        complain(format_args!("outgate: the prober ended with {code}: what it left out is open"));
    }
    let ledger = Ledger::read(audit.path()).map_err(Failure::start)?;
    tell(&Evidence { report, met: witness.met(), ledger })
}

/// The lines, and their sum.
fn tell(evidence: &Evidence) -> Result<(), Failure> {
    let mut all_held = true;
    for verdict in judge::judge(evidence) {
        let word = if verdict.reasons.is_empty() { "held" } else { "open" };
        say(format_args!("{word} {}", verdict.probe))?;
        for reason in &verdict.reasons {
            complain(format_args!("outgate: {} is open: {reason}", verdict.probe));
        }
        all_held &= verdict.reasons.is_empty();
    }
    if all_held { Ok(()) } else { Err(Failure::shown()) }
}

fn words(brief: &Brief) -> Result<Vec<OsString>, Failure> {
    let brief = serde_json::to_string(brief).map_err(Failure::start)?;
    Ok(vec![ITSELF.into(), probes::ROLE.into(), brief.into()])
}

fn in_sandbox(prepared: Prepared<'_>) -> Result<u8, Failure> {
    // Knows nobody: a name that is allowed must not send a request to its owner.
    let resolver = Resolver::from_hosts("", &prepared.settings.limits).map_err(Failure::start)?;
    prepared.execute(resolver)
}

/// What the probes say where nothing holds, so that a person sees that they can.
fn unconfined(words: &[OsString]) -> Result<u8, Failure> {
    complain("outgate: without a sandbox, to show that the probes notice");
    let status = Command::new(&words[0]).args(&words[1..]).status().map_err(Failure::start)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// The prober's standard streams, laid over this process's own while it is started: a terminal that
/// the witness has the other end of, and a file for the report.
struct Streams {
    stdout: OwnedFd,
    report: File,
}

impl Streams {
    fn lay(witness: &Witness) -> io::Result<Streams> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let report = tempfile::tempfile()?;
        dup2_stdin(witness.terminal())?;
        dup2_stdout(&report)?;
        Ok(Streams { stdout, report })
    }

    fn restore(mut self) -> io::Result<String> {
        dup2_stdout(&self.stdout)?;
        let mut report = String::new();
        self.report.rewind()?;
        self.report.read_to_string(&mut report)?;
        Ok(report)
    }
}

impl VerifyArgs {
    fn as_run(&self) -> RunArgs {
        RunArgs {
            operator: self.operator.clone(),
            environment: self.environment.clone(),
            sandbox_root: None,
            keep_env: Vec::new(),
            origin_roots: self.origin_roots.clone(),
            command: Vec::new(),
        }
    }
}
