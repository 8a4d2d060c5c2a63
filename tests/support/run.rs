//! How does a test run a command in a sandbox of `outgate run`?

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Finished, clean, run};
use crate::network;

/// A sandbox comes up and ends in a fraction of this, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// `outgate run` with everything said but the command.
#[derive(Clone)]
pub struct Run {
    program: PathBuf,
    state: PathBuf,
    environment: Option<PathBuf>,
    arguments: Vec<OsString>,
    audit: PathBuf,
}

impl Run {
    /// Of this program, with a state folder of its own in the folder of the test.
    ///
    /// # Panics
    /// Outside `isolated`.
    pub fn new(program: &Path) -> Self {
        let place = tempfile::Builder::new().prefix("run-").tempdir_in(network::folder());
        let place = place.expect("the test's folder is writable").keep();
        let (state, audit) = (place.join("state"), place.join("audit.jsonl"));
        let configuration = place.join("outgate.toml");
        let text = format!("[audit]\nfile = {:?}\n", audit.display());
        fs::write(&configuration, text).expect("the new folder is writable");
        let arguments = vec!["--config".into(), configuration.into()];
        Self { program: program.to_owned(), state, environment: None, arguments, audit }
    }

    /// Under this environment; without one nothing is allowed.
    ///
    /// # Panics
    /// When it can't be written.
    #[must_use]
    pub fn environment(mut self, environment: &Value) -> Self {
        let file = self.audit.with_file_name("env_test.json");
        fs::write(&file, environment.to_string()).expect("the new folder is writable");
        self.environment = Some(file);
        self
    }

    /// One more argument of `outgate run`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// All of `outgate run … -- COMMAND …`, the program first.
    pub fn words(&self, command: &[&str]) -> Vec<OsString> {
        let mut words = vec![OsString::from(&self.program), "run".into()];
        words.extend([OsString::from("--state-dir"), self.state.clone().into()]);
        words.extend(self.arguments.iter().cloned());
        if let Some(environment) = &self.environment {
            words.extend([OsString::from("--environment"), environment.into()]);
        }
        words.push("--".into());
        words.extend(command.iter().map(OsString::from));
        words
    }

    /// The same, to be started, with nothing of the test's variables but `PATH`.
    pub fn command(&self, command: &[&str]) -> Command {
        let words = self.words(command);
        let mut outgate = Command::new(&words[0]);
        clean(&mut outgate).args(&words[1..]);
        outgate
    }

    /// Runs a command to its end, with an empty standard input.
    ///
    /// # Panics
    /// When it is still running after 20 s.
    pub fn finish(&self, command: &[&str]) -> Finished {
        run(&mut self.command(command), b"", DEADLINE)
    }

    /// Runs a script of `/bin/sh` to its end.
    ///
    /// # Panics
    /// As [`Run::finish`].
    pub fn sh(&self, script: &str) -> Finished {
        self.finish(&["/bin/sh", "-c", script])
    }

    /// The audit lines of all commands so far. They are all there when a command has ended.
    ///
    /// # Panics
    /// When one is no JSON.
    pub fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.audit).unwrap_or_default();
        let line = |line: &str| serde_json::from_str(line).expect("an audit line is JSON");
        text.lines().map(line).collect()
    }
}

/// How many processes of the machine have this in their command line.
///
/// # Panics
/// Without `/proc`.
pub fn processes_with(marker: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("Linux shows its processes").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(marker)).count()
}
