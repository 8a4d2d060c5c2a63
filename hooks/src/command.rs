//! What does a command of a hook answer? Started, fed, read and ended, each within its bounds.
//!
//! The command runs below a [`supervisor`](crate::supervisor) inside the sandbox. Here are the
//! other ends of its pipes and all deadlines. The answer counts from the moment the command has
//! ended, whoever still holds its stdout.

mod pipes;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, timeout, timeout_at};

use crate::outcome::{Cause, Failure};
use crate::sandbox::Sandbox;
use crate::supervisor::{Gateway, Job, Report};
use pipes::{Pipes, TooLarge};

/// From TERM to KILL: a script that cleans up behind itself needs a moment.
const TERM_GRACE: Duration = Duration::from_secs(1);

/// From KILL, or from the command's own end, until the supervisor has reaped everything: a few
/// passes over /proc on a loaded machine. Then the supervisor itself is killed.
const REAP_GRACE: Duration = Duration::from_secs(2);

/// Who can start something inside the sandbox.
pub trait Spawner: Sync {
    /// Starts a supervisor: a process that calls [`supervise`](crate::supervise) with these as its
    /// descriptors 0 to 2, and no other descriptor or variable of this process.
    /// [`Cause::NoSandbox`] where there is no sandbox.
    fn start(&self, streams: Streams) -> impl Future<Output = Result<Started, Failure>> + Send;
}

/// The descriptors of a supervisor.
#[derive(Debug)]
pub struct Streams {
    /// Descriptor 0.
    pub control: OwnedFd,
    /// Descriptor 1.
    pub stdout: OwnedFd,
    /// Descriptor 2.
    pub stderr: OwnedFd,
}

/// A supervisor that starts.
#[derive(Debug)]
pub struct Started {
    /// The process, if it is a child of this one.
    pub process: Option<Child>,
    /// The sandbox that it is to enter, if it isn't inside from the start.
    pub enter: Option<Arc<Sandbox>>,
    /// Where in the sandbox the command runs.
    pub directory: String,
    /// All of the command's environment.
    pub env: Vec<(String, String)>,
}

/// Runs one command; gives what it wrote to its stdout, if it ended well and in time.
pub(crate) async fn run(
    spawner: &impl Spawner,
    command: &str,
    payload: &[u8],
    time: Duration,
) -> Result<Vec<u8>, Failure> {
    let deadline = Instant::now() + time;
    let starting = Running::start(spawner, command);
    let mut running = timeout_at(deadline, starting).await.map_err(|_| timed_out(time))??;
    let ended = running.wait(payload, deadline).await;
    let answer = running.judge(ended, time).await;
    running.end().await;
    answer
}

/// A supervisor with its command. Dropped, it takes everything with it: its socket closes.
struct Running {
    gateway: Gateway,
    /// Reaped by the runtime when it is dropped earlier.
    process: Option<Child>,
    pipes: Pipes,
}

/// Why the wait is over.
enum Ended {
    Reported(io::Result<Report>),
    TooLarge,
    Late,
}

impl Running {
    async fn start(spawner: &impl Spawner, command: &str) -> Result<Running, Failure> {
        let cannot = |error: io::Error| Failure::new(Cause::CannotStart, error.to_string());
        let (mut gateway, control) = Gateway::pair().map_err(cannot)?;
        let (pipes, ends) = Pipes::open().map_err(cannot)?;
        let streams = Streams { control, stdout: ends.stdout, stderr: ends.stderr };
        let Started { process, enter, directory, env } = spawner.start(streams).await?;
        let job = Job { command: command.to_owned(), directory, env, enter: Vec::new() };
        let handed = gateway.hand_over(job, ends.stdin, enter.as_deref()).await;
        handed.map_err(cannot)?;
        Ok(Running { gateway, process, pipes })
    }

    /// Feeds and reads it until it has ended, has said too much, or is late. What has ended is
    /// looked at first: an answer in time is not lost to a slow look.
    async fn wait(&mut self, payload: &[u8], deadline: Instant) -> Ended {
        tokio::select! {
            biased;
            report = self.gateway.report() => Ended::Reported(report),
            TooLarge = self.pipes.pump(payload) => Ended::TooLarge,
            () = tokio::time::sleep_until(deadline) => Ended::Late,
        }
    }

    async fn judge(&mut self, ended: Ended, time: Duration) -> Result<Vec<u8>, Failure> {
        let report = match ended {
            Ended::Reported(Ok(report)) => report,
            Ended::Reported(Err(error)) => {
                let detail = format!("the command's supervisor is gone: {error}");
                return Err(Failure::new(Cause::Supervision, detail));
            }
            Ended::TooLarge => return Err(too_large()),
            Ended::Late => {
                self.ask_to_end().await;
                return Err(timed_out(time));
            }
        };
        let drained = self.pipes.drain();
        let failure =
            |cause, detail: String| Err(Failure::new(cause, self.pipes.with_stderr(detail)));
        match report {
            Report::Exited(0) => {
                drained.map(|()| self.pipes.take_stdout()).map_err(|TooLarge| too_large())
            }
            Report::Exited(code) => failure(Cause::ExitStatus, format!("exit status {code}")),
            Report::Signalled(number) => {
                failure(Cause::Signal, format!("ended by signal {number}"))
            }
            Report::NotStarted(errno) => {
                failure(Cause::CannotStart, format!("/bin/sh can't be started: {}", said(errno)))
            }
            Report::NotEntered(errno) => {
                failure(Cause::NoSandbox, format!("the sandbox can't be entered: {}", said(errno)))
            }
        }
    }

    /// TERM to everything, and a moment for it.
    async fn ask_to_end(&mut self) {
        if self.gateway.terminate().await.is_ok() {
            // Whether it has ended is all that matters now; nobody reads what it still writes.
            let _ = timeout(TERM_GRACE, self.gateway.closed()).await;
        }
    }

    /// KILL to what is left, and to the supervisor if that can't do it.
    async fn end(mut self) {
        // A supervisor that has ended reads no order.
        let _ = self.gateway.kill().await;
        let ended = timeout(REAP_GRACE, self.gateway.closed()).await;
        if ended.is_err() {
            tracing::warn!(
                "the supervisor of a hook does not end; the sandbox may keep processes of the hook"
            );
        }
        if let Some(mut process) = self.process.take() {
            // It has ended, or does now.
            let _ = process.kill().await;
        }
    }
}

fn said(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

fn timed_out(time: Duration) -> Failure {
    Failure::new(Cause::Timeout, format!("no answer within {} s", time.as_secs()))
}

fn too_large() -> Failure {
    let detail = format!("more than {} bytes on stdout", pipes::MAX_STDOUT);
    Failure::new(Cause::OutputTooLarge, detail)
}
