//! Where does a value come from when it isn't stored itself, and is it still what it was?
//!
//! A file is looked at again when it may have changed, a command runs again after its time; when
//! either fails, there is no value: an old one is never used in its place. All of it happens in the
//! gateway's own process, on the operator's word.

mod files;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

pub(crate) use self::files::Files;
use self::files::{Stamp, read_file};
use crate::secret::{Fit, MAX_BYTES, Secret, SecretError};

/// A file's state is believed for so long; a request that comes later looks again.
const FILE_GLANCE: Duration = Duration::from_millis(100);
/// What a command said is believed for so long.
const COMMAND_KEEPS: Duration = Duration::from_secs(60);
/// After a failure the next try is not sooner: requests must not become a storm of processes.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// A disk or a command that takes longer holds up the request no more.
const DEADLINE: Duration = Duration::from_secs(10);

/// A value, or where it is read from.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Given(Secret),
    From(Source),
}

/// A place on the gateway's machine that holds a value.
#[derive(Clone)]
pub(crate) enum Source {
    File(PathBuf),
    Variable(String),
    /// A program and its arguments; no shell.
    Command(Vec<String>),
}

/// A value that is there, or read when it is needed.
#[derive(Debug)]
pub(crate) enum Held {
    Given(Secret),
    Read(Arc<Reader>),
}

/// Why a value could not be read. Neither output nor arguments are in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{} can't be read: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("the variable {0} is not set")]
    NoVariable(String),
    #[error("the command can't be started: {0}")]
    Start(std::io::ErrorKind),
    #[error("the command ended with {0}")]
    Failed(std::process::ExitStatus),
    #[error("no value within {DEADLINE:?}")]
    Late,
    #[error(transparent)]
    Value(#[from] SecretError),
}

/// Reads a value from where it is, again when it may have changed.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    fit: Fit,
    files: Arc<Files>,
    last: ArcSwapOption<Reading>,
    /// One look at a time; the others wait for its outcome.
    looking: Arc<Mutex<()>>,
}

#[derive(Clone, Debug)]
struct Reading {
    until: Instant,
    stamp: Option<Stamp>,
    outcome: Result<Secret, SourceError>,
}

impl Held {
    pub(crate) fn new(value: &Value, fit: Fit, files: &Arc<Files>) -> Held {
        match value {
            Value::Given(secret) => Held::Given(secret.clone()),
            Value::From(source) => Held::Read(Reader::new(source.clone(), fit, files)),
        }
    }

    /// The value as it is now.
    pub(crate) async fn value(&self) -> Result<Secret, SourceError> {
        match self {
            Held::Given(secret) => Ok(secret.clone()),
            Held::Read(reader) => reader.value().await,
        }
    }
}

impl Reader {
    pub(crate) fn new(source: Source, fit: Fit, files: &Arc<Files>) -> Arc<Reader> {
        let (files, last, looking) = (Arc::clone(files), ArcSwapOption::empty(), Arc::default());
        Arc::new(Reader { source, fit, files, last, looking })
    }

    /// The value as it is now.
    pub(crate) async fn value(self: &Arc<Reader>) -> Result<Secret, SourceError> {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let looking = timeout(DEADLINE, Arc::clone(&self.looking).lock_owned())
            .await
            .map_err(|_| SourceError::Late)?;
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let reader = Arc::clone(self);
        // A task of its own goes on when the client leaves: what it brings keeps the next look away.
        let look = tokio::spawn(async move {
            let _looking = looking;
            reader.look().await
        });
        // The runtime that the task ran on has ended.
        look.await.unwrap_or(Err(SourceError::Late))
    }

    fn fresh(&self) -> Option<Result<Secret, SourceError>> {
        let last = self.last.load();
        let reading = last.as_ref().filter(|reading| Instant::now() < reading.until)?;
        Some(reading.outcome.clone())
    }

    async fn look(&self) -> Result<Secret, SourceError> {
        let before = self.last.load_full();
        let (stamp, outcome) = match &self.source {
            Source::File(path) => {
                let (files, path, before) = (Arc::clone(&self.files), path.clone(), before.clone());
                read_file(files, path, self.fit, before).await
            }
            Source::Variable(name) => (None, read_variable(name, self.fit)),
            Source::Command(words) => (None, run(words, self.fit, DEADLINE).await),
        };
        let keeps = match (&self.source, &outcome) {
            (Source::File(_), _) => FILE_GLANCE,
            (_, Err(_)) => AFTER_FAILURE,
            (_, Ok(_)) => COMMAND_KEEPS,
        };
        self.say(before.as_deref(), &outcome);
        let reading = Reading { until: Instant::now() + keeps, stamp, outcome: outcome.clone() };
        self.last.store(Some(Arc::new(reading)));
        outcome
    }
}

impl Reader {
    /// Tells what is new: requests that need a value may be many.
    fn say(&self, before: Option<&Reading>, now: &Result<Secret, SourceError>) {
        let was = before.and_then(|before| before.outcome.as_ref().err());
        match (was, now) {
            (was, Err(error)) if was != Some(error) => {
                tracing::warn!("a credential has no value: {error}");
            }
            (Some(was), Ok(_)) => tracing::info!("a credential has a value again, after: {was}"),
            (None, Ok(_)) | (_, Err(_)) => {}
        }
    }
}

impl Source {
    /// Why there is no value now, as far as a glance tells: no command is run for it.
    pub(crate) fn fault(&self, files: &Files) -> Option<SourceError> {
        match self {
            Source::File(path) => files.glance(path).err(),
            Source::Variable(name) => read_variable(name, Fit::File).err(),
            Source::Command(_) => None,
        }
    }
}

/// Arguments may be secrets too.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::File(_) => "File(…)",
            Source::Variable(_) => "Variable(…)",
            Source::Command(_) => "Command(…)",
        })
    }
}

/// Nothing in the program sets variables, so what is read is what it was started with.
fn read_variable(name: &str, fit: Fit) -> Result<Secret, SourceError> {
    match std::env::var_os(name) {
        Some(value) => {
            Ok(Secret::parse(value.into_string().map_err(|_| SecretError::NotText)?, fit)?)
        }
        None => Err(SourceError::NoVariable(name.to_owned())),
    }
}

/// Its output is the value. Its error stream may quote it, so that goes nowhere.
async fn run(words: &[String], fit: Fit, deadline: Duration) -> Result<Secret, SourceError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(SourceError::Start(std::io::ErrorKind::InvalidInput));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let failed = |error: std::io::Error| SourceError::Start(error.kind());
    let mut child = command.spawn().map_err(failed)?;
    let output = child.stdout.take().expect("stdout is piped");
    let said = async {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES + 4));
        output.take(MAX_BYTES as u64 + 3).read_to_end(&mut bytes).await?;
        Ok::<_, std::io::Error>((bytes, child.wait().await?))
    };
    let outcome = timeout(deadline, said).await;
    match outcome {
        Err(_) => {
            kill_group(&child);
            Err(SourceError::Late)
        }
        Ok(Err(error)) => Err(failed(error)),
        Ok(Ok((_, status))) if !status.success() => Err(SourceError::Failed(status)),
        Ok(Ok((bytes, _))) => Ok(Secret::of_bytes(bytes, fit)?),
    }
}

/// Kills a command with what it started, which may hold its output open.
fn kill_group(child: &Child) {
    // Without an id it is reaped, and the number may be another's by now.
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) else { return };
    if let Err(error) = killpg(Pid::from_raw(id), Signal::SIGKILL) {
        tracing::warn!(%error, "a command that is late can't be killed");
    }
}

#[cfg(test)]
mod tests;
