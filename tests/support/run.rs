//! How does a test run a command in a sandbox of `outgate run`?

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Finished, Running, clean, run};
use crate::network;
use crate::wait::{SOON, wait_for};

/// A sandbox comes up and ends in a fraction of this, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Makes a program of what comes in, and becomes it.
const INSIDE: &str = "cat > \"$0\" && chmod +x \"$0\" && exec \"$0\" --exact \"$1\" --ignored \
                      --nocapture --test-threads=1 < /dev/null";

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

    /// More in the operator's file.
    ///
    /// # Panics
    /// When it can't be written.
    #[must_use]
    pub fn configuration(self, toml: &str) -> Self {
        let file = self.audit.with_file_name("outgate.toml");
        let before = fs::read_to_string(&file).expect("it was written first");
        fs::write(&file, format!("{before}{toml}")).expect("the new folder is writable");
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
        // Not where the tests run: that may be below /tmp, which is another one inside.
        clean(&mut outgate).args(&words[1..]).current_dir("/");
        outgate
    }

    /// The same with the ignored test `name` of the running test binary as the command. The binary
    /// comes by standard input, for it may be where the sandbox has something else.
    ///
    /// # Panics
    /// When the binary can't be read.
    pub fn command_inside(&self, name: &str) -> Command {
        let mut command = self.command(&["/bin/sh", "-c", INSIDE, "/tmp/inside", name]);
        command.stdin(test_binary());
        command
    }

    /// Runs [`Run::command_inside`] to its end.
    ///
    /// # Panics
    /// When that test doesn't pass.
    pub fn inside(&self, name: &str) {
        let finished = Running::attend(&mut self.command_inside(name)).finish(DEADLINE);
        let passed = finished.status.success() && finished.text().contains("1 passed");
        assert!(passed, "{name}: {}{}", finished.text(), finished.stderr);
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

    /// Where the audit lines go.
    pub fn audit_file(&self) -> &Path {
        &self.audit
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

/// A process of the machine with this command line, its words each followed by a NUL, which may be
/// about to begin.
///
/// # Panics
/// Without `/proc`.
pub fn process_of(command_line: &str) -> Option<u32> {
    wait_for(SOON, || running_now(command_line))
}

fn running_now(command_line: &str) -> Option<u32> {
    let processes = fs::read_dir("/proc").expect("Linux shows its processes").flatten();
    let of = |entry: &fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let found = processes.into_iter().find(|entry| of(entry) == command_line.as_bytes())?;
    found.file_name().to_str()?.parse().ok()
}

/// The running test binary, to be read.
///
/// # Panics
/// When it can't be.
pub fn test_binary() -> File {
    let binary = std::env::current_exe().expect("a test binary knows its own path");
    File::open(binary).expect("a test binary can be read")
}
