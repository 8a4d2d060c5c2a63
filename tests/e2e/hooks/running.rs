//! `outgate hook` where `outgate run` runs: its sandbox is asked, and no other.

use outgate_tests::prelude::*;
use outgate_tests::run::processes_with;
use outgate_tests::wait::SOON;

use super::scene::{Place, before_every_call, closed, only, telling, view};

/// A number that no other process of the machine sleeps for.
const LONG: &str = "86399";

#[test]
fn commands_run_in_the_sandbox_that_runs() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate(&telling("cat /tmp/mark; cat /proc/1/comm"));
        let running = place.run("printf of-this-sandbox- > /tmp/mark; touch here");
        assert!(place.comes("here"), "the command runs");
        let answer = place.ask(&view("/x"));
        assert_eq!(answer["reason"], "of-this-sandbox-outgate-sandbox", "{answer}");
        assert!(place.path("state/run/env_one.sock").exists());
        drop(running);
        assert_eq!(place.audit("hook").len(), 1);
    });
}

#[test]
fn a_file_that_the_command_changes_counts_from_the_next_event() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate("echo '{\"decision\": \"deny\"}'");
        let _running = place.run("touch here");
        assert!(place.comes("here"), "the command runs");
        assert_eq!(only(&place.ask(&view("/x"))), "deny");
        place.gate("echo '{\"decision\": \"allow\"}'");
        assert_eq!(only(&place.ask(&view("/x"))), "allow");
        place.write("root/.agents/hooks.json", "{\"gate\": {}");
        assert_eq!(only(&place.ask(&view("/x"))), "allow");
    });
}

#[test]
fn what_the_command_writes_first_is_not_what_is_pinned() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.write("outgate.toml", "[hooks]\npin = true\n");
        let deny = json!({"type": "command", "command": "echo '{\"decision\": \"deny\"}'"});
        place.write("written.json", &before_every_call(&deny).to_string());
        let _running = place.run("mkdir .agents; cp written.json .agents/hooks.json; touch here");
        assert!(place.comes("here"), "the command runs");
        assert_eq!(place.ask(&view("/x"))["outcomes"], json!([]));
    });
}

#[test]
fn what_a_command_leaves_behind_is_ended_and_the_sandbox_goes_on() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate(&format!(
            "(setsid sleep {LONG} &); sleep 0.1; echo '{{\"decision\": \"deny\"}}'"
        ));
        let _running = place.run("touch here");
        assert!(place.comes("here"), "the command runs");
        for _ in 0..3 {
            assert_eq!(only(&place.ask(&view("/x"))), "deny");
        }
        assert!(wait_until(SOON, || processes_with(LONG) == 0));
    });
}

#[test]
fn many_calls_at_once_are_all_answered() {
    isolated(|| {
        let place = Place::new(&world!(), &closed());
        place.gate("cat > /dev/null; sleep 0.2; echo '{\"decision\": \"deny\"}'");
        let _running = place.run("touch here");
        assert!(place.comes("here"), "the command runs");
        std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..12).map(|_| scope.spawn(|| only(&place.ask(&view("/x"))).to_owned())).collect();
            for call in calls {
                assert_eq!(call.join().unwrap(), "deny");
            }
        });
        // Lines are written a moment after the answers.
        assert!(wait_until(SOON, || place.audit("hook").len() == 12));
    });
}
