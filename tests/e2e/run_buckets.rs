//! Are the objects that an environment names in a bucket there before the command starts?

use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_tests::command::{self, Finished};
use outgate_tests::gcs::{Bucket, SERVICE};
use outgate_tests::prelude::*;
use outgate_tests::run::Run;
use serde_json::Value;

fn run(world: &World, environment: &Value) -> Run {
    world.run().environment(environment)
}

/// A script run to its end, in a folder that is there inside too.
fn sh(run: &Run, script: &str) -> Finished {
    let mut command = run.command(&["/bin/sh", "-c", script]);
    command::run(command.current_dir("/"), b"", Duration::from_secs(20))
}

fn environment(target: &str, domain: &str) -> Value {
    json!({
        "sources": [
            {"type": "inline", "target": "/workspace/note", "content": "inline"},
            {"type": "gcs", "source": "gs://data/set", "target": target, "read_only": true},
        ],
        "network": {"allowlist": [
            {"domain": domain, "transform": {"Authorization": "Bearer hunter2"}}
        ]},
    })
}

#[test]
fn objects_are_fetched_under_the_environments_own_rules() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let bucket = Bucket::new("data").object("set/a.txt", "one ").object("set/b/c.txt", "two");
        let service = world.https(SERVICE).script(bucket.page(1).serve()).start();
        let run = run(&world, &environment("/workspace/data", SERVICE));
        let script = "cat /workspace/data/a.txt /workspace/data/b/c.txt /workspace/note; \
                      (echo x > /workspace/data/a.txt) 2>/dev/null || echo ' kept'";
        let finished = sh(&run, script);
        assert_eq!(finished.text(), "one twoinline kept\n", "{finished:?}");
        let requests = service.requests();
        assert_eq!(requests.len(), 4);
        assert!(requests.iter().all(|one| one.header("authorization") == Some("Bearer hunter2")));
        let audit = run.audit();
        assert_eq!(audit.len(), 4, "{audit:#?}");
        for line in audit {
            assert_eq!((&line["ingress"], &line["domain"]), (&json!("source"), &json!(SERVICE)));
        }
    });
}

#[test]
fn a_bucket_that_may_not_be_reached_starts_nothing() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let bucket = Bucket::new("data").object("set/a.txt", "one");
        let service = world.https(SERVICE).script(bucket.serve()).start();
        let run = run(&world, &environment("/workspace/data", "api.example.com"));
        let finished = sh(&run, "echo started");
        assert_eq!((finished.code(), finished.text().as_str()), (70, ""), "{finished:?}");
        let said = "source for /workspace/data: gs://data/set: domain_not_allowed: \
                    storage.googleapis.com is not in network.allowlist of environment env_test";
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
        assert_eq!(service.connections(), 0);
        assert_eq!(run.audit()[0]["reason"], "domain_not_allowed");
    });
}

#[test]
fn nothing_is_written_where_a_link_leads() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let bucket = Bucket::new("data").object("set/b/c.txt", "two").object("set/d.txt", "one");
        let _service = world.https(SERVICE).script(bucket.serve()).start();
        let folder = network::folder();
        let (root, outside) = (folder.join("root"), folder.join("outside"));
        for made in [root.join("workspace/data"), outside.clone()] {
            std::fs::create_dir_all(made).expect("writable");
        }
        // As a command that ran before could have left it.
        symlink(&outside, root.join("workspace/data/b")).expect("writable");
        let environment = environment("/workspace/data", SERVICE);
        let run = run(&world, &environment).argument("--sandbox-root").argument(root);
        let finished = sh(&run, "echo started");
        assert_eq!((finished.code(), finished.text().as_str()), (70, ""), "{finished:?}");
        assert!(finished.stderr.contains("gs://data/set/b/c.txt: can't be written: b is a link"));
        assert_eq!(std::fs::read_dir(outside).expect("a folder").count(), 0);
    });
}

#[test]
fn fetching_ends_when_a_person_wants_it_to() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let late = scripts::respond_after(Duration::from_secs(50), scripts::ok("{}"));
        let service = world.https(SERVICE).script(late).start();
        let run = run(&world, &environment("/workspace/data", SERVICE));
        let mut command = run.command(&["/bin/sh", "-c", "echo started"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        service.wait_requests(1);
        let began = Instant::now();
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).expect("it is ours");
        let ended = || child.try_wait().expect("it is ours").is_some();
        assert!(wait_until(Duration::from_secs(10), ended), "it went on");
        assert!(began.elapsed() < Duration::from_secs(10));
        let output = child.wait_with_output().expect("it has ended");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(143), &b""[..]));
        assert_eq!(run.audit().len(), 1);
    });
}
