//! Are repositories cloned for an environment that the gateway serves?

use std::fs;
use std::path::PathBuf;

use outgate_tests::prelude::*;
use outgate_tests::repository;
use outgate_tests::wait::SOON;
use serde_json::Value;

/// A sandbox and a git take their time on a busy machine.
const CLONED: Duration = SOON.saturating_mul(6);

fn environment(path: &str, domain: &str) -> Value {
    let source = json!({"type": "repository", "source": format!("https://api.example.com/{path}"),
                        "target": "/workspace/repo"});
    let entry = json!({"domain": domain, "transform": {"Authorization": "Bearer hunter2"}});
    json!({"sources": [source], "network": {"allowlist": [entry]}})
}

fn readme(gateway: &Gateway) -> PathBuf {
    gateway.state().join("environments/env_test/root/workspace/repo/README")
}

fn has(gateway: &Gateway, text: &str) -> bool {
    let file = readme(gateway);
    wait_until(CLONED, || fs::read_to_string(&file).is_ok_and(|found| found == text))
}

#[test]
fn a_repository_is_cloned_inside_a_sandbox_of_its_environment() {
    isolated(|| {
        let world = world!();
        let served = repository::make(&network::folder(), "hello");
        let origin = world.https("api.example.com").script(repository::serve(served)).start();
        let mut gateway = world.gateway(environment("o/r", "api.example.com"));
        assert!(has(&gateway, "hello\n"), "{:?}", gateway.logs());
        assert!(gateway.problems().is_empty());
        let root = gateway.state().join("environments/env_test");
        assert!(wait_until(SOON, || !root.join("unfinished").exists()));
        let requests = origin.requests();
        assert!(requests.iter().all(|one| one.header("authorization") == Some("Bearer hunter2")));
        let audit = gateway.final_audit();
        let requests: Vec<_> = audit.iter().filter(|line| line["kind"] == "request").collect();
        assert!(!requests.is_empty(), "{audit:#?}");
        for line in requests {
            assert_eq!(line["ingress"], "transparent");
            assert_eq!(line["environment_id"], "env_test");
        }
    });
}

#[test]
fn what_is_not_permitted_is_not_cloned_until_it_is() {
    isolated(|| {
        let world = world!();
        let served = repository::make(&network::folder(), "hello");
        let origin = world.https("api.example.com").script(repository::serve(served)).start();
        let gateway = world.gateway(environment("o/r", "a.ok.example.test"));
        assert!(wait_until(CLONED, || gateway.problems().len() == 1));
        assert!(gateway.wait_log("cloning https://api.example.com/o/r: exit"));
        assert_eq!(origin.connections(), 0);
        assert!(!readme(&gateway).exists());
        gateway.set_environment(&environment("o/r", "api.example.com"));
        assert!(has(&gateway, "hello\n"), "{:?}", gateway.logs());
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}

#[test]
fn another_repository_does_not_replace_what_a_sandbox_works_in() {
    isolated(|| {
        let world = world!();
        let served = repository::make(&network::folder(), "hello");
        let _origin = world.https("api.example.com").script(repository::serve(served)).start();
        let gateway = world.gateway(environment("o/r", "api.example.com"));
        assert!(has(&gateway, "hello\n"), "{:?}", gateway.logs());
        fs::write(readme(&gateway), "worked on").expect("writable");
        // The same by another name.
        gateway.set_environment(&environment("o/r/", "api.example.com"));
        assert!(gateway.wait_log("something else was fetched there before; move it away"));
        assert!(has(&gateway, "worked on"));
        let repository = readme(&gateway).with_file_name("");
        fs::rename(&repository, network::folder().join("away")).expect("writable");
        assert!(has(&gateway, "hello\n"), "{:?}", gateway.logs());
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}

#[test]
fn a_credential_whose_file_is_gone_keeps_no_repository_away() {
    isolated(|| {
        let world = world!();
        let served = repository::make(&network::folder(), "hello");
        let _origin = world.https("api.example.com").script(repository::serve(served)).start();
        let gateway = world.gateway(json!({"network": {"allowlist": []}}));
        let gone = json!({"from_file": network::folder().join("nowhere/token")});
        let credential = json!({"id": "main", "type": "bearer_token", "token": gone});
        assert_eq!(gateway.api("POST", "/v1beta/credentials", &credential).status, 200);
        gateway.set_environment(&environment("o/r", "api.example.com"));
        assert!(has(&gateway, "hello\n"), "{:?}", gateway.logs());
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}
