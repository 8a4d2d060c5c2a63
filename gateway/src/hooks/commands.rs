//! Where do the commands of an environment's hooks run? In its sandbox, or nowhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outgate_hooks::{Cause, Failure, InSandbox, Spawner, Started, Streams, spawn_supervisor};
use tokio::sync::mpsc;

use super::SUPERVISOR;

/// Where programs are, for commands that no caller's `PATH` comes with.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// This program, whatever has become of its file.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where commands run.
pub(crate) enum Commands {
    /// Nowhere, for this reason.
    Nowhere(String),
    /// In the sandbox of `outgate run`.
    Run(InRun),
    /// In the namespaces that the operator named.
    Namespaces(InSandbox),
    /// Beside the gateway, as the operator dared to say.
    Host,
}

/// The sandbox of `outgate run`, whose PID 1 starts supervisors.
pub(crate) struct InRun {
    pub(crate) starts: mpsc::Sender<Streams>,
    pub(crate) directory: PathBuf,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Commands {
    /// Nowhere.
    pub(crate) fn none(reason: &str) -> Commands {
        Commands::Nowhere(reason.to_owned())
    }

    /// Beside the gateway.
    pub(super) fn on_host() -> Commands {
        Commands::Host
    }
}

impl Spawner for Commands {
    async fn start(&self, streams: Streams) -> Result<Started, Failure> {
        match self {
            Commands::Nowhere(reason) => Err(Failure::new(Cause::NoSandbox, reason.as_str())),
            Commands::Run(sandbox) => sandbox.start(streams).await,
            Commands::Namespaces(sandbox) => sandbox.start(streams).await,
            Commands::Host => {
                let process = spawn_supervisor(Path::new(OWN_PROGRAM), SUPERVISOR, streams);
                let process =
                    process.map_err(|error| Failure::new(Cause::CannotStart, error.to_string()))?;
                Ok(Started {
                    process: Some(process),
                    enter: None,
                    directory: "/".to_owned(),
                    env: vec![("PATH".to_owned(), PATH.to_owned())],
                })
            }
        }
    }
}

impl InRun {
    async fn start(&self, streams: Streams) -> Result<Started, Failure> {
        let ended = |_| Failure::new(Cause::NoSandbox, "the sandbox has ended");
        self.starts.send(streams).await.map_err(ended)?;
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let variables = self.variables.iter();
        Ok(Started {
            process: None,
            enter: None,
            directory: self.directory.to_string_lossy().into_owned(),
            env: variables.filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect(),
        })
    }
}

/// How a supervisor is started that enters a sandbox by itself.
pub(super) fn own_program() -> (PathBuf, String) {
    (PathBuf::from(OWN_PROGRAM), SUPERVISOR.to_owned())
}
