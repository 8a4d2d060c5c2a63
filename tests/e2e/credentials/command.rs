//! Can a person store a secret with a gateway and without one?

use std::fs;
use std::process::Command;
use std::time::Duration;

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::pty::Terminal;

fn credentials(state: &std::path::Path, arguments: &[&str], input: &str) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outgate"));
    clean(&mut command).arg("credentials").args(arguments).arg("--state-dir").arg(state);
    run(&mut command, input.as_bytes(), Duration::from_secs(60))
}

#[test]
fn a_secret_stored_without_a_gateway_is_used_by_the_next_one() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let secret = canary(40);
        let create = ["create", "main", "--type", "bearer_token", "--set", "prefix=token"];
        let made = credentials(&state, &create, &format!("{secret}\n"));
        assert_eq!(made.code(), 0, "{made:?}");
        assert!(made.text().starts_with("main  bearer_token  active  "), "{made:?}");
        assert_eq!(credentials(&state, &create, "x").code(), 1, "the id is taken");
        let environment = json!({"network": {"allowlist": [{"domain": "api.example.com", "credential": "main"}]}});
        let gateway = world.gateway_builder().environment(&environment).state(&state).start();
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        // Now by the gateway's socket.
        let file = folder.path().join("new");
        let new = canary(40);
        fs::write(&file, &new).expect("written");
        let path = file.display().to_string();
        let updated = credentials(&state, &["update", "main", "--value-file", &path], "");
        assert_eq!(updated.code(), 0, "{updated:?}");
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        let seen = origin.requests();
        assert_eq!(seen[0].header("authorization"), Some(format!("token {secret}").as_str()));
        assert_eq!(seen[1].header("authorization"), Some(format!("token {new}").as_str()));
        let listed = credentials(&state, &["list"], "");
        assert!(listed.text().contains("main  bearer_token  active"), "{listed:?}");
        assert_eq!(credentials(&state, &["delete", "main"], "").code(), 0);
        assert_eq!(credentials(&state, &["get", "main"], "").code(), 1);
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 403);
        for output in [made.text(), updated.text(), listed.text(), gateway.output()] {
            for secret in [&secret, &new] {
                assert_secret_absent(&output, secret);
            }
        }
    });
}

#[test]
fn a_store_that_its_key_does_not_open_stops_the_start() {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let made = credentials(&state, &["create", "a", "--type", "bearer_token"], "t");
        assert_eq!(made.code(), 0, "{made:?}");
        let key = "07".repeat(32);
        let wrong = world.gateway_builder().state(&state).variable("OUTGATE_STORE_KEY", &key);
        let failed = wrong.try_start().err().expect("it does not start");
        assert!(format!("{failed:?}").contains("this key does not open it"), "{failed:?}");
        fs::remove_file(state.join("store.key")).expect("removed");
        let lost = world.gateway_builder().state(&state).try_start();
        assert!(format!("{:?}", lost.err().expect("no start")).contains("is missing, and"));
    });
}

#[test]
fn a_command_in_a_sandbox_has_the_placeholder_and_its_origin_the_value() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let value = canary(40);
        let run = world.run().environment(&json!({
            "env": {"API_KEY": {"credential": "key"}},
            "network": {"allowlist": [{"domain": "api.example.com"}]},
        }));
        let create = ["create", "key", "--type", "environment_variable"];
        let made = credentials(run.state(), &create, &value);
        assert_eq!(made.code(), 0, "{made:?}");
        let script = "env; curl -s https://api.example.com/ -H \"x-key: $API_KEY\"";
        let finished = run.sh(script);
        assert_eq!(finished.code(), 0, "{finished:?}");
        assert!(finished.text().contains("API_KEY=ogph"), "{finished:?}");
        assert_secret_absent(finished.text(), &value);
        assert_eq!(origin.requests()[0].header("x-key"), Some(value.as_str()));
    });
}

#[test]
fn a_terminal_shows_what_is_typed_again_after_an_interrupt_at_the_prompt() {
    isolated(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-i").env("PS1", "$ ").env_remove("ENV").current_dir("/");
        let mut shell = Terminal::start(&mut shell);
        shell.expect("$ ");
        let (program, state) = (env!("CARGO_BIN_EXE_outgate"), folder.path().display());
        let create = "credentials create main --type bearer_token --state-dir";
        shell.press(&format!("{program} {create} {state}\n"));
        shell.expect("token (not shown): ");
        shell.press("\x03");
        shell.expect("$ ");
        shell.press("echo code-$?; stty -a\n");
        shell.expect("code-130");
        shell.expect(" echo ");
    });
}

#[test]
fn what_would_happen_is_told_with_the_credentials_that_are_there() {
    isolated(|| {
        let world = world!();
        let _origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let entries = json!([
            {"domain": "api.example.com", "credential": "main"}, {"domain": "a.ok.example.test"},
        ]);
        let environment = json!({"environment_id": "e1", "network": {"allowlist": entries}});
        let file = folder.path().join("e1.json");
        fs::write(&file, environment.to_string()).expect("written");
        let explained = |domain: &str| {
            let words = ["explain", "--json", "--environment"];
            let mut command = Command::new(env!("CARGO_BIN_EXE_outgate"));
            clean(&mut command).args(words).arg(&file).arg("--state-dir").arg(&state);
            let said = run(command.arg(format!("https://{domain}/")), b"", Duration::from_secs(60));
            let told: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
            (said.code(), told)
        };
        let (code, told) = explained("api.example.com");
        assert_eq!((code, &told["verdict"]), (0, &json!("allow")));
        let unknown = told["credentials_not_looked_up"].as_str().expect("it is said");
        assert!(unknown.contains("has no store; --state-dir names another"), "{unknown}");
        assert!(!state.exists(), "a question makes nothing");
        let create = |id: &str, more: &[&str], value: &str| {
            let words = [&["create", id, "--type", "bearer_token"], more].concat();
            assert_eq!(credentials(&state, &words, value).code(), 0);
        };
        create("other", &[], &canary(40));
        let (code, told) = explained("api.example.com");
        assert_eq!((code, &told["reason"]), (1, &json!("credential_unavailable")), "{told}");
        let (code, told) = explained("a.ok.example.test");
        assert_eq!((code, &told["credentials_not_looked_up"]), (0, &json!(null)), "{told}");

        // By the gateway that serves it, whose answer is what comes to pass.
        let gateway = world.gateway_builder().environment(&environment).state(&state).start();
        let body = json!({"environment_id": "e1", "url": "https://api.example.com/"});
        let served = || {
            let told = gateway.api("POST", "/v1/explain", &body).json();
            let answer = gateway.curl("https://api.example.com/").run();
            assert_eq!(told["reason"].as_str(), answer.reason(), "{told}");
            assert_eq!(told["verdict"] == "allow", answer.status == 200, "{told}");
            answer.status
        };
        assert_eq!(served(), 403);
        let token = folder.path().join("token");
        let set = format!("token={}", json!({"from_file": token}));
        create("main", &["--set", &set], "");
        assert_eq!(served(), 403);
        let (code, told) = explained("api.example.com");
        assert_eq!((code, &told["credentials"]), (0, &json!(["main"])));
        let unknown = told["credentials_not_looked_up"].as_str().expect("it is said");
        assert!(unknown.starts_with("the value of main, seen from here: "), "{unknown}");
        fs::write(&token, canary(40)).expect("written");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(served(), 200);
        let (code, told) = explained("api.example.com");
        assert_eq!((code, &told["credentials_not_looked_up"]), (0, &json!(null)), "{told}");
    });
}
