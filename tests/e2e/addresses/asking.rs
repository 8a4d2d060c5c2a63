//! How is an address asked for by every door, and what is a refusal of it?

use outgate_tests::prelude::*;
use serde_json::Value;

/// Everything public.
pub(super) fn open() -> Value {
    json!({"network": {"allowlist": [{"domain": "*"}]}})
}

/// The reason by every door on this port, which must be the same one; `None` when an origin
/// answered, or was dialled and spoke something else.
pub(super) fn reason(gateway: &Gateway, host: &str, port: u16) -> Option<String> {
    let all = Door::ALL.map(|door| {
        let answer = door.get_port(gateway, host, port);
        answer.header("outgate-reason").map(str::to_owned)
    });
    assert!(all.iter().all(|reason| *reason == all[0]), "{host}:{port} {all:?}");
    all[0].clone()
}

/// Refused on 80 and 443 by every door, with this reason. Nothing else may have been asked before
/// that was not refused too: its line may still be under way.
pub(super) fn assert_refused(gateway: &Gateway, hosts: &[&str], expected: &str) {
    let before = gateway.audit().len();
    for host in hosts {
        for port in [80, 443] {
            assert_eq!(reason(gateway, host, port).as_deref(), Some(expected), "{host}:{port}");
        }
    }
    let lines = hosts.len() * 2 * Door::ALL.len();
    let audit = gateway.wait_audit(before + lines);
    assert_eq!(audit.len(), before + lines, "one line for each");
    assert!(audit[before..].iter().all(|line| line["verdict"] == "deny"), "{audit:#?}");
}

/// A plain origin is reached on port 80.
pub(super) fn assert_reached(gateway: &Gateway, host: &str) {
    for door in [Door::ConnectPlain, Door::AbsoluteHttp] {
        let answer = door.get(gateway, host);
        assert_eq!(answer.status, 200, "{door:?} {host} {answer:?}");
    }
}

/// As it stands in an authority.
pub(super) fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}
