//! Did what must come before the command succeed?

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use thiserror::Error;

use super::channel::{Channel, ChannelError};
use super::message::ToInside;
use super::plan::Preparation;
use super::task;

/// What it says before its end is its reason; more than this is not read by anyone.
const LAST_WORDS: usize = 4096;

/// What it said may still be in the pipe, which others that it left behind may hold open.
const AFTER_ITS_END: Duration = Duration::from_millis(100);

/// Why the command can't start.
#[derive(Debug, Error)]
pub(crate) enum PreparationError {
    #[error("{purpose}: {} can't be run: {error}", program.display())]
    NotRun { purpose: String, program: OsString, error: io::Error },
    #[error("{purpose}: not done after {} s", deadline.as_secs())]
    TooLong { purpose: String, deadline: Duration },
    #[error("{purpose}: {status}{said}")]
    Failed { purpose: String, status: String, said: String },
    #[error("{purpose}: interrupted by {}", signal.as_str())]
    Interrupted { purpose: String, signal: Signal },
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// Runs it to its end. Signals that come meanwhile are its.
pub(super) fn run(
    preparation: &Preparation,
    channel: &mut Channel,
) -> Result<(), PreparationError> {
    let purpose = || preparation.purpose.clone();
    let not_run = |error| PreparationError::NotRun {
        purpose: purpose(),
        program: preparation.task.program.clone(),
        error,
    };
    let (child, output) = start(preparation).map_err(not_run)?;
    let group = Pid::from_raw(child.id().cast_signed());
    let end = pidfd_open(rustix::process::Pid::from_child(&child), PidfdFlags::empty());
    let mut attended = Attended {
        group,
        end: end.map_err(|error| not_run(error.into()))?,
        output: Some(output),
        said: LastWords::default(),
        signal: None,
    };
    let ended = attended.until(Instant::now() + preparation.deadline, channel);
    // It was not waited for, so its group is still its own; it may have nobody left.
    let _ = killpg(group, Signal::SIGKILL);
    let status = { child }.wait().map_err(not_run)?;
    match (ended?, attended.signal) {
        (false, _) => {
            Err(PreparationError::TooLong { purpose: purpose(), deadline: preparation.deadline })
        }
        (true, _) if status.success() => Ok(()),
        (true, Some(signal)) => Err(PreparationError::Interrupted { purpose: purpose(), signal }),
        (true, None) => Err(PreparationError::Failed {
            purpose: purpose(),
            status: describe(status),
            said: attended.said.text(),
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

/// A program that runs.
struct Attended {
    group: Pid,
    end: OwnedFd,
    /// `None` when it has said all.
    output: Option<PipeReader>,
    said: LastWords,
    /// The last one that was passed on to it.
    signal: Option<Signal>,
}

impl Attended {
    /// Whether it ended before the deadline.
    fn until(
        &mut self,
        mut deadline: Instant,
        channel: &mut Channel,
    ) -> Result<bool, ChannelError> {
        let mut over = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(over);
            }
            let [ended, asked, spoke] = self.wait(left, channel).map_err(io::Error::from)?;
            if asked {
                self.pass_on(channel.receive()?);
            }
            if ended && !over {
                over = true;
                deadline = deadline.min(Instant::now() + AFTER_ITS_END);
            }
            // What was said before the end is read before the end is noticed.
            if spoke && let Some(output) = &mut self.output {
                if !self.said.hear(output)? {
                    self.output = None;
                }
            } else if ended {
                return Ok(true);
            }
        }
    }

    fn wait(&self, left: Duration, channel: &Channel) -> Result<[bool; 3], Errno> {
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let readable = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let mut waiting = vec![readable(self.end.as_fd()), readable(channel.as_fd())];
        waiting.extend(self.output.as_ref().map(|output| readable(output.as_fd())));
        poll(&mut waiting, timeout)?;
        Ok([0, 1, 2].map(|at| waiting.get(at).and_then(PollFd::any) == Some(true)))
    }

    fn pass_on(&mut self, message: ToInside) {
        if let ToInside::Signal { signal, .. } = message
            && let Ok(signal) = Signal::try_from(signal)
        {
            self.signal = Some(signal);
            // It has just ended: then its end is told.
            let _ = killpg(self.group, signal);
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use outgate_tests::isolated;

    use super::*;
    use crate::sandbox::plan::Task;

    const LONG: Duration = Duration::from_secs(20);

    /// Runs a script as a preparation; `isolated` gives the rights that are then given up.
    fn prepare(
        script: &str,
        deadline: Duration,
        messages: &[ToInside],
    ) -> Result<(), PreparationError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut gateway = Channel::new(ours);
        for message in messages {
            gateway.send(message).unwrap();
        }
        let task = Task {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: "/".into(),
        };
        let preparation = Preparation { purpose: "sources[0]".to_owned(), task, deadline };
        run(&preparation, &mut Channel::new(theirs))
    }

    #[test]
    fn one_that_fails_says_why() {
        isolated(|| {
            prepare("echo fine", LONG, &[]).unwrap();
            let failed = prepare("echo one; printf 'two\\033[1m\\r' >&2; exit 3", LONG, &[]);
            assert_eq!(failed.unwrap_err().to_string(), "sources[0]: exit code 3: one; two[1m");
            let long = prepare("yes | head -c 200000; echo; echo the end; exit 1", LONG, &[]);
            let long = long.unwrap_err().to_string();
            assert!(long.ends_with("y; the end") && long.len() < 3 * LAST_WORDS, "{long}");
            let ended = prepare("kill -KILL $$", LONG, &[]).unwrap_err();
            assert_eq!(ended.to_string(), "sources[0]: ended by signal 9");
        });
    }

    #[test]
    fn one_that_takes_too_long_is_ended() {
        isolated(|| {
            let started = Instant::now();
            let late = prepare("trap '' TERM; sleep 60", Duration::from_millis(200), &[]);
            assert!(matches!(late, Err(PreparationError::TooLong { .. })));
            assert!(started.elapsed() < LONG);
        });
    }

    #[test]
    fn signals_are_its_own() {
        isolated(|| {
            let signal = |signal: Signal| ToInside::Signal { signal: signal as i32, group: false };
            let interrupted = prepare("sleep 60", LONG, &[signal(Signal::SIGTERM)]);
            let Err(PreparationError::Interrupted { signal: told, .. }) = interrupted else {
                panic!("{interrupted:?}");
            };
            assert_eq!(told, Signal::SIGTERM);
            prepare("sleep 0.2", LONG, &[signal(Signal::SIGWINCH)]).unwrap();
        });
    }

    #[test]
    fn what_it_leaves_behind_delays_nothing() {
        isolated(|| {
            let started = Instant::now();
            prepare("setsid sh -c 'while :; do echo still here; done' & exit 0", LONG, &[])
                .unwrap();
            assert!(started.elapsed() < LONG);
        });
    }

    #[test]
    fn it_has_no_rights() {
        isolated(|| {
            let script = "grep -q 'CapEff:.0000000000000000' /proc/self/status && \
                          grep -q 'NoNewPrivs:.1' /proc/self/status";
            prepare(script, LONG, &[]).unwrap();
        });
    }
}
