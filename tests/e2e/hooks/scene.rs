//! A working directory with hooks, and who is asked about tool calls there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;

/// A folder that is the same inside a sandbox and outside: not below `/tmp`.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    roots: PathBuf,
    environment: PathBuf,
}

impl Place {
    pub(crate) fn new(world: &World, environment: &Value) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let place = Self {
            roots: world.pki.roots().to_owned(),
            environment: folder.path().join("env_test.json"),
            folder,
        };
        place.write("env_test.json", &environment.to_string());
        place.write("outgate.toml", &format!("[audit]\nfile = {:?}\n", place.path("audit.jsonl")));
        fs::create_dir_all(place.path("root/.agents")).expect("a folder");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is the test's");
    }

    /// Puts a file to the sandbox's root.
    pub(crate) fn hooks(&self, hooks: &Value) {
        self.write("root/.agents/hooks.json", &hooks.to_string());
    }

    /// One group that runs a command before every call.
    pub(crate) fn gate(&self, command: &str) {
        self.hooks(&before_every_call(&json!({"type": "command", "command": command})));
    }

    /// `outgate SUBCOMMAND` with everything that this place is about.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut outgate = Command::new(env!("CARGO_BIN_EXE_outgate"));
        clean(&mut outgate).current_dir(self.folder.path()).arg(subcommand);
        outgate.arg("--environment").arg(&self.environment);
        outgate.arg("--sandbox-root").arg(self.path("root"));
        outgate.arg("--state-dir").arg(self.path("state"));
        outgate.arg("--config").arg(self.path("outgate.toml"));
        outgate.arg("--origin-roots").arg(&self.roots);
        outgate
    }

    /// `outgate hook`, to its end.
    pub(crate) fn hook(&self, moment: &str, event: &str) -> Finished {
        run(self.command("hook").arg(moment), event.as_bytes(), SOON * 4)
    }

    /// The answer of `outgate hook pre`.
    pub(crate) fn ask(&self, event: &Value) -> Value {
        let finished = self.hook("pre", &event.to_string());
        let answer: Value = serde_json::from_str(&finished.text()).unwrap_or_default();
        assert_eq!(
            finished.code(),
            if answer["decision"] == "allow" { 0 } else { 2 },
            "{finished:?}"
        );
        answer
    }

    /// `outgate run` around a script, until this test lets it go.
    pub(crate) fn run(&self, script: &str) -> Running {
        let mut outgate = self.command("run");
        outgate.args(["--", "/bin/sh", "-c", &format!("{script}; read line")]);
        let child = outgate.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Running(child.expect("outgate starts"))
    }

    pub(crate) fn audit(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path("audit.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.filter(|line: &Value| line["kind"] == kind).collect()
    }

    pub(crate) fn comes(&self, name: &str) -> bool {
        wait_until(SOON * 4, || self.path(name).exists())
    }
}

/// A command in a sandbox; ended when this is dropped.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Its standard input closes, so that the script's `read` ends.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A hooks file with one handler before every call.
pub(crate) fn before_every_call(handler: &Value) -> Value {
    json!({"gate": {"pre_tool_execution": [{"hooks": [handler]}]}})
}

/// A call of `view_file`.
pub(crate) fn view(path: &str) -> Value {
    json!({"tool_call": {"name": "view_file", "args": {"path": path}}})
}

/// An environment in which nothing can be reached.
pub(crate) fn closed() -> Value {
    json!({"environment_id": "env_one", "env": {"MODE": "test"}, "network": {"allowlist": []}})
}

/// The outcome of the only handler, or the cause of its failure.
pub(crate) fn only(answer: &Value) -> &str {
    let outcomes = answer["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [outcome] = outcomes else { panic!("{answer}") };
    let word = |name: &str| outcome[name].as_str();
    word("cause").or(word("outcome")).expect("an outcome")
}

/// A script that denies, with what another one prints as the reason.
pub(crate) fn telling(what: &str) -> String {
    format!(r#"printf '{{"decision": "deny", "reason": "%s"}}' "$({what})""#)
}

/// A POST to the management API.
pub(crate) fn post(gateway: &Gateway, path: &str, body: &str) -> Response {
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    gateway.management(format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len()
    ))
}

/// Whether a folder has a file with this name.
pub(crate) fn has(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}

/// The environment of an example.
pub(crate) fn example(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).expect("the example");
    serde_json::from_str(&text).expect("JSON")
}
