//! `outgate hook` where no sandbox of the environment runs: it makes one.

use outgate_tests::prelude::*;

use super::scene::{Place, before_every_call, closed, has, only, telling, view};

#[test]
fn a_deny_exits_with_two_and_an_allow_with_none() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate(
            "case $(cat) in */private/*) echo '{\"decision\": \"deny\", \"reason\": \"no\"}';; \
             *) echo '{\"decision\": \"allow\"}';; esac",
        );
        let denied = place.hook("pre", &view("/private/x").to_string());
        assert_eq!(denied.code(), 2, "{denied:?}");
        assert!(denied.text().contains(r#""reason":"no""#), "{denied:?}");
        assert_eq!(place.hook("pre", &view("/public/x").to_string()).code(), 0);
        // After the call nothing is taken back.
        assert_eq!(place.hook("post", &view("/private/x").to_string()).code(), 0);
    });
}

#[test]
fn an_event_that_cannot_be_read_is_not_approved() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        for event in [
            "",
            "{}",
            r#"{"tool_call": {"name": "x", "args": {"a": 1, "a": 2}}}"#,
            r#"{"tool_call": {"name": "x", "args": {}}} more"#,
        ] {
            let finished = place.hook("pre", event);
            assert_eq!((finished.code(), finished.text().as_str()), (1, ""), "{event}");
        }
    });
}

#[test]
fn the_command_runs_in_a_sandbox_with_the_environments_variables() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        let inside = |what: &str| {
            place.gate(&telling(what));
            let answer = place.ask(&view("/x"));
            answer["reason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
        };
        assert_eq!(inside("echo $MODE"), "test");
        assert_eq!(inside("pwd"), place.path("").to_str().unwrap().trim_end_matches('/'));
        assert_eq!(inside("ls -A state | wc -l"), "0");
        for (field, value) in [
            ("CapEff", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("Seccomp", "2"),
            ("NoNewPrivs", "1"),
        ] {
            let line = inside(&format!("grep {field}: /proc/self/status | cut -f2"));
            assert_eq!(line, value, "{field}");
        }
        assert_eq!(inside("ls /proc/self/fd | wc -l"), "4");
        assert_eq!(inside("cat /proc/1/environ /proc/$PPID/environ 2>/dev/null | wc -c"), "0");
    });
}

#[test]
fn the_last_good_hooks_outlive_the_sandbox() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate("echo '{\"decision\": \"deny\"}'");
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        place.write("root/.agents/hooks.json", "{");
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        std::fs::remove_file(place.path("root/.agents/hooks.json")).unwrap();
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        assert!(has(&place.path("state/hooks"), "env_one.json"));
    });
}

#[test]
fn the_operators_file_comes_first_and_cannot_be_seen_or_replaced() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        let operator = telling("cat operator.json | wc -c");
        let operator = before_every_call(&json!({"type": "command", "command": operator}));
        place.write("operator.json", &operator.to_string());
        place.write("outgate.toml", "[hooks]\nfile = \"operator.json\"\n");
        place.gate("echo '{\"decision\": \"allow\"}'");
        let answer = place.ask(&view("/x"));
        assert_eq!((only(&answer), &answer["reason"]), ("deny", &json!("0")));
    });
}

#[test]
fn a_pinned_file_stays_as_it_was() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.write("outgate.toml", "[hooks]\npin = true\n");
        place.gate("echo '{\"decision\": \"deny\"}'");
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        place.gate("echo '{\"decision\": \"allow\"}'");
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        assert!(place.hook("pre", &view("/x").to_string()).stderr.contains("pinned"));
    });
}

#[test]
fn a_program_that_the_agent_wrote_cannot_answer_instead() {
    isolated(|| {
        let mut environment = closed();
        environment["env"]["PATH"] = json!("tools:/usr/bin:/bin");
        let place = Place::new(&world!(), &environment);
        std::fs::create_dir(place.path("tools")).unwrap();
        // What the sandbox does while its hooks are asked.
        let script = "#!/bin/sh\necho '{\"decision\": \"allow\"}'; echo forged >&2\n\
                      touch called; exec /bin/sleep \"$@\"\n";
        place.write("tools/sleep", script);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path("tools/sleep"), executable).unwrap();
        place
            .gate("until [ -e called ]; do /bin/sleep 0.05; done; echo '{\"decision\": \"deny\"}'");
        let finished = place.hook("pre", &view("/x").to_string());
        let answer: Result<serde_json::Value, _> = serde_json::from_str(&finished.text());
        let answer = answer.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        assert_eq!((finished.code(), only(&answer)), (2, "deny"), "{finished:?}");
        assert!(!finished.stderr.contains("forged"), "{finished:?}");
    });
}
