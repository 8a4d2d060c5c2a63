//! What becomes of a stored credential whose value is read from elsewhere, and can't be?

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

#[test]
fn one_whose_file_is_gone_refuses_its_own_requests_and_nothing_else() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let _ok = place.world.https(OK).start();
        let (main, other) = (place.path("main"), place.path("nowhere/other"));
        let secret = canary(40);
        place.write("main", &secret);
        place.stores("main", &from_file(&main));
        let script = format!("{}; {}", status(API), status(OK));
        let finished = place.sh(&script);
        assert_eq!(finished.text(), "200 \n200 \n", "{finished:?}");
        assert!(!finished.stderr.contains("the credential main"), "{}", finished.stderr);
        fs::remove_file(&main).expect("it is there");
        place.stores("other", &from_file(&other));
        let finished = place.sh(&script);
        assert_eq!(finished.text(), "403 credential_unavailable\n200 \n", "{finished:?}");
        for (id, file) in [("main", &main), ("other", &other)] {
            let told = format!("the credential {id}: {} can't be read: ", file.display());
            let lines: Vec<_> = finished.stderr.lines().filter(|one| one.contains(&told)).collect();
            let [line] = lines[..] else { panic!("{}", finished.stderr) };
            assert!(line.contains("start anew") && line.contains("credentials update"), "{line}");
        }
        place.write("main", &secret);
        assert_eq!(place.sh(&script).text(), "200 \n200 \n");
        assert_eq!(api.requests().len(), 2);
        assert_secret_absent(&finished.stderr, &secret);
    });
}

#[test]
fn one_whose_file_comes_back_into_a_folder_of_its_own_is_used_and_stays_hidden() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        fs::create_dir(place.path("own")).expect("writable");
        place.stores("main", &from_file(&place.path("own/main")));
        let script = format!("{}; echo > asked; {}; ls own", status(API), until_allowed(API));
        let child = place.start(&script);
        assert!(wait_until(SOON, || place.path("asked").exists()));
        let secret = canary(40);
        place.replace("own/main", &secret);
        let (said, logs) = ended(child);
        assert_eq!(said, "403 credential_unavailable\n200 \n", "{logs}");
        let expected = format!("Bearer {secret}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn what_the_command_may_have_put_in_the_place_of_a_file_is_no_value() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let [token, other] = [canary(40), canary(40)];
        place.write("other", &other);
        place.stores("other", &from_file(&place.path("other")));
        place.stores("main", &from_file(&place.path("main")));
        // Gone at the start: the command makes one, and a link to a secret that it can't read.
        let script = format!(
            "cat other; echo forged > main; sleep 0.2; {0}; ln -sf other main; sleep 0.2; {0}; \
             rm main",
            status(API)
        );
        let refused = "403 credential_unavailable\n";
        let finished = place.sh(&script);
        assert_eq!(finished.text(), refused.repeat(2), "{finished:?}");
        assert!(!finished.text().contains(&other), "{finished:?}");
        // Replaced meanwhile: what hid the old one went with it.
        place.write("main", &token);
        let script = format!(
            "{0}; echo > asked; {1}; sleep 0.2; {0}; ln -sf other main; sleep 0.2; {0}",
            status(API),
            until_there("replaced"),
        );
        let child = place.start(&script);
        assert!(wait_until(SOON * 4, || place.path("asked").exists()));
        place.replace("main", &token);
        place.write("replaced", "");
        let (said, logs) = ended(child);
        assert_eq!(said, format!("200 \n{}", refused.repeat(2)), "{logs}");
        assert!(logs.contains("main can't be read: another one was put in its place"), "{logs}");
        let requests = api.requests();
        assert_eq!(requests.len(), 1);
        let expected = format!("Bearer {token}");
        assert_eq!(requests[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn one_that_is_stored_meanwhile_is_read_only_if_its_file_is_hidden() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let [main, hidden] = [canary(40), canary(40)];
        place.write("main", &main);
        place.write("own/hidden", &hidden);
        place.stores("other", &from_file(&place.path("own/hidden")));
        let script = format!("{}; {}; {}", until_there("stored"), status(API), until_allowed(API));
        let child = place.start(&script);
        place.stores("main", &from_file(&place.path("main")));
        // Another process stored it; the gateway looks a few times a second.
        std::thread::sleep(Duration::from_secs(1));
        place.write("stored", "");
        std::thread::sleep(Duration::from_millis(300));
        let set = format!("token={}", from_file(&place.path("own/hidden")));
        let words = ["credentials", "update", "main", "--set", &set].map(OsStr::new);
        let updated = run(&mut place.outgate(&words), b"", SOON * 4);
        assert_eq!(updated.code(), 0, "{updated:?}");
        let (said, logs) = ended(child);
        assert_eq!(said, "403 credential_unavailable\n200 \n", "{logs}");
        let expected = format!("Bearer {hidden}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn a_gateway_starts_without_it_says_so_and_uses_it_when_it_comes() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let _ok = place.world.https(OK).start();
        let (main, unset) = (place.path("nowhere/main"), json!({"from_env": "OUTGATE_TEST_UNSET"}));
        place.stores("main", &from_file(&main));
        place.stores("unset", &unset);
        let gateway = place.world.gateway_builder().state(&place.path("state"));
        let gateway = gateway.argument("--environment").argument(place.path("env.json")).start();
        for told in [
            format!("the credential main: {} can't be read: ", main.display()),
            "the credential unset: the variable OUTGATE_TEST_UNSET is not set".to_owned(),
        ] {
            assert!(gateway.wait_log(&told), "{told}: {:?}", gateway.logs());
        }
        let answer = |domain: &str| {
            let answer = gateway.curl(&format!("https://{domain}/")).run();
            (answer.status, answer.reason().map(str::to_owned))
        };
        let refused = (403, Some("credential_unavailable".to_owned()));
        assert_eq!((answer(API), answer(OK).0), (refused, 200));
        let secret = canary(40);
        place.write("nowhere/main", &secret);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(answer(API), (200, None));
        let expected = format!("Bearer {secret}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
        // Whoever asks for its sandbox is not kept waiting by the other one either.
        assert_eq!(place.sh(&status(OK)).text(), "200 \n");
    });
}
