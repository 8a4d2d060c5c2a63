//! What becomes of a tool call, whatever a command of a hook does?

#[path = "support/scene.rs"]
mod scene;

use std::fs;
use std::time::{Duration, Instant};

use outgate_hooks::{Answer, Engine, Phase, Verdict};
use scene::{
    Here, Nowhere, Other, ask, ask_about, ask_command, before_every_call, call, command,
    command_within, endings, hooks, is_running, table, unique_sleep, unreachable,
};
use serde_json::json;

const DENY: &str = r#"echo '{"decision": "deny", "reason": "no"}'"#;
const ALLOW: &str = r#"echo '{"decision": "allow"}'"#;

fn verdict(answer: &Answer) -> (&'static str, String) {
    let decision = if answer.decision == Verdict::Deny { "deny" } else { "allow" };
    (decision, endings(answer).join(","))
}

#[tokio::test]
async fn each_exit_status_and_output_means_what_the_document_says() {
    let prints = |row: &str| match row {
        "deny" => DENY,
        "allow" => ALLOW,
        "nothing" => ":",
        "no JSON" => "echo denied",
        "JSON without `decision`" => r#"echo '{"reason": "no"}'"#,
        "text around the JSON" => r#"echo 'so: {"decision": "deny"}'"#,
        "a key twice" => r#"echo '{"decision": "deny", "decision": "deny"}'"#,
        "over 1 MiB" => "head -c 2000000 /dev/zero | tr '\\0' ' '; sleep 10",
        other => panic!("what is {other}?"),
    };
    let cells = table("### Commands");
    assert_eq!(cells.len(), 8 * 8);
    for (row, column, expected) in cells {
        let ends = match column.strip_prefix("SIG") {
            Some(signal) => format!("kill -{signal} $$"),
            None => format!("exit {column}"),
        };
        let answer = ask_command(command(&format!("{}; {ends}", prints(&row)))).await;
        assert_eq!(endings(&answer), [expected.as_str()], "{row}, {column}");
        assert_eq!(answer.decision == Verdict::Deny, expected == "deny", "{row}, {column}");
    }
}

#[tokio::test]
async fn a_deny_names_its_reason() {
    let answer = ask_command(command(DENY)).await;
    assert_eq!(answer.reason.expect("a reason").as_str(), "no");
}

#[tokio::test]
async fn the_command_gets_the_payload_and_then_the_end_of_it() {
    let script = r#"case "$(cat)" in
        '{"tool_call":{"name":"view_file","args":{"path":"/public/x"}},"environment_id":"env_1"}') ;;
        *) exit 1;; esac; echo '{"decision": "deny"}'"#;
    assert_eq!(verdict(&ask_command(command(script)).await), ("deny", "deny".to_owned()));
}

#[tokio::test]
async fn a_grandchild_that_keeps_the_pipe_open_delays_nothing_and_is_ended() {
    let sleep = unique_sleep();
    for background in [
        format!("sleep {sleep} &"),
        format!("setsid sleep {sleep} & sleep 0.1;"),
        format!("(setsid sh -c 'trap \"\" TERM HUP; (sleep {sleep} &) ; sleep {sleep}' &) ;"),
    ] {
        let started = Instant::now();
        let answer = ask_command(command_within(&format!("{background} {DENY}"), 60)).await;
        assert_eq!(verdict(&answer), ("deny", "deny".to_owned()), "{background}");
        assert!(started.elapsed() < Duration::from_secs(20), "{background}");
        assert!(!is_running(&sleep), "{background}");
    }
}

#[tokio::test]
async fn at_the_timeout_everything_the_command_started_is_ended() {
    let sleep = unique_sleep();
    for script in [
        format!("sleep {sleep}"),
        format!("sh -c 'sleep {sleep} & wait'"),
        format!("trap '' TERM INT HUP; while :; do sleep {sleep}; done"),
        format!("setsid sh -c 'trap \"\" TERM; while :; do sleep {sleep}; done' & wait"),
        format!("kill -STOP $$; sleep {sleep}"),
        format!("cat; sleep {sleep}"),
        format!("exec >&- 2>&-; sleep {sleep}"),
        format!("{DENY}; sleep {sleep}"),
        format!("trap '{}; exit 0' TERM; sleep {sleep} & wait", DENY.replace('\'', "'\\''")),
    ] {
        let started = Instant::now();
        let answer = ask_command(command_within(&script, 1)).await;
        assert_eq!(verdict(&answer), ("allow", "timeout".to_owned()), "{script}");
        assert!(started.elapsed() >= Duration::from_secs(1), "{script}");
        assert!(started.elapsed() < Duration::from_secs(20), "{script}");
        assert!(!is_running(&sleep), "{script}");
    }
}

#[tokio::test]
async fn a_command_may_clean_up_between_term_and_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("cleaned");
    let script =
        format!("trap 'echo x > {}; exit 0' TERM; while :; do sleep 0.05; done", mark.display());
    ask_command(command_within(&script, 1)).await;
    assert!(mark.exists());
}

#[tokio::test]
async fn a_command_that_never_reads_its_stdin_is_not_lost() {
    let event = call(&json!({"content": "x".repeat(1 << 20)}));
    let set = before_every_call(&[command("echo '{\"decision\":\"deny\"}'; exit 0")]);
    let (engine, here, nothing) = (Engine::default(), Here::default(), unreachable());
    for _ in 0..100 {
        let answer =
            ask_about(&engine, &set, &event, Phase::PreToolExecution, &here, &nothing).await;
        assert_eq!(verdict(&answer.unwrap()), ("deny", "deny".to_owned()));
    }
}

#[tokio::test]
async fn large_outputs_are_bounded_and_block_nothing() {
    let spaces = |len: usize| format!("head -c {len} /dev/zero | tr '\\0' ' '");
    for (script, expected) in [
        (format!("head -c 300000000 /dev/zero; {DENY}"), ("allow", "output_too_large")),
        ("yes".to_owned(), ("allow", "output_too_large")),
        (format!("{DENY}; {}", spaces(2 << 20)), ("allow", "output_too_large")),
        (format!("{}; {DENY}", spaces(5 << 20)), ("allow", "output_too_large")),
        (format!("{DENY}; {}", spaces(1 << 19)), ("deny", "deny")),
        (
            format!("head -c 30000000 /dev/zero >&2; {DENY}; head -c 3000000 /dev/zero >&2"),
            ("deny", "deny"),
        ),
    ] {
        let answer = ask_command(command_within(&script, 60)).await;
        assert_eq!(verdict(&answer), (expected.0, expected.1.to_owned()), "{script}");
    }
}

#[tokio::test]
async fn what_the_command_started_has_its_second_too() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let cleans_up = format!("trap 'sleep 0.2; echo x > {}; exit 0' TERM", mark.display());
    let script = format!("({cleans_up}; while :; do sleep 0.05; done) & exec sleep 60");
    let answer = ask_command(command_within(&script, 1)).await;
    assert_eq!(verdict(&answer), ("allow", "timeout".to_owned()));
    assert!(mark.exists());
}

#[tokio::test]
async fn a_command_that_cannot_start_says_so() {
    // One argument has at most 128 KiB (execve(2)).
    let answer = ask_command(command(&format!("{DENY} #{}", "x".repeat(128 << 10)))).await;
    assert_eq!(verdict(&answer), ("allow", "cannot_start".to_owned()));
    let set = before_every_call(&[command(DENY)]);
    let answer = ask(&set, &Nowhere, &unreachable()).await;
    assert_eq!(verdict(&answer), ("allow", "no_sandbox".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("gate.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    for missing in [script.to_str().unwrap(), "/nowhere/gate.py", "no-such-program"] {
        let answer = ask_command(command(missing)).await;
        assert_eq!(verdict(&answer), ("allow", "exit_status".to_owned()), "{missing}");
    }
}

#[tokio::test]
async fn a_command_whose_working_directory_is_gone_runs_in_the_root() {
    for directory in ["/nowhere", "/etc/passwd", "", "a\0b"] {
        let here = Here { directory: Some(directory.to_owned()), ..Here::default() };
        let set = before_every_call(&[command(&format!("test \"$(pwd)\" = / && {DENY}"))]);
        let answer = ask(&set, &here, &unreachable()).await;
        assert_eq!(verdict(&answer), ("deny", "deny".to_owned()), "{directory:?}");
    }
}

#[tokio::test]
async fn the_command_has_its_own_environment_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let here = Here {
        env: vec![("API_TOKEN".to_owned(), "placeholder".to_owned())],
        directory: Some(folder.path().to_str().unwrap().to_owned()),
        ..Here::default()
    };
    let script = format!(
        "exec 9>&1; {{ env; echo ---; ls /proc/self/fd | wc -l; pwd; cat /proc/self/status; \
         echo ---; cat /proc/$PPID/environ; }} > out 9>&-; {DENY}"
    );
    let answer = ask(&before_every_call(&[command(&script)]), &here, &unreachable()).await;
    assert_eq!(verdict(&answer), ("deny", "deny".to_owned()));
    let text = fs::read_to_string(&out).unwrap();
    let parts: Vec<&str> = text.split("---\n").collect();
    let names: Vec<&str> = parts[0].lines().filter_map(|line| line.split('=').next()).collect();
    // A shell sets the last three itself.
    assert!(
        names
            .iter()
            .all(|name| ["API_TOKEN", "PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(name)),
        "{names:?}"
    );
    assert!(parts[0].contains("API_TOKEN=placeholder"), "{text}");
    // 0, 1, 2, and the one with which `ls` reads the folder.
    assert!(parts[1].starts_with("4\n"), "{text}");
    assert!(parts[1].contains(folder.path().to_str().unwrap()), "{text}");
    for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(parts[1].contains(&format!("{line}:\t0000000000000000")), "{line}: {text}");
    }
    assert!(parts[1].contains("NoNewPrivs:\t1"), "{text}");
    assert_eq!(parts[2], "", "{text}");
}

#[tokio::test]
async fn descriptors_that_the_test_has_open_do_not_reach_the_command() {
    let inheritable = fs::File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(&inheritable, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
        .unwrap();
    let script = format!("test $(ls /proc/self/fd | wc -l) = 4 && {DENY}");
    assert_eq!(verdict(&ask_command(command(&script)).await), ("deny", "deny".to_owned()));
}

#[tokio::test]
async fn a_fork_bomb_a_memory_hog_and_a_file_flood_end_as_failures() {
    // The kernel doesn't count the processes of root.
    let folder = tempfile::tempdir().unwrap();
    let root = nix::unistd::geteuid().is_root();
    let other = root.then(|| Other::owning(folder.path(), 65534));
    let directory = Some(folder.path().to_str().unwrap().to_owned());
    let here = Here { other, directory, ..Here::default() };
    let mark = unique_sleep();
    for (script, seconds) in [
        (format!("bomb() {{ bomb {mark} | bomb {mark} & }}; bomb {mark}; sleep {mark}"), 2),
        ("python3 -c 'x = bytearray(3 << 30)'".to_owned(), 30),
        ("head -c 8G /dev/zero | tail".to_owned(), 60),
        ("yes > big".to_owned(), 60),
    ] {
        let started = Instant::now();
        let answer =
            ask(&before_every_call(&[command_within(&script, seconds)]), &here, &unreachable())
                .await;
        assert_eq!(answer.decision, Verdict::Allow, "{script}");
        assert!(answer.outcomes[0].cause.is_some(), "{script}");
        assert!(started.elapsed() < Duration::from_secs(seconds + 30), "{script}");
    }
    assert!(!is_running(&mark));
    assert!(fs::metadata(folder.path().join("big")).unwrap().len() <= 256 << 20);
    // The machine is as it was.
    let answer = ask(&before_every_call(&[command(DENY)]), &here, &unreachable()).await;
    assert_eq!(verdict(&answer), ("deny", "deny".to_owned()));
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_any_longer_is_ended() {
    let sleep = unique_sleep();
    let set = before_every_call(&[command_within(&format!("sleep {sleep} & sleep {sleep}"), 600)]);
    let (here, nothing) = (Here::default(), unreachable());
    let asked = ask(&set, &here, &nothing);
    let appears = async {
        while !is_running(&sleep) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = asked => panic!("the hook ended"),
        () = appears => {}
    }
    let vanishes = async {
        while is_running(&sleep) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), vanishes).await.expect("the command is ended");
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_has_failed() {
    let sleep = unique_sleep();
    let script = format!("kill -KILL $PPID; sleep {sleep}");
    let answer = ask_command(command_within(&script, 30)).await;
    assert_eq!(verdict(&answer), ("allow", "supervision".to_owned()));
    let script = format!("kill -STOP $PPID; sleep {sleep}");
    let answer = ask_command(command_within(&script, 1)).await;
    assert_eq!(verdict(&answer), ("allow", "timeout".to_owned()));
    for signal in ["TERM", "HUP", "INT", "USR1", "ALRM"] {
        let answer = ask_command(command(&format!("kill -{signal} $PPID; {DENY}"))).await;
        assert_eq!(verdict(&answer), ("deny", "deny".to_owned()), "{signal}");
    }
}

#[tokio::test]
async fn after_a_call_the_answer_is_ignored() {
    let event = call(&json!({}));
    for script in [DENY, ALLOW, "true", "echo x", "exit 1", "kill -SEGV $$"] {
        let handlers =
            [json!({"type": "command", "command": script, "on_failure": "deny"}), command(ALLOW)];
        let set = hooks(&json!({"g": {"post_tool_execution": [{"hooks": handlers}]}}));
        let (engine, here, nothing) = (Engine::default(), Here::default(), unreachable());
        let asked = ask_about(&engine, &set, &event, Phase::PostToolExecution, &here, &nothing);
        let answer = asked.await.unwrap();
        assert_eq!((answer.decision, answer.reason), (Verdict::Allow, None), "{script}");
        assert_eq!(answer.outcomes.len(), 2, "{script}");
        assert!(answer.outcomes[1].cause.is_none(), "{script}");
    }
}
