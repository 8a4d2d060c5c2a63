//! Are the sources of an environment brought to its folder while the gateway serves?

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use outgate_tests::gcs::{Bucket, SERVICE};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;

const PROBLEM: &str = "a source of env_test can't be used: it is tried again later, and the \
                       environment's policy is in force; the log says why";

fn inline(target: &str, content: &str) -> Value {
    json!({"type": "inline", "target": target, "content": content})
}

fn bucket(target: &str) -> Value {
    json!({"type": "gcs", "source": "gs://data/set", "target": target})
}

/// An environment with these sources that may ask this host, with a credential.
fn environment(sources: &[Value], domain: &str) -> Value {
    let entry = json!({"domain": domain, "transform": {"Authorization": "Bearer hunter2"}});
    json!({"sources": sources, "network": {"allowlist": [entry]}})
}

fn root(gateway: &Gateway, id: &str) -> PathBuf {
    gateway.state().join("environments").join(id).join("root")
}

/// Whether this file of `env_test` has this content soon.
fn comes(gateway: &Gateway, file: &str, content: &str) -> bool {
    let path = root(gateway, "env_test").join(file);
    wait_until(SOON, || fs::read_to_string(&path).is_ok_and(|text| text == content))
}

/// A world with a bucket of two objects.
fn with_bucket() -> (World, Origin) {
    let world = world!();
    world.name(SERVICE, "11.22.33.88");
    let bucket = Bucket::new("data").object("set/a.txt", "one").object("set/b/c.txt", "two");
    let service = world.https(SERVICE).script(bucket.serve()).start();
    (world, service)
}

#[test]
fn they_are_brought_under_the_environments_own_rules() {
    isolated(|| {
        let (world, service) = with_bucket();
        let sources = [inline(".agents/hooks.json", "{}"), bucket("/workspace/data")];
        let mut gateway = world.gateway(environment(&sources, SERVICE));
        assert!(comes(&gateway, ".agents/hooks.json", "{}"));
        assert!(comes(&gateway, "workspace/data/a.txt", "one"));
        assert!(comes(&gateway, "workspace/data/b/c.txt", "two"));
        for folder in ["environments", "environments/env_test", "environments/env_test/root"] {
            let mode = fs::metadata(gateway.state().join(folder)).expect("it is there");
            assert_eq!(mode.permissions().mode() & 0o777, 0o700, "{folder}");
        }
        assert!(gateway.problems().is_empty());
        let requests = service.requests();
        assert!(requests.iter().all(|one| one.header("authorization") == Some("Bearer hunter2")));
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 3, "{audit:#?}");
        for line in audit {
            assert_eq!((&line["ingress"], &line["domain"]), (&json!("source"), &json!(SERVICE)));
            assert_eq!(line["environment_id"], "env_test");
        }
    });
}

#[test]
fn only_what_is_new_is_fetched() {
    isolated(|| {
        let (world, service) = with_bucket();
        let kept = [inline("w/kept", "as it was"), bucket("/w/data")];
        let gateway = world.gateway(environment(&kept, SERVICE));
        assert!(comes(&gateway, "w/data/b/c.txt", "two"));
        let asked = service.requests().len();
        // A sandbox goes on with what it was given.
        fs::write(root(&gateway, "env_test").join("w/kept"), "worked on").expect("writable");

        let more = [kept.as_slice(), &[inline("w/new", "new")]].concat();
        gateway.set_environment(&environment(&more, SERVICE));
        assert!(comes(&gateway, "w/new", "new"));
        let state = gateway.state().to_owned();
        drop(gateway);

        let changed = [kept.as_slice(), &[inline("w/new", "newer")]].concat();
        let builder = world.gateway_builder().state(&state);
        let gateway = builder.environment(&environment(&changed, SERVICE)).start();
        assert!(comes(&gateway, "w/new", "newer"));
        assert!(comes(&gateway, "w/kept", "worked on"));
        assert_eq!(service.requests().len(), asked);
    });
}

#[test]
fn one_that_fails_is_told_of_and_takes_nothing_down() {
    isolated(|| {
        let (world, service) = with_bucket();
        let api = world.https("api.example.com").start();
        let sources = [bucket("/w/data"), inline("w/note", "here")];
        let gateway = world.gateway(environment(&sources, "api.example.com"));
        assert!(comes(&gateway, "w/note", "here"));
        assert!(wait_until(SOON, || gateway.problems() == [PROBLEM]));
        assert_eq!(gateway.readiness().0, 200);
        assert_eq!(gateway.metric("outgate_problems"), 1.0);
        assert!(gateway.wait_log(
            "source for /w/data: gs://data/set: domain_not_allowed: storage.googleapis.com is not \
             in network.allowlist of environment env_test"
        ));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!((service.connections(), api.connections()), (0, 1));

        // A policy that permits it is tried at once.
        gateway.set_environment(&environment(&sources, SERVICE));
        assert!(comes(&gateway, "w/data/a.txt", "one"));
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}

#[test]
fn one_that_fails_is_tried_again() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let gateway = world.gateway(environment(&[bucket("/w/data")], SERVICE));
        assert!(wait_until(SOON, || gateway.problems() == [PROBLEM]));
        let objects = Bucket::new("data").object("set/a.txt", "one");
        let _service = world.https(SERVICE).script(objects.serve()).start();
        let file = root(&gateway, "env_test").join("w/data/a.txt");
        assert!(wait_until(SOON * 4, || file.exists()), "{:?}", gateway.logs());
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}

#[test]
fn a_slow_one_holds_up_no_other_environment() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let late = scripts::respond_after(Duration::from_secs(25), scripts::ok("{}"));
        let service = world.https(SERVICE).script(late).start();
        let slow = environment(&[bucket("/w/data")], SERVICE);
        let mut quick = environment(&[inline("w/note", "here")], SERVICE);
        quick["environment_id"] = json!("quick");
        let builder = world.gateway_builder().environment(&slow).environment(&quick);
        let mut gateway = builder.start();
        service.wait_requests(1);
        let note = root(&gateway, "quick").join("w/note");
        assert!(wait_until(SOON, || note.exists()));
        assert!(gateway.problems().is_empty());
        // It does not hold up the gateway's end either.
        assert_eq!(gateway.final_audit().len(), 1);
    });
}

#[test]
fn a_repository_that_git_is_missing_for_is_a_problem_alone() {
    isolated(|| {
        let world = world!();
        let repository = json!({"type": "repository", "target": "/w/r",
                                "source": "https://api.example.com/o/r"});
        let sources = [repository, inline("w/note", "here")];
        let builder = world.gateway_builder().variable("PATH", "/nowhere");
        let gateway = builder.environment(&environment(&sources, "api.example.com")).start();
        assert!(wait_until(SOON * 2, || gateway.problems() == [PROBLEM]));
        assert!(gateway.wait_log("cloning https://api.example.com/o/r: git can't be run"));
        assert!(comes(&gateway, "w/note", "here"));
        let folder = root(&gateway, "env_test");
        assert_eq!(fs::read_dir(folder.join("w/r")).expect("its place").count(), 0);
        assert!(!folder.with_file_name("unfinished").exists());
    });
}

#[test]
fn nothing_is_written_where_a_link_of_a_sandbox_leads() {
    isolated(|| {
        let (world, _service) = with_bucket();
        let gateway = world.gateway(environment(&[inline("w/note", "here")], SERVICE));
        assert!(comes(&gateway, "w/note", "here"));
        let outside = network::folder().join("outside");
        fs::create_dir(&outside).expect("writable");
        symlink(&outside, root(&gateway, "env_test").join("w/data")).expect("writable");
        let sources = [inline("w/note", "here"), bucket("/w/data"), inline("w/last", "here")];
        gateway.set_environment(&environment(&sources, SERVICE));
        assert!(comes(&gateway, "w/last", "here"));
        assert!(wait_until(SOON, || gateway.problems() == [PROBLEM]));
        assert!(gateway.wait_log("source for /w/data: data is a link"));
        assert_eq!(fs::read_dir(outside).expect("a folder").count(), 0);
    });
}

#[test]
fn an_environment_that_goes_leaves_its_files_and_takes_its_problem_along() {
    isolated(|| {
        let world = world!();
        let folder = network::folder().join("many");
        fs::create_dir(&folder).expect("writable");
        let file = folder.join("env_test.json");
        let sources = [inline("w/note", "here"), inline("etc/x", "no")];
        fs::write(&file, environment(&sources, SERVICE).to_string()).expect("writable");
        let configuration = format!("[[environment]]\ndirectory = {folder:?}\n");
        let gateway = world.gateway_builder().configuration(&configuration).start();
        assert!(comes(&gateway, "w/note", "here"));
        assert!(wait_until(SOON, || gateway.problems() == [PROBLEM]));
        fs::remove_file(&file).expect("it is there");
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
        assert!(comes(&gateway, "w/note", "here"));
    });
}

/// A git that clones nothing but what it can find out.
fn curious_git(folder: &Path, state: &Path) {
    let script = format!(
        "#!/bin/sh\nexec > \"$6/found\" 2>&1\n\
         cat {state}/ca.key {state}/environments/*/sources.json {secret} 2>/dev/null\n\
         echo \"variable ${{LEAD-none}}\"\n\
         for url in https://api.example.com/ https://evil.example.test/; do\n\
         curl -s -o /dev/null -w '%{{http_code}}\\n' $url; done\n",
        state = state.display(),
        secret = folder.join("secret.json").display(),
    );
    fs::write(folder.join("git"), script).expect("writable");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join("git"), executable).expect("it is ours");
}

#[test]
fn git_sees_no_secret_and_has_no_way_out_but_its_environments() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let evil = world.https("evil.example.test").start();
        // The same folder inside and outside: not below `/tmp`.
        let folder = tempfile::tempdir_in("/var/tmp").expect("an ordinary folder");
        let state = folder.path().join("state");
        curious_git(folder.path(), &state);
        let repository = json!({"type": "repository", "target": "/w/r",
                                "source": "https://api.example.com/o/r"});
        let mut environment = environment(&[repository], "api.example.com");
        environment["environment_id"] = json!("env_test");
        environment["env"] = json!({"LEAD": "astray"});
        let file = folder.path().join("secret.json");
        fs::write(&file, environment.to_string()).expect("writable");
        let path = std::env::var("PATH").expect("there are programs");
        let path = format!("{}:{path}", folder.path().display());
        let builder = world.gateway_builder().state(&state).variable("PATH", path);
        let gateway = builder.argument("--environment").argument(&file).start();
        let found = root(&gateway, "env_test").join("w/r/found");
        assert!(wait_until(SOON * 2, || found.exists()), "{:?}", gateway.logs());
        let found = fs::read_to_string(&found).expect("readable");
        assert_eq!(found, "variable none\n200\n403\n");
        assert_eq!((api.connections(), evil.connections()), (1, 0));
    });
}

#[test]
fn without_a_sandbox_git_does_not_run() {
    isolated(|| {
        let world = world!();
        let repository = json!({"type": "repository", "target": "/w/r",
                                "source": "https://api.example.com/o/r"});
        fs::write("/proc/sys/user/max_user_namespaces", "0").expect("its own namespace");
        let api = world.https("api.example.com").start();
        let gateway = world.gateway(environment(&[repository], "api.example.com"));
        assert!(gateway.wait_log("allow them with `sysctl -w user.max_user_namespaces=10000`"));
        assert!(wait_until(SOON, || gateway.problems() == [PROBLEM]));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!(api.requests().len(), 1);
    });
}
