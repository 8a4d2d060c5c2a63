//! What becomes of a stored credential whose value is read from elsewhere, and can't be? And of a file
//! that is named while a command runs that could have written it?

#[path = "run_values/named.rs"]
mod named;
#[path = "run_values/stored.rs"]
mod stored;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;

const API: &str = "api.example.com";
const OK: &str = "a.ok.example.test";

/// A folder that is the same inside and outside, with a state folder in it, and an environment whose
/// requests to [`API`] need the credential `main`.
struct Place {
    world: World,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir_in("/var/tmp").expect("an ordinary folder");
        let place = Place { world: world!(), folder };
        let entries = json!([{"domain": API, "credential": "main"}, {"domain": OK}]);
        let environment = json!({"network": {"allowlist": entries}});
        place.write("env.json", &environment.to_string());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("it is there").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    /// As most write a secret anew.
    fn replace(&self, name: &str, text: &str) {
        self.write("new/new", text);
        fs::rename(self.path("new/new"), self.path(name)).expect("writable");
    }

    fn outgate(&self, words: &[&OsStr]) -> Command {
        let mut outgate = Command::new(env!("CARGO_BIN_EXE_outgate"));
        clean(&mut outgate).args(words).arg("--state-dir").arg(self.path("state"));
        outgate.current_dir(self.path(""));
        outgate
    }

    /// Stores a token that is read from there.
    fn stores(&self, id: &str, from: &Value) {
        let set = format!("token={from}");
        let words = ["credentials", "create", id, "--type", "bearer_token", "--set", &set];
        let made = run(&mut self.outgate(&words.map(OsStr::new)), b"", SOON * 4);
        assert_eq!(made.code(), 0, "{made:?}");
    }

    fn command(&self, script: &str) -> Command {
        let mut outgate = self.outgate(&["run", "--environment", "env.json"].map(OsStr::new));
        outgate.arg("--origin-roots").arg(self.world.pki.roots());
        outgate.args(["--", "/bin/sh", "-c", script]);
        outgate
    }

    fn sh(&self, script: &str) -> Finished {
        run(&mut self.command(script), b"", SOON * 4)
    }

    /// Starts a script that says `up` by a file.
    fn start(&self, script: &str) -> Child {
        let mut command = self.command(&format!("echo > up; {script}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        assert!(wait_until(SOON * 4, || self.path("up").exists()));
        child
    }
}

fn from_file(path: &std::path::Path) -> Value {
    json!({"from_file": path})
}

/// A script that prints a status, and the code of a refusal.
fn status(domain: &str) -> String {
    format!(
        "curl -s -o /dev/null -w '%{{http_code}} %header{{outgate-reason}}\\n' https://{domain}/"
    )
}

/// A script that asks until it is allowed, and prints the last status.
fn until_allowed(domain: &str) -> String {
    let status = status(domain);
    format!(
        "n=0; until s=$({status}); [ \"$s\" = '200 ' ] || [ $n = 100 ]; do n=$((n + 1)); \
         sleep 0.05; done; echo \"$s\""
    )
}

/// A script that waits for a file.
fn until_there(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.02; done")
}

fn ended(child: Child) -> (String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
