//! Did what must come before the command succeed?

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use thiserror::Error;

use super::plan::Preparation;
use super::task;

/// What it says before its end is its reason; more than this is not read by anyone.
const LAST_WORDS: usize = 4096;

/// Why the command can't start.
#[derive(Debug, Error)]
pub(crate) enum PreparationError {
    #[error("{purpose}: {} can't be run: {error}", program.display())]
    NotRun { purpose: String, program: OsString, error: io::Error },
    #[error("{purpose}: not done after {} s", deadline.as_secs())]
    TooLong { purpose: String, deadline: Duration },
    #[error("{purpose}: {status}{said}")]
    Failed { purpose: String, status: String, said: String },
}

/// Runs it to its end, and ends whatever it leaves behind in its process group.
pub(super) fn run(preparation: &Preparation) -> Result<(), PreparationError> {
    let purpose = || preparation.purpose.clone();
    let not_run = |error| PreparationError::NotRun {
        purpose: purpose(),
        program: preparation.task.program.clone(),
        error,
    };
    let (mut child, output) = start(preparation).map_err(not_run)?;
    let mut said = LastWords::default();
    let ended = listen(&child, output, Instant::now() + preparation.deadline, &mut said);
    // It was not waited for, so its group is still its own; it may be empty.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let status = child.wait().map_err(not_run)?;
    match ended.map_err(not_run)? {
        false => {
            Err(PreparationError::TooLong { purpose: purpose(), deadline: preparation.deadline })
        }
        true if status.success() => Ok(()),
        true => Err(PreparationError::Failed {
            purpose: purpose(),
            status: describe(status),
            said: said.text(),
        }),
    }
}

fn start(preparation: &Preparation) -> io::Result<(Child, PipeReader)> {
    let (output, input) = pipe()?;
    let child = task::preparation(&preparation.task)
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()?;
    Ok((child, output))
}

/// Reads what it says until it ends; whether it did so before the deadline.
fn listen(
    child: &Child,
    output: PipeReader,
    deadline: Instant,
    said: &mut LastWords,
) -> io::Result<bool> {
    let pid = rustix::process::Pid::from_child(child);
    let end: OwnedFd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut output = Some(output);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut waiting = vec![PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        waiting.extend(output.as_ref().map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)));
        poll(&mut waiting, timeout)?;
        let [ended, spoke] = [0, 1].map(|at| waiting.get(at).and_then(PollFd::any) == Some(true));
        // What was said before the end is read before it is noticed.
        if spoke && !output.as_mut().map_or(Ok(false), |output| said.hear(output))? {
            output = None;
        } else if ended && !spoke {
            return Ok(true);
        }
    }
}

/// The end of what a program said.
#[derive(Default)]
struct LastWords(Vec<u8>);

impl LastWords {
    /// Whether there may be more.
    fn hear(&mut self, from: &mut PipeReader) -> io::Result<bool> {
        let mut piece = [0; LAST_WORDS];
        let length = from.read(&mut piece)?;
        self.0.extend(&piece[..length]);
        let surplus = self.0.len().saturating_sub(LAST_WORDS);
        self.0.drain(..surplus);
        Ok(length > 0)
    }

    /// In one line: a person reads it behind a colon.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join("; ");
        let line: String = line.chars().filter(|it| !it.is_control()).collect();
        if line.is_empty() { line } else { format!(": {line}") }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
