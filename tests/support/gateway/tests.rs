use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::{isolated, network, wait::wait_until};

/// Stands in for the program: says what `serve` says, and shows what it was told.
const STAND_IN: &str = r#"#!/bin/sh
[ "$*" = "${*#*--fail}" ] || { echo "cannot bind" >&2; exit 70; }
echo "$@" >&2
echo '{"kind":"request","reason":"domain_not_allowed"}' >&2
trap 'echo "{\"kind\":\"tunnel\"}" >&2; exit 0' TERM
trap 'echo "read again: $(cat "$3")" >&2' HUP
echo '{"event":"ready","explicit":["127.0.0.1:8080"],"ca":"/somewhere/ca.pem"}'
while :; do sleep 0.05; done
"#;

fn stand_in() -> Builder {
    let program = network::folder().join("stand-in");
    fs::write(&program, STAND_IN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Gateway::builder(program)
}

#[test]
fn starts_with_the_documented_arguments_and_reads_the_ready_line() {
    isolated(|| {
        let environment = serde_json::json!({"environment_id": "e1", "network": "disabled"});
        let gateway = stand_in()
            .environment(&environment)
            .configuration("[audit]")
            .argument("--more")
            .start();
        assert_eq!(gateway.explicit().to_string(), "127.0.0.1:8080");
        assert_eq!(gateway.ca(), Path::new("/somewhere/ca.pem"));
        assert!(gateway.wait_log("serve --environment "));
        let arguments = gateway.logs()[0].clone();
        let state = gateway.state().display().to_string();
        for part in [
            "/e1.json --listen 127.0.0.1:0 ".to_owned(),
            format!(" --management unix:{state}/management.sock --state-dir {state} "),
            "/outgate.toml --more".to_owned(),
        ] {
            assert!(arguments.contains(&part), "{part} is not in {arguments}");
        }
    });
}

#[test]
fn tells_audit_from_logs_and_drains() {
    isolated(|| {
        let mut gateway = stand_in().environment_text("{}").start();
        assert_eq!(gateway.wait_audit(1)[0]["reason"], "domain_not_allowed");
        assert!(gateway.descriptors() > 0 && gateway.resident_kib() > 0);
        gateway.set_environment_text("{\"new\":1}");
        gateway.reload();
        assert!(gateway.wait_log("read again: {\"new\":1}"));
        assert_eq!(gateway.stop(), 0);
        assert_eq!(gateway.audit()[1]["kind"], "tunnel");
    });
}

#[test]
fn has_the_exit_code_of_a_start_that_failed() {
    isolated(|| {
        let failed = stand_in().argument("--fail").try_start().err().unwrap();
        assert_eq!((failed.code, failed.output.as_str()), (Some(70), "cannot bind\n"));
    });
}

#[test]
fn leaves_no_process_behind() {
    isolated(|| {
        let gateway = stand_in().start();
        let process = format!("/proc/{}", gateway.pid());
        assert!(Path::new(&process).exists());
        drop(gateway);
        assert!(wait_until(SOON, || !Path::new(&process).exists()));
    });
}
