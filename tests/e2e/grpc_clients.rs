//! Do gRPC's own clients make every kind of call through the gateway, and print why one is refused?
//!
//! `tests/real-clients` installs them and says where; nothing here reaches a network but loopback.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_tests::command::{Running, clean, run};
use outgate_tests::prelude::*;
use serde_json::Value;
use tempfile::NamedTempFile;

const NAME: &str = "api.example.com";
const ADDRESS: &str = "11.22.33.44:443";
const DOWN: &str = "a.ok.example.test";
const DENIED: &str = "evil.example.test";
/// An interpreter takes seconds to load on a busy machine, and the calls take ten.
const DEADLINE: Duration = Duration::from_secs(120);
/// Shorter than the silence of a stream that the clients keep open.
const LIMITS: &str = "[limits]\nidle_tunnel = \"2s\"\nidle_keep_alive = \"2s\"\n";

/// A program's own client.
#[derive(Clone, Copy)]
struct Client {
    program: &'static str,
    script: &'static str,
}

const PYTHON: Client = Client { program: "python/bin/python", script: "client.py" };
const NODE: Client = Client { program: "node", script: "client.mjs" };

/// Where the clients are.
fn installed() -> PathBuf {
    std::env::var_os("OUTGATE_CLIENTS").map(PathBuf::from).expect("run tests/real-clients")
}

impl Client {
    fn path(self) -> PathBuf {
        if self.program.contains('/') {
            installed().join(self.program)
        } else {
            self.program.into()
        }
    }

    /// A copy where its modules are: they are looked for from the script's own folder on.
    fn script(self) -> NamedTempFile {
        let mut copy = tempfile::Builder::new();
        let copy = copy.prefix("grpc-").suffix(self.script).tempfile_in(installed());
        let copy = copy.expect("the folder is ours");
        fs::copy(script(self.script), copy.path()).expect("a copy");
        copy
    }
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/e2e/grpc_clients").join(name)
}

/// A server that takes nobody without this secret.
fn server(world: &World, folder: &Path, secret: &str) -> Running {
    world.pki.leaf(NAME).issue().write(folder, "server");
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    let mut command = Command::new(installed().join("python/bin/python"));
    clean(&mut command).arg(script("server.py")).arg(ADDRESS).arg(certificate).arg(key).arg(secret);
    let running = Running::start(&mut command, b"");
    let address = ADDRESS.parse().expect("an address");
    let listens = || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    assert!(wait_until(Duration::from_secs(60), listens));
    running
}

fn environment(secret: &str) -> Value {
    let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
    let denied = json!({"domain": NAME, "paths": ["/test.Echo/Forbidden"], "deny": true});
    json!({"network": {"allowlist": [entry, denied, {"domain": DOWN}]}})
}

/// The lines of an audit, of which there is one for each call.
fn check(audit: &[Value], secret: &str) {
    let reasons = |reason: &str| audit.iter().filter(|line| line["reason"] == reason).count();
    assert_eq!(reasons("denied_by_entry"), 1, "{audit:#?}");
    assert!(reasons("origin_connect") >= 1 && reasons("domain_not_allowed") >= 1, "{audit:#?}");
    let allowed = audit.iter().filter(|line| line["injected"] == json!(["authorization"]));
    assert!(allowed.count() >= 8, "{audit:#?}");
    assert!(!format!("{audit:?}").contains(secret));
}

fn works_in_a_sandbox(client: Client) {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let secret = format!("Bearer {}", canary(32));
        let _server = server(&world, folder.path(), &secret);
        let file = folder.path().join("env_test.json");
        fs::write(&file, environment(&secret).to_string()).expect("the folder is writable");
        let audit = folder.path().join("audit.jsonl");
        let configuration = folder.path().join("outgate.toml");
        let text = format!("{LIMITS}[audit]\nfile = {:?}\n", audit.display());
        fs::write(&configuration, text).expect("the folder is writable");
        let mut outgate = Command::new(env!("CARGO_BIN_EXE_outgate"));
        clean(&mut outgate).args(["run", "--origin-roots"]).arg(world.pki.roots());
        outgate.arg("--config").arg(configuration).arg("--environment").arg(&file);
        outgate.arg("--state-dir").arg(folder.path().join("state")).arg("--");
        let script = client.script();
        outgate.arg(client.path()).arg(script.path()).args([NAME, DOWN, DENIED, "sandbox"]);
        // A working directory is seen inside, wherever it lies.
        let finished = run(outgate.current_dir(installed()), b"", DEADLINE);
        assert!(finished.text().contains("all of it worked"), "{finished:?}");
        let lines = fs::read_to_string(audit).expect("an audit");
        let line = |line: &str| serde_json::from_str(line).expect("an audit line is JSON");
        check(&lines.lines().map(line).collect::<Vec<_>>(), &secret);
    });
}

fn works_through_the_proxy(client: Client) {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let secret = format!("Bearer {}", canary(32));
        let _server = server(&world, folder.path(), &secret);
        let mut gateway = world
            .gateway_builder()
            .environment(&environment(&secret))
            .configuration(LIMITS)
            .start();
        let state = gateway.state().to_string_lossy().into_owned();
        let told = world.outgate(&["ca", "env", "--state-dir", &state]).text();
        let trust = folder.path().join("trust.sh");
        fs::write(&trust, told).expect("the folder is writable");
        let mut command = Command::new("/bin/sh");
        clean(&mut command).args(["-c", ". \"$0\" && exec \"$@\""]).arg(&trust);
        let script = client.script();
        command.arg(client.path()).arg(script.path()).args([NAME, DOWN, DENIED, "proxy"]);
        command.env("https_proxy", format!("http://{}", gateway.explicit()));
        let finished = run(&mut command, b"", DEADLINE);
        assert!(finished.text().contains("all of it worked"), "{finished:?}");
        check(&gateway.final_audit(), &secret);
    });
}

#[test]
fn grpcio_works_in_a_sandbox_that_it_knows_nothing_of() {
    works_in_a_sandbox(PYTHON);
}

#[test]
fn grpcio_works_through_the_proxy() {
    works_through_the_proxy(PYTHON);
}

#[test]
fn grpc_js_works_in_a_sandbox_that_it_knows_nothing_of() {
    works_in_a_sandbox(NODE);
}

#[test]
fn grpc_js_works_through_the_proxy() {
    works_through_the_proxy(NODE);
}
