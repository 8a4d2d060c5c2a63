//! A spliced tunnel lives no longer than what permits it.

use std::time::Instant;

use super::*;

const SOON: Duration = Duration::from_secs(5);

/// What a spliced connection is closed within (SPEC 2), and what a changed file is seen within.
const AT_ONCE: Duration = Duration::from_secs(2);

fn open_tunnel(gateway: &Gateway) -> RawClient {
    let mut tunnel = gateway.client().connect_tunnel(GIT);
    assert_eq!(tunnel.read_exact(BANNER.len()), BANNER);
    tunnel
}

/// The change closes the tunnel, and its line says that and what had passed.
fn assert_closed_by(gateway: &mut Gateway, change: impl FnOnce(&Gateway)) {
    let mut tunnel = open_tunnel(gateway);
    change(gateway);
    let changed = Instant::now();
    assert!(tunnel.is_closed());
    assert!(changed.elapsed() < AT_ONCE, "{:?}", changed.elapsed());
    let audit = gateway.final_audit();
    assert_eq!(audit.len(), 1, "{audit:#?}");
    assert!(audit[0]["error"].as_str().unwrap_or_default().contains("new policy"), "{audit:#?}");
    assert_eq!(audit[0]["bytes_down"], json!(BANNER.len()));
}

#[test]
fn a_new_policy_closes_what_it_does_not_permit() {
    isolated(|| {
        let world = world!();
        let _origin = banner_origin();
        let with = |entry: serde_json::Value| json!({"network": {"allowlist": [entry]}});
        for narrower in [
            with(json!({"domain": API})),
            json!({"network": "disabled"}),
            with(json!({"domain": API, "ports": [2222], "protocol": "tcp", "deny": true})),
            // Permitted, but no longer for any bytes.
            with(json!({"domain": API, "ports": [2222]})),
            with(json!({"domain": API, "ports": [2222], "tls": "passthrough"})),
        ] {
            let mut gateway = world.gateway(open_to_any_bytes());
            assert_closed_by(&mut gateway, |gateway| gateway.set_environment(&narrower));
        }
    });
}

#[test]
fn an_address_that_is_shut_closes_what_goes_there() {
    isolated(|| {
        let world = world!();
        let _origin = banner_origin();
        let builder = world.gateway_builder().environment(&open_to_any_bytes());
        let mut gateway = builder.configuration("[limits]\nstreams = 99\n").start();
        assert_closed_by(&mut gateway, |gateway| {
            gateway.set_configuration("[addresses]\ndeny = [\"11.22.33.44/32\"]\n");
            gateway.reload();
        });
    });
}

#[test]
fn a_new_policy_that_permits_it_leaves_it_open() {
    isolated(|| {
        let world = world!();
        let _origin = banner_origin();
        let gateway = world.gateway(open_to_any_bytes());
        let mut tunnel = open_tunnel(&gateway);
        gateway.set_environment(&json!({"network": {"allowlist": [
            {"domain": "a.ok.example.test"},
            {"domain": "*.example.com", "ports": [2222], "protocol": "tcp"},
        ]}}));
        let changed = || gateway.client().try_connect_tunnel("api.example.com:443").is_err();
        assert!(wait_until(SOON, changed), "the new file is in force");
        tunnel.send(b"still there?");
        assert_eq!(tunnel.read_exact(12), b"still there?");
    });
}

#[test]
fn silence_and_drain_end_it_at_their_deadlines() {
    isolated(|| {
        let world = world!();
        let origin = banner_origin();
        let limits = "[limits]\nidle_upgraded = \"500ms\"\ndrain = \"500ms\"\n";
        let builder = world.gateway_builder().environment(&open_to_any_bytes());
        let mut gateway = builder.configuration(limits).start();
        assert!(open_tunnel(&gateway).is_closed(), "silent for too long");
        assert!(origin.wait_closed());
        let line = &gateway.wait_audit(1)[0];
        assert_eq!(line["error"], "silent for too long", "{line}");
        let mut tunnel = open_tunnel(&gateway);
        gateway.terminate();
        assert!(tunnel.is_closed());
        assert_eq!(gateway.wait(), 0);
        let audit = gateway.audit();
        assert_eq!(audit.len(), 2, "{audit:#?}");
        assert_eq!(audit[1]["bytes_down"], json!(BANNER.len()), "{audit:#?}");
    });
}
