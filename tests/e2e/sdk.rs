//! Do Google's own SDKs work against the management API with only base URL and key changed?
//!
//! `tests/real-clients` installs them and says where; nothing here reaches a network but loopback.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use outgate_tests::command::{clean, run};
use outgate_tests::prelude::*;

/// An interpreter takes seconds to load an SDK on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where both SDKs are.
fn sdks() -> PathBuf {
    std::env::var_os("OUTGATE_SDKS").map(PathBuf::from).expect("run tests/real-clients")
}

fn works(client: impl Fn() -> Command) {
    isolated(|| {
        let gateway = world!().gateway_builder().management("127.0.0.1:0").start();
        let address = gateway.ready()["management"].as_str().expect("an address").to_owned();
        let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
        let mut command = client();
        clean(&mut command).arg(format!("http://{address}")).arg(key.trim());
        let finished = run(&mut command, b"", DEADLINE);
        assert!(finished.text().contains("all of it worked"), "{finished:?}");
        assert!(!gateway.output().contains("secret-value"));
    });
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/e2e/sdk").join(name)
}

#[test]
fn the_python_sdk_manages_credentials_and_environments() {
    works(|| {
        let mut command = Command::new(sdks().join("python/bin/python"));
        command.arg(script("managed.py"));
        command
    });
}

#[test]
fn the_javascript_sdk_manages_credentials_and_environments() {
    works(|| {
        // Modules are looked for from the script's own folder on.
        let copy = sdks().join("managed.mjs");
        fs::copy(script("managed.mjs"), &copy).expect("a copy");
        let mut command = Command::new("node");
        command.arg(copy);
        command
    });
}
