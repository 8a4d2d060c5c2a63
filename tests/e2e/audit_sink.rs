//! What if audit lines can't be written where they should be?

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use outgate_tests::network::isolated_for;
use outgate_tests::prelude::*;
use serde_json::Value;

const REFUSED: &str = "GET http://evil.example.test/ HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
/// Requests sent at a time: their answers fit into the sockets' buffers.
const BATCH: usize = 50;
/// More lines than the queue, one batch of the writer and a pipe hold together.
const MORE_THAN_FIT: usize = 80_000;

fn environment() -> Value {
    json!({"network": {"allowlist": [{"domain": "api.example.com"}]}})
}

fn audit_to(world: &World, file: &str) -> Gateway {
    world
        .gateway_builder()
        .configuration(&format!("[audit]\nfile = \"{file}\"\n[limits]\naudit_wait = \"300ms\"\n"))
        .environment(&environment())
        .start()
}

fn readiness(gateway: &Gateway) -> (u16, String) {
    let answer = gateway.management("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    (answer.status, answer.text())
}

/// How many requests were judged before one was not, and the answer to that one.
fn fill(gateway: &Gateway) -> (usize, Response) {
    let mut client = gateway.client();
    for judged in (0..MORE_THAN_FIT).step_by(BATCH) {
        client.send(REFUSED.repeat(BATCH));
        for number in 0..BATCH {
            let answer = client.read_response();
            if answer.status != 403 {
                return (judged + number, answer);
            }
        }
    }
    panic!("{MORE_THAN_FIT} requests were judged without an audit line");
}

#[test]
fn a_sink_that_is_full_stops_new_requests_and_nothing_is_lost() {
    isolated_for(Duration::from_secs(240), || {
        let world = world!();
        let pipe = network::folder().join("audit.pipe");
        mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe can be made");
        // Nobody reads it yet; that must not keep the gateway from starting.
        let mut gateway = audit_to(&world, &pipe.display().to_string());
        assert_eq!(readiness(&gateway).0, 200);
        let (judged, answer) = fill(&gateway);
        assert_eq!((answer.status, answer.header("outgate-reason")), (503, Some("not_ready")));
        assert_eq!(answer.json()["error"]["details"][0]["reason"], "not_ready");
        let started = Instant::now();
        let tunnel = gateway.client().try_connect_tunnel("api.example.com:443").err();
        let refused = tunnel.expect("no tunnel without an audit line");
        assert_eq!((refused.status, refused.reason.as_str()), (503, "not_ready"));
        assert!(started.elapsed() >= Duration::from_millis(300), "it waits for room first");
        let (status, text) = readiness(&gateway);
        assert!(status == 503 && text.contains("audit"), "{status} {text}");

        let lines = read_lines(pipe);
        let ids: HashSet<String> = (0..judged).map(|_| id(&lines)).collect();
        assert_eq!(ids.len(), judged, "every request that was judged has its own line");
        assert!(wait_until(Duration::from_secs(5), || readiness(&gateway).0 == 200));
        assert_eq!(gateway.client().exchange(REFUSED).status, 403);
        assert!(!ids.contains(&id(&lines)));
        assert_eq!(gateway.stop(), 0);
        assert!(lines.recv_timeout(Duration::from_millis(200)).is_err(), "and no line more");
    });
}

fn id(lines: &mpsc::Receiver<String>) -> String {
    let line = lines.recv_timeout(Duration::from_secs(20)).expect("a line for every request");
    let line: Value = serde_json::from_str(&line).expect("one JSON object a line");
    assert_eq!(line["reason"], "domain_not_allowed");
    line["id"].as_str().expect("an id").to_owned()
}

fn read_lines(pipe: PathBuf) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let pipe = File::open(pipe).expect("the pipe is there");
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn a_disk_that_is_full_is_reported_once_and_ends_with_70_because_lines_are_lost() {
    isolated(|| {
        let world = world!();
        let mut gateway = audit_to(&world, "/dev/full");
        for _ in 0..3 {
            assert_eq!(gateway.client().exchange(REFUSED).status, 403);
        }
        assert!(wait_until(Duration::from_secs(5), || readiness(&gateway).0 == 503));
        assert!(readiness(&gateway).1.contains("audit"));
        let complaints = gateway.logs().iter().filter(|line| line.contains("audit sink")).count();
        assert_eq!(complaints, 1, "{:?}", gateway.logs());
        assert_eq!(gateway.stop(), 70);
        assert!(gateway.output().contains("could not be written"), "{}", gateway.output());
    });
}

#[test]
fn a_file_gets_the_lines_and_stderr_does_not() {
    isolated(|| {
        let world = world!();
        let file = network::folder().join("audit.jsonl");
        for round in 1..=2 {
            let mut gateway = audit_to(&world, &file.display().to_string());
            assert_eq!(gateway.client().exchange(REFUSED).status, 403);
            assert!(gateway.final_audit().is_empty());
            let text = fs::read_to_string(&file).expect("the file is there");
            assert_eq!(text.lines().count(), round, "a restart appends");
        }
        let mode = fs::metadata(&file).expect("the file is there").mode();
        assert_eq!(mode & 0o777, 0o600);
    });
}
