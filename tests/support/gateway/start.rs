//! How is the program started, and what if it doesn't?

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use serde_json::Value;

use super::{CONFIGURATION, Gateway, Process};
use crate::command::clean;
use crate::network::{self, Host};
use crate::wait::wait_until;

/// A gateway is ready within a fraction of this, also on a busy machine.
const READY_DEADLINE: Duration = Duration::from_secs(20);

/// The environment's id is its file's name, where the file says none.
const DEFAULT_ID: &str = "env_test";

/// A gateway about to be started.
#[derive(Clone)]
pub struct Builder {
    program: PathBuf,
    environments: Vec<String>,
    configuration: Option<String>,
    origin_roots: Option<PathBuf>,
    state: Option<PathBuf>,
    listen: Option<String>,
    management: Option<String>,
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
    machine: Option<Arc<OwnedFd>>,
}

/// A gateway that ended instead of getting ready.
#[derive(Debug)]
pub struct FailedStart {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// All it wrote to stdout.
    pub stdout: String,
    /// All it wrote, to stdout and stderr.
    pub output: String,
}

impl Builder {
    pub(super) fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            environments: Vec::new(),
            configuration: None,
            origin_roots: None,
            state: None,
            listen: Some("127.0.0.1:0".to_owned()),
            management: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            machine: None,
        }
    }

    /// Serves this environment, beside those named before.
    #[must_use]
    pub fn environment(self, environment: &Value) -> Self {
        self.environment_text(&environment.to_string())
    }

    /// [`Builder::environment`] with the text as it is, which may be no JSON.
    #[must_use]
    pub fn environment_text(mut self, text: &str) -> Self {
        self.environments.push(text.to_owned());
        self
    }

    /// Gives it an operator's file with this text.
    #[must_use]
    pub fn configuration(mut self, toml: &str) -> Self {
        self.configuration = Some(toml.to_owned());
        self
    }

    /// Roots that its origins are verified against, as a PEM file.
    #[must_use]
    pub fn origin_roots(mut self, roots: &Path) -> Self {
        self.origin_roots = Some(roots.to_owned());
        self
    }

    /// A state folder that exists already; a fresh one otherwise.
    #[must_use]
    pub fn state(mut self, state: &Path) -> Self {
        self.state = Some(state.to_owned());
        self
    }

    /// Where the explicit proxy listens: 127.0.0.1 with a free port otherwise.
    #[must_use]
    pub fn listen(mut self, address: &str) -> Self {
        self.listen = Some(address.to_owned());
        self
    }

    /// Names no `--listen` at all: the operator's file has an explicit listener of its own.
    #[must_use]
    pub fn listeners_from_configuration(mut self) -> Self {
        self.listen = None;
        self
    }

    /// Where the management API listens: a Unix socket in the state folder otherwise.
    #[must_use]
    pub fn management(mut self, address: &str) -> Self {
        self.management = Some(address.to_owned());
        self
    }

    /// One more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// One variable in its process environment, which else has only `PATH` and `HOME`.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Runs it on this machine instead of the test's own.
    ///
    /// # Panics
    /// When the test has no descriptors left.
    #[must_use]
    pub fn on(mut self, machine: &Host) -> Self {
        let namespace = machine.as_fd().try_clone_to_owned().expect("a descriptor is free");
        self.machine = Some(Arc::new(namespace));
        self
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start(self) -> Gateway {
        self.try_start().unwrap_or_else(|failed| {
            panic!(
                "the gateway ended ({:?}) instead of getting ready:\n{}",
                failed.code, failed.output
            )
        })
    }

    /// Starts it and waits until it is ready or has ended.
    ///
    /// # Errors
    /// When it ends instead.
    ///
    /// # Panics
    /// When it does neither within 20 s, or its ready line is not what it should be.
    pub fn try_start(self) -> Result<Gateway, FailedStart> {
        let folder = tempfile::Builder::new()
            .prefix("gateway-")
            .tempdir_in(network::folder())
            .expect("the test's folder is writable")
            // The folder of the test goes with it.
            .keep();
        let state = self.state.clone().unwrap_or_else(|| folder.join("state"));
        let environments = self.write_environments(&folder);
        let mut process = Process::start(&mut self.command(&folder, &state, &environments));
        let settled = wait_until(READY_DEADLINE, || {
            !process.lines().stdout.is_empty() || process.try_wait().is_some()
        });
        assert!(settled, "the gateway neither got ready nor ended within {READY_DEADLINE:?}");
        let first_line = process.lines().stdout.first().cloned();
        let Some(line) = first_line.filter(|line| line.contains("\"ready\"")) else {
            return Err(failed(process));
        };
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|fault| panic!("the ready line is no JSON ({fault}): {line}"));
        Ok(Gateway {
            explicit: explicit_address(&ready),
            ca: ca(&ready),
            process,
            ready,
            folder,
            state,
            environments,
        })
    }

    fn write_environments(&self, folder: &Path) -> Vec<PathBuf> {
        let write = |(number, text): (usize, &String)| {
            let id = serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|value| value["environment_id"].as_str().map(str::to_owned));
            let name = match (id, number) {
                (Some(id), _) => format!("{id}.json"),
                (None, 0) => format!("{DEFAULT_ID}.json"),
                (None, number) => format!("{DEFAULT_ID}_{number}.json"),
            };
            let file = folder.join(name);
            fs::write(&file, text).expect("the gateway's folder is writable");
            file
        };
        self.environments.iter().enumerate().map(write).collect()
    }

    fn command(&self, folder: &Path, state: &Path, environments: &[PathBuf]) -> Command {
        let mut command = Command::new(&self.program);
        clean(&mut command).env("HOME", folder).current_dir(folder).arg("serve");
        for file in environments {
            command.arg("--environment").arg(file);
        }
        if let Some(address) = &self.listen {
            command.args(["--listen", address]);
        }
        let management = self.management.as_ref().map_or_else(
            || {
                let mut socket = OsString::from("unix:");
                socket.push(state.join("management.sock"));
                socket
            },
            OsString::from,
        );
        command.arg("--management").arg(management).arg("--state-dir").arg(state);
        if let Some(roots) = &self.origin_roots {
            command.arg("--origin-roots").arg(roots);
        }
        if let Some(text) = &self.configuration {
            let file = folder.join(CONFIGURATION);
            fs::write(&file, text).expect("the gateway's folder is writable");
            command.arg("--config").arg(file);
        }
        command.args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(machine) = self.machine.clone() {
            enter(&mut command, machine);
        }
        command
    }
}

/// Lets the command run in another network namespace.
fn enter(command: &mut Command, namespace: Arc<OwnedFd>) {
    #[expect(unsafe_code, reason = "the forked child must enter it before it is the program")]
    // SAFETY: the closure makes one system call.
    unsafe {
        command.pre_exec(move || Ok(setns(&*namespace, CloneFlags::CLONE_NEWNET)?));
    }
}

fn failed(mut process: Process) -> FailedStart {
    let status = process
        .wait(READY_DEADLINE)
        .unwrap_or_else(|| panic!("its first line is not `ready`: {:?}", process.lines().stdout));
    let lines = process.lines();
    FailedStart {
        code: status.code(),
        stdout: lines.stdout.join("\n"),
        output: lines.everything.clone(),
    }
}

fn explicit_address(ready: &Value) -> SocketAddr {
    ready["explicit"][0]
        .as_str()
        .and_then(|address| address.parse().ok())
        .unwrap_or_else(|| panic!("the ready line names no explicit listener: {ready}"))
}

fn ca(ready: &Value) -> PathBuf {
    let path = ready["ca"].as_str().map(PathBuf::from);
    path.unwrap_or_else(|| panic!("the ready line names no CA: {ready}"))
}
