//! What is left after many runs of which some time out and some crash?
//!
//! A program of its own: it counts the descriptors and children of the whole process.

#[path = "support/scene.rs"]
mod scene;

use std::fs;

use futures_util::future::join_all;
use outgate_hooks::{Engine, Phase, Verdict};
use scene::{
    Here, ask_about, before_every_call, call, command, command_within, is_running, unique_sleep,
    unreachable,
};
use serde_json::json;

const DENY: &str = r#"echo '{"decision": "deny", "reason": "no"}'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_with_timeouts_and_crashes_leave_nothing_behind() {
    soak(10, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes: 10,000 runs, of which 3,000 time out and 1,000 crash"]
async fn ten_thousand_runs_leave_nothing_behind() {
    soak(200, 5).await;
}

/// Rounds of ten runs, so many times at once: six denials, one of them with a grandchild, three
/// time-outs, one crash.
async fn soak(rounds: usize, at_once: usize) {
    let sleep = unique_sleep();
    let sleeping = format!("sleep {sleep}");
    let scripts = [
        command(DENY),
        command(DENY),
        command(DENY),
        command(DENY),
        command(DENY),
        command_within(&format!("{sleeping} & {DENY}"), 30),
        command("kill -SEGV $$"),
        command_within(&sleeping, 1),
        command_within(&format!("setsid {sleeping}"), 1),
        command_within(&format!("{sleeping} & wait"), 1),
    ];
    let sets: Vec<_> = scripts.into_iter().map(|script| before_every_call(&[script])).collect();
    let (here, nothing) = (Here::default(), unreachable());
    let engine = Engine::new(Engine::HANDLERS * at_once, Engine::ROOM);
    let event = call(&json!({}));
    let round = || async {
        let phase = Phase::PreToolExecution;
        let sets = (0..at_once).flat_map(|_| &sets);
        let runs = sets.map(|set| ask_about(&engine, set, &event, phase, &here, &nothing));
        let answers = join_all(runs).await;
        answers.iter().flatten().filter(|answer| answer.decision == Verdict::Deny).count()
    };
    round().await;
    let before = open_descriptors();
    for _ in 0..rounds {
        assert_eq!(round().await, 6 * at_once);
    }
    assert_eq!(open_descriptors(), before);
    assert_eq!(children(), "");
    assert!(!is_running(&sleep));
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// The children of every thread, zombies too.
fn children() -> String {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
    tasks.filter_map(|task| of(task).ok()).collect()
}
