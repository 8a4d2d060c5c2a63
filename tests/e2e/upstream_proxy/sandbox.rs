//! `outgate run`, and connections that were led to the gateway.

use outgate_tests::command::run;
use outgate_tests::wait::SOON;

use super::*;

#[test]
fn a_command_in_a_sandbox_leaves_by_the_proxy_without_knowing() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let password = canary(24);
        let url = format!("http://user:{password}@{PROXY}");
        let sandbox = world.run().configuration(&upstream(&url, "")).environment(&allowing(&[API]));
        let script = format!(
            "curl -sS -o /dev/null -w '%{{http_code}} ' https://{API}/; env; \
             curl -sS -m 3 http://{PROXY}/ || true"
        );
        let done = run(&mut sandbox.command(&["/bin/sh", "-c", &script]), b"", SOON * 8);
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.starts_with("200 "), "{said} {}", done.stderr);
        assert_eq!(proxy.asked(), ["11.22.33.44:443"]);
        assert_eq!(origin.requests().len(), 1);
        let seen = format!("{said}{}", done.stderr);
        assert_secret_absent(&seen, &password);
        assert!(!seen.to_lowercase().contains("_proxy="), "{seen}");
    });
}
