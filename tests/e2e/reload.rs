//! Does a change count at once, and does a bad one change nothing?

#[path = "reload/bad.rs"]
mod bad;
#[path = "reload/endless.rs"]
mod endless;
#[path = "reload/files.rs"]
mod files;
#[path = "reload/load.rs"]
mod load;
#[path = "reload/operator.rs"]
mod operator;

use std::time::Instant;

use outgate_tests::prelude::*;
use serde_json::Value;

const API: &str = "api.example.com";
const OK: &str = "a.ok.example.test";
const GET: &str = "GET / HTTP/1.1\r\nHost: a.ok.example.test\r\n\r\n";
const SOON: Duration = Duration::from_secs(5);

/// What an upgraded connection is closed within (SPEC 2).
const AT_ONCE: Duration = Duration::from_secs(1);

/// May go to these names.
fn allowing(names: &[&str]) -> Value {
    let entries: Vec<_> = names.iter().map(|name| json!({"domain": name})).collect();
    json!({"network": {"allowlist": entries}})
}

fn tunnel(gateway: &Gateway, name: &str) -> RawClient {
    gateway.client().connect_tunnel(&format!("{name}:443")).tls(&Hello::to(name))
}

/// Waits until a new tunnel to this name is let through, or refused.
fn wait_admission(gateway: &Gateway, name: &str, admitted: bool) {
    let is_so = || {
        let tunnel = gateway.client().try_connect_tunnel(&format!("{name}:443"));
        tunnel.is_ok() == admitted
    };
    assert!(wait_until(SOON, is_so), "{name} was not {admitted} within {SOON:?}");
}

/// How long after `change` the connection of `client` ends without a further byte.
fn closed_after(client: &mut RawClient, change: impl FnOnce()) -> Duration {
    change();
    let changed = Instant::now();
    assert!(client.is_closed(), "it is still open");
    changed.elapsed()
}

#[test]
fn the_next_request_on_an_open_connection_is_judged_by_the_new_policy() {
    isolated(|| {
        let world = world!();
        let ok = world.https(OK).start();
        let gateway = world.gateway(allowing(&[API, OK]));
        let mut tunnel = tunnel(&gateway, OK);
        let http2 = gateway.http2(OK).connect();
        assert_eq!((tunnel.exchange(GET).status, http2.get("/").status), (200, 200));
        let before = ok.requests().len();

        gateway.set_environment(&allowing(&[API]));
        wait_admission(&gateway, OK, false);
        for _ in 0..2 {
            let refused = tunnel.exchange(GET);
            let reason = refused.header("outgate-reason");
            assert_eq!((refused.status, reason), (403, Some("domain_not_allowed")));
            let refused = http2.get("/");
            assert_eq!((refused.status, refused.reason()), (403, Some("domain_not_allowed")));
        }
        assert_eq!(ok.requests().len(), before, "nothing left");

        // Approved again, the very same connections go on.
        gateway.set_environment(&allowing(&[OK]));
        wait_admission(&gateway, OK, true);
        assert_eq!((tunnel.exchange(GET).status, http2.get("/").status), (200, 200));
    });
}

#[test]
fn what_is_injected_goes_with_the_policy() {
    isolated(|| {
        let world = world!();
        let _ok = world.https(OK).start();
        let secrets = [canary(32), canary(32)];
        let with = |secret: &str| {
            let entry = json!({"domain": OK, "transform": {"X-Key": secret}});
            json!({"network": {"allowlist": [entry, {"domain": API}]}})
        };
        let gateway = world.gateway(with(&secrets[0]));
        let mut tunnel = tunnel(&gateway, OK);
        let mut key = || scripts::echoed_headers(&tunnel.exchange(GET)).remove("x-key");
        assert_eq!(key(), Some(vec![secrets[0].clone()]));
        gateway.set_environment(&with(&secrets[1]));
        assert!(wait_until(SOON, || key() == Some(vec![secrets[1].clone()])));
        gateway.set_environment(&allowing(&[OK]));
        assert!(wait_until(SOON, || key().is_none()));
        for secret in &secrets {
            assert_secret_absent(gateway.output(), secret);
        }
    });
}

#[test]
fn a_websocket_that_is_no_longer_permitted_is_closed_within_a_second() {
    isolated(|| {
        let world = world!();
        let ok = world.https(OK).script(scripts::websocket_echo()).start();
        let _api = world.https(API).script(scripts::websocket_echo()).start();
        let mut gateway = world.gateway(allowing(&[API, OK]));
        let mut open = [OK, API].map(|name| {
            let mut client = tunnel(&gateway, name);
            assert_eq!(client.exchange(upgrade(name)).status, 101);
            client.send("frame");
            assert_eq!(client.read_exact(5), b"frame");
            client
        });
        let [gone, kept] = &mut open;
        let took = closed_after(gone, || gateway.set_environment(&allowing(&[API])));
        assert!(took < AT_ONCE, "{took:?}");
        assert!(ok.wait_closed(), "the origin's side too");
        kept.send("still");
        assert_eq!(kept.read_exact(5), b"still");

        let took = closed_after(kept, || gateway.set_environment(&json!({"network": "disabled"})));
        assert!(took < AT_ONCE, "{took:?}");
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 2, "{audit:#?}");
        for line in audit {
            assert_eq!(line["error"], "closed: a new policy does not permit it any more");
        }
    });
}

#[test]
fn a_websocket_does_not_outlive_its_injected_value_or_its_address() {
    isolated(|| {
        let world = world!();
        let _ok = world.https(OK).script(scripts::websocket_echo()).start();
        let with = |secret: &str, other: &str| {
            let entry = json!({"domain": OK, "transform": {"X-Key": secret}});
            json!({"network": {"allowlist": [entry, {"domain": other}]}})
        };
        let builder = world.gateway_builder().environment(&with("one", API));
        let gateway = builder.configuration("[addresses]\ndeny = []\n").start();
        let open = |gateway: &Gateway| {
            let mut client = tunnel(gateway, OK);
            assert_eq!(client.exchange(upgrade(OK)).status, 101);
            client
        };
        let mut client = open(&gateway);
        gateway.set_environment(&with("one", "b.example.com"));
        wait_admission(&gateway, API, false);
        client.send("still");
        assert_eq!(client.read_exact(5), b"still", "another entry is none of its business");

        let took = closed_after(&mut client, || gateway.set_environment(&with("two", API)));
        assert!(took < AT_ONCE, "{took:?}");

        let mut client = open(&gateway);
        gateway.set_configuration("[addresses]\ndeny = [\"11.22.33.55/32\"]\n");
        let took = closed_after(&mut client, || gateway.reload());
        assert!(took < AT_ONCE, "{took:?}");
    });
}

fn upgrade(name: &str) -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}
