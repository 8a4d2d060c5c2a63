//! What does a command in a sandbox find, and what can it not find?

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;

/// A folder that is the same inside and outside: not below `/tmp`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir_in("/var/tmp").expect("an ordinary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).expect("it is there").join(name)
    }

    fn environment(&self, environment: &Value) -> PathBuf {
        let path = self.path("env_test.json");
        fs::write(&path, environment.to_string()).expect("it is writable");
        path
    }

    /// `outgate run` with this environment file and a script that runs in this place.
    fn command(
        &self,
        world: &World,
        environment: &Path,
        flags: &[&OsStr],
        script: &str,
    ) -> Command {
        let mut outgate = Command::new(env!("CARGO_BIN_EXE_outgate"));
        clean(&mut outgate).arg("run").arg("--environment").arg(environment).args(flags);
        outgate.arg("--origin-roots").arg(world.pki.roots());
        if !flags.contains(&OsStr::new("--state-dir")) {
            outgate.arg("--state-dir").arg(self.path("state"));
        }
        outgate.args(["--", "/bin/sh", "-c", script]).current_dir(self.0.path());
        outgate
    }

    fn sh(&self, world: &World, environment: &Value, script: &str) -> Finished {
        let environment = self.environment(environment);
        run(&mut self.command(world, &environment, &[], script), b"", SOON * 4)
    }

    fn comes(&self, name: &str) -> bool {
        wait_until(SOON * 4, || self.path(name).exists())
    }
}

fn allowing(domains: &[&str]) -> Value {
    let entries: Vec<_> = domains.iter().map(|domain| json!({"domain": domain})).collect();
    json!({"network": {"allowlist": entries}})
}

/// A script that prints a status, asked for with an emptied environment.
fn status(domain: &str) -> String {
    format!("env -i PATH=\"$PATH\" curl -s -o /dev/null -w '%{{http_code}}\\n' https://{domain}/")
}

/// A script that asks until it is allowed.
fn until_allowed(domain: &str) -> String {
    let status = status(domain);
    format!("n=0; until {status} | grep 200 || [ $n = 200 ]; do n=$((n + 1)); sleep 0.02; done")
}

fn hang_up(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP).expect("it runs");
}

#[test]
fn a_client_without_any_variable_trusts_the_ca() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let origin = world.https("api.example.com").start();
        let script = status("api.example.com");
        let finished = place.sh(&world, &allowing(&["api.example.com"]), &script);
        assert_eq!(finished.text(), "200\n", "{finished:?}");
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn secrets_of_the_operator_are_not_there() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let environment = place.environment(&json!({"network": {"allowlist": [
            {"domain": "api.example.com", "transform": {"Authorization": "Bearer hunter2"}},
        ]}}));
        let _socket = UnixListener::bind(place.path("agent.sock")).unwrap();
        let script = "ls -A state; cat env_test.json; \
                      curl -s --unix-socket agent.sock http://x/ || echo refused; \
                      grep -rsl 'PRIVATE KEY\\|hunter2' . /run /etc/ssl/certs /proc/[0-9]*/environ";
        let mut command = place.command(&world, &environment, &[], script);
        fs::create_dir(place.path("other")).unwrap();
        fs::write(place.path("other/ca.key"), "PRIVATE KEY").unwrap();
        command.env("HOME", place.path("")).env("OUTGATE_STATE_DIR", place.path("other"));
        let finished = run(&mut command, b"", SOON * 4);
        assert_eq!(finished.text(), "refused\n", "{finished:?}");
        assert!(place.path("state/ca.key").exists());
    });
}

#[test]
fn a_working_directory_below_tmp_is_there_and_nothing_else_of_tmp() {
    isolated(|| {
        let world = world!();
        for beside in ["/tmp", "/dev/shm"] {
            let folder = tempfile::tempdir_in(beside).unwrap();
            let other = tempfile::tempdir_in(beside).unwrap();
            let place = Place(tempfile::tempdir_in(folder.path()).unwrap());
            let environment = place.environment(&allowing(&[]));
            let script = format!(
                "pwd; ls -A state; cat env_test.json; echo made > made; \
                 ls {} 2>/dev/null; ls -A ..; ls -A {beside} | wc -l",
                other.path().display()
            );
            let mut command = place.command(&world, &environment, &[], &script);
            let finished = run(&mut command, b"", SOON * 4);
            let name = place.0.path().file_name().unwrap().to_string_lossy().into_owned();
            let expected = format!("{}\n{name}\n1\n", place.0.path().display());
            assert_eq!(finished.text(), expected, "{finished:?}");
            assert_eq!(fs::read_to_string(place.path("made")).unwrap(), "made\n");
        }
    });
}

#[test]
fn sources_and_variables_are_there_before_the_command() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let environment = json!({
            "env": {"MODE": "test", "HTTPS_PROXY": "http://127.0.0.1:1"},
            "sources": [
                {"type": "inline", "target": ".agents/hooks.json", "content": "{}"},
                {"type": "inline", "target": "/workspace/data/x", "content": "aGk=",
                 "encoding": "base64", "read_only": true},
            ],
            "network": {"allowlist": []},
        });
        let script = "cat /.agents/hooks.json /workspace/data/x; echo; echo $MODE; \
                      env | grep -i proxy; (echo y > /workspace/data/x) 2>/dev/null; \
                      rm -f /workspace/data/x 2>/dev/null; cat /workspace/data/x; \
                      echo z > /.agents/made && cat /.agents/made";
        let finished = place.sh(&world, &environment, script);
        assert_eq!(finished.text(), "{}hi\ntest\nhiz\n", "{finished:?}");
        assert!(finished.stderr.contains("env.HTTPS_PROXY"), "{}", finished.stderr);
    });
}

#[test]
fn what_is_asked_for_and_cannot_be_is_said_before_anything_runs() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let environment = place.environment(&allowing(&[]));
        fs::create_dir_all(place.path("root/etc")).unwrap();
        let (root, working) = (place.path("root"), place.path(""));
        fs::set_permissions(&working, Permissions::from_mode(0o700)).unwrap();
        let table = [
            ("--keep-env", OsStr::new("https_proxy"), 64, "--keep-env https_proxy"),
            ("--sandbox-root", root.as_os_str(), 1, "the machine has a /etc already"),
            ("--state-dir", working.as_os_str(), 1, "holds the working directory"),
        ];
        for (flag, value, code, said) in table {
            let flags = [OsStr::new(flag), value];
            let mut command = place.command(&world, &environment, &flags, "echo ran");
            let finished = run(&mut command, b"", SOON * 4);
            assert_eq!((finished.code(), finished.text().as_str()), (code, ""), "{finished:?}");
            assert!(finished.stderr.contains(said), "{said} in {}", finished.stderr);
        }
    });
}

#[test]
fn no_open_folder_goes_in_with_the_command() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let environment = place.environment(&allowing(&[]));
        let mut command = place.command(&world, &environment, &[], "ls /proc/self/fd/0/..");
        let output = command.stdin(File::open(place.path("")).unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(64), &b""[..]),
            "{said}"
        );
        assert!(said.contains("standard input is a folder"), "{said}");
    });
}

#[test]
fn a_changed_environment_file_counts_when_a_person_says_so() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let _origin = world.https("api.example.com").start();
        let environment = place.environment(&allowing(&[]));
        let (now, later) = (status("api.example.com"), until_allowed("api.example.com"));
        let script = format!(
            "echo > up; until [ -e go ]; do sleep 0.02; done; {now}; echo > asked; {later}"
        );
        let mut command = place.command(&world, &environment, &[], &script);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        assert!(place.comes("up"));
        fs::write(&environment, allowing(&["api.example.com"]).to_string()).unwrap();
        // A gateway that watched the file would have read it by then.
        std::thread::sleep(Duration::from_millis(500));
        fs::write(place.path("go"), "").unwrap();
        assert!(place.comes("asked"));
        hang_up(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "403\n200\n");
    });
}

#[test]
fn a_command_cannot_put_another_environment_file_in_the_place_of_its_own() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let api = world.https("api.example.com").start();
        let _other = world.https("a.ok.example.test").start();
        fs::create_dir(place.path("real")).unwrap();
        let real = place.path("real/env_test.json");
        fs::write(&real, allowing(&[]).to_string()).unwrap();
        fs::write(place.path("real/beside"), "").unwrap();
        let link = place.path("link.json");
        symlink(&real, &link).unwrap();
        fs::write(place.path("evil.json"), allowing(&["*.example.com"]).to_string()).unwrap();
        let script = format!(
            "ln -sf evil.json link.json; mv real/env_test.json real/x; \
             cp evil.json real/env_test.json; mv real moved; mkdir -p real; \
             cp evil.json real/env_test.json; echo > ready; {}; {}",
            until_allowed("a.ok.example.test"),
            status("api.example.com"),
        );
        let mut command = place.command(&world, &link, &[], &script);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        assert!(place.comes("ready"));
        // The one that a person changes is the one that is read.
        fs::write(&real, allowing(&["a.ok.example.test"]).to_string()).unwrap();
        hang_up(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "200\n403\n");
        assert_eq!(api.connections(), 0);
    });
}

#[test]
fn what_the_command_may_have_written_is_not_read_when_a_person_says_so() {
    isolated(|| {
        let (world, place) = (world!(), Place::new());
        let api = world.https("api.example.com").start();
        let _other = world.https("a.ok.example.test").start();
        let permitted = allowing(&["a.ok.example.test"]);
        fs::write(place.path("evil.json"), allowing(&["*.example.com"]).to_string()).unwrap();
        fs::write(place.path("outgate.toml"), "").unwrap();
        fs::write(place.path("evil.toml"), "[addresses]\nallow = [\"10.0.0.0/8\"]\n").unwrap();
        for attack in ["cat evil.json > env_test.json", "ln -sf evil.toml link.toml"] {
            let environment = place.environment(&permitted);
            let _ = fs::remove_file(place.path("link.toml"));
            symlink("outgate.toml", place.path("link.toml")).unwrap();
            let script = format!(
                "echo > up; until [ -e go ]; do sleep 0.02; done; {attack} && echo > done; \
                 until [ -e asked ]; do sleep 0.02; done; {}; {}; rm up go done asked",
                status("api.example.com"),
                status("a.ok.example.test"),
            );
            let flags = ["--config", "link.toml"].map(OsStr::new);
            let mut command = place.command(&world, &environment, &flags, &script);
            command.stdout(Stdio::piped()).stderr(File::create(place.path("log")).unwrap());
            let child = command.spawn().unwrap();
            assert!(place.comes("up"));
            if attack.ends_with("env_test.json") {
                // As an editor does it: what hid the old file goes with it.
                fs::remove_file(&environment).unwrap();
                place.environment(&permitted);
            }
            fs::write(place.path("go"), "").unwrap();
            assert!(place.comes("done"), "{attack}");
            hang_up(&child);
            let log = || fs::read_to_string(place.path("log")).unwrap();
            assert!(wait_until(SOON * 4, || log().contains("may have written it")));
            fs::write(place.path("asked"), "").unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "403\n200\n", "{attack}");
        }
        assert_eq!(api.connections(), 0);
    });
}
