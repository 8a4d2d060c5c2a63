//! Who decides, what is injected, and what is said to the client?

#[path = "deciding/injecting.rs"]
mod injecting;
#[path = "deciding/saying.rs"]
mod saying;

use outgate_policy::{
    Destination, EnvironmentId, Host, Policy, Reason, Request, RequestVerdict, Scheme, compile,
};
use serde_json::{Value, json};

fn policy(allowlist: Value) -> Policy {
    let text = json!({"network": {"allowlist": allowlist}}).to_string();
    compile(&text, "env_xyz789").unwrap_or_else(|problems| panic!("{problems}")).policy
}

fn to(host: &str, port: u16) -> Destination {
    Destination { host: Host::from_wire(host.as_bytes()).expect("a host"), port }
}

fn tunnel(policy: &Policy, host: &str, port: u16) -> Result<usize, Reason> {
    policy
        .judge_tunnel(&to(host, port))
        .map(|verdict| verdict.entry)
        .map_err(|denial| denial.reason)
}

fn request(policy: &Policy, method: &str, url: &str) -> Result<RequestVerdict, Reason> {
    let (scheme, rest) = match url.split_once("://") {
        Some(("http", rest)) => (Scheme::Http, rest),
        Some((_, rest)) => (Scheme::Https, rest),
        None => panic!("a URL"),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().expect("a port")),
        None => (authority, scheme.default_port()),
    };
    let destination = to(host, port);
    policy
        .judge_request(&Request { destination: &destination, scheme, method, path })
        .map_err(|denial| denial.reason)
}

fn get(policy: &Policy, url: &str) -> Result<usize, Reason> {
    request(policy, "GET", url).map(|verdict| verdict.entry)
}

/// The injected headers, sorted, as `name=value`.
fn injected(policy: &Policy, url: &str) -> Vec<String> {
    let verdict = request(policy, "GET", url).expect("allowed");
    let mut headers: Vec<_> = verdict
        .headers
        .iter()
        .map(|(name, value)| format!("{name}={}", value.to_str().expect("visible ASCII")))
        .collect();
    headers.sort();
    headers
}

#[test]
fn matches_a_name_and_only_that_name() {
    let policy = policy(json!([{"domain": "api.example.com"}]));
    assert_eq!(tunnel(&policy, "API.Example.COM.", 443), Ok(0));
    for other in [
        "xapi.example.com",
        "api.example.com.evil.example.test",
        "example.com",
        "a.api.example.com",
    ] {
        assert_eq!(tunnel(&policy, other, 443), Err(Reason::DomainNotAllowed), "{other}");
    }
}

#[test]
fn matches_every_depth_below_a_domain_but_not_the_domain() {
    let policy = policy(json!([{"domain": "*.ok.example.test"}]));
    for name in ["a.ok.example.test", "a.b.ok.example.test", "a.b.c.d.e.f.g.ok.example.test"] {
        assert_eq!(tunnel(&policy, name, 443), Ok(0), "{name}");
    }
    for name in
        ["ok.example.test", "evilok.example.test", "x.ok.example.test.evil.example.test", "test"]
    {
        assert_eq!(tunnel(&policy, name, 443), Err(Reason::DomainNotAllowed), "{name}");
    }
}

#[test]
fn covers_by_a_star_names_of_two_labels_and_public_literals_only() {
    let policy = policy(json!([{"domain": "*"}]));
    for host in [
        "example.com",
        "11.22.33.44",
        "[2a00:1::1]",
        "[::ffff:11.22.33.44]",
        "metadata.google.internal",
        "1.0.0.127.in-addr.arpa",
    ] {
        assert_eq!(tunnel(&policy, host, 443), Ok(0), "{host}");
    }
    assert_eq!(tunnel(&policy, "gateway", 443), Err(Reason::DomainNotAllowed));
    for host in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[fe80::1]",
        "[fc00::1]",
        "[fec0::1]",
        "[ff02::1]",
        "0.0.0.0",
        "localhost",
        "x.localhost",
        "LOCALHOST.",
        "ip6-localhost",
        "localhost.localdomain",
    ] {
        assert_eq!(tunnel(&policy, host, 443), Err(Reason::AddressNotAllowed), "{host}");
        let https = format!("https://{host}/");
        if !host.starts_with('[') {
            assert_eq!(get(&policy, &https), Err(Reason::AddressNotAllowed), "{host}");
        }
    }
}

#[test]
fn opens_the_web_ports_unless_others_are_named() {
    let policy = policy(json!([
        {"domain": "api.example.com"},
        {"domain": "ssh.example.com", "ports": [22]},
        {"domain": "alt.example.com:8443"},
    ]));
    assert_eq!(tunnel(&policy, "api.example.com", 80), Ok(0));
    assert_eq!(tunnel(&policy, "api.example.com", 443), Ok(0));
    for port in [22, 25, 8443] {
        assert_eq!(tunnel(&policy, "api.example.com", port), Err(Reason::PortNotAllowed), "{port}");
    }
    assert_eq!(tunnel(&policy, "ssh.example.com", 22), Ok(1));
    assert_eq!(tunnel(&policy, "ssh.example.com", 443), Err(Reason::PortNotAllowed));
    assert_eq!(tunnel(&policy, "alt.example.com", 8443), Ok(2));
    assert_eq!(tunnel(&policy, "alt.example.com", 443), Err(Reason::PortNotAllowed));
}

#[test]
fn never_lets_a_wider_entry_widen_a_narrower_one() {
    let policy = policy(json!([
        {"domain": "*"},
        {"domain": "*.example.com", "methods": ["GET", "POST"]},
        {"domain": "api.example.com", "ports": [8443], "methods": ["GET"]},
    ]));
    assert_eq!(get(&policy, "https://other.test/"), Ok(0));
    assert_eq!(get(&policy, "https://www.example.com/"), Ok(1));
    assert_eq!(get(&policy, "https://api.example.com:8443/"), Ok(2));
    assert_eq!(get(&policy, "https://api.example.com/"), Err(Reason::PortNotAllowed));
    let refused = request(&policy, "POST", "https://api.example.com:8443/").expect_err("refused");
    assert_eq!(refused, Reason::MethodNotAllowed);
    let refused = request(&policy, "DELETE", "https://www.example.com/").expect_err("refused");
    assert_eq!(refused, Reason::MethodNotAllowed);
}

#[test]
fn denies_within_the_pattern_that_decides() {
    let policy = policy(json!([
        {"domain": "*"},
        {"domain": "evil.example.test", "deny": true},
        {"domain": "*.corp.test"},
        {"domain": "*.corp.test", "deny": true, "methods": ["DELETE"]},
        {"domain": "pay.corp.test", "ports": [443, 8443]},
        {"domain": "pay.corp.test", "deny": true, "paths": ["/admin/**"]},
        {"domain": "11.22.33.44", "deny": true},
    ]));
    for spelling in ["evil.example.test", "EVIL.Example.TEST."] {
        for port in [443, 8443] {
            assert_eq!(tunnel(&policy, spelling, port), Err(Reason::DeniedByEntry), "{spelling}");
        }
    }
    let delete = |url| request(&policy, "DELETE", url).map(|verdict| verdict.entry);
    assert_eq!(delete("https://a.corp.test/"), Err(Reason::DeniedByEntry));
    assert_eq!(get(&policy, "https://a.corp.test/"), Ok(2));
    assert_eq!(tunnel(&policy, "a.corp.test", 443), Ok(2));
    // The wider denial does not reach a narrower pattern: that alone decides.
    assert_eq!(delete("https://pay.corp.test/"), Ok(4));
    for port in [443, 8443] {
        let url = format!("https://pay.corp.test:{port}/admin/x");
        assert_eq!(get(&policy, &url), Err(Reason::DeniedByEntry), "{port}");
    }
    for literal in ["11.22.33.44", "[::ffff:11.22.33.44]", "[64:ff9b::11.22.33.44]"] {
        assert_eq!(tunnel(&policy, literal, 443), Err(Reason::DeniedByEntry), "{literal}");
    }
    assert_eq!(tunnel(&policy, "11.22.33.45", 443), Ok(0));
}

#[test]
fn allows_nothing_where_a_pattern_only_denies() {
    let policy = policy(json!([
        {"domain": "*"},
        {"domain": "a.test", "deny": true, "methods": ["DELETE"]},
    ]));
    assert_eq!(get(&policy, "https://a.test/"), Err(Reason::DeniedByEntry));
}

#[test]
fn refuses_ambiguous_paths_only_where_paths_apply() {
    let policy = policy(json!([
        {"domain": "api.example.com", "paths": ["/v1/public/*"]},
        {"domain": "free.example.com"},
        {"domain": "post.example.com"},
        {"domain": "post.example.com", "deny": true, "methods": ["POST"], "paths": ["/admin"]},
    ]));
    for path in [
        "/v1/public/../secret",
        "/v1/public/%2e%2e/secret",
        "/v1/public/%2E./secret",
        "/v1//public/x",
        "/v1/public;a/../../secret",
        "/v1/public%2f..%2fsecret",
        "/v1/public\\..\\secret",
        "//evil.example.test/",
    ] {
        let url = format!("https://api.example.com{path}");
        assert_eq!(get(&policy, &url), Err(Reason::AmbiguousPath), "{path}");
        assert_eq!(get(&policy, &format!("https://free.example.com{path}")), Ok(1), "{path}");
        let url = format!("https://post.example.com{path}");
        assert_eq!(get(&policy, &url), Ok(2), "{path}");
        let posted = request(&policy, "POST", &url).map(|verdict| verdict.entry);
        assert_eq!(posted, Err(Reason::AmbiguousPath), "{path}");
    }
    assert_eq!(get(&policy, "https://api.example.com/v1/public/x"), Ok(0));
    assert_eq!(get(&policy, "https://api.example.com/v1/%70ublic/x"), Ok(0));
    for path in ["/v1/secret", "/v1/public/x/y", "/v1/public%2Fx", ""] {
        let url = format!("https://api.example.com{path}");
        assert_eq!(get(&policy, &url), Err(Reason::PathNotAllowed), "{path}");
    }
}

#[test]
fn reads_international_names_on_both_sides_as_one() {
    let policy = policy(json!([{"domain": "*.bücher.test"}]));
    assert_eq!(tunnel(&policy, "www.xn--bcher-kva.test", 443), Ok(0));
}

#[test]
fn tells_disabled_from_empty_from_open() {
    assert_eq!(tunnel(&Policy::disabled(), "a.test", 443), Err(Reason::NetworkDisabled));
    assert_eq!(tunnel(&Policy::disabled(), "localhost", 443), Err(Reason::NetworkDisabled));
    assert_eq!(tunnel(&Policy::deny_all(), "a.test", 443), Err(Reason::DomainNotAllowed));
    assert_eq!(tunnel(&Policy::deny_all(), "11.22.33.44", 443), Err(Reason::DomainNotAllowed));
    assert_eq!(tunnel(&Policy::open(), "a.test", 443), Ok(0));
    assert_eq!(tunnel(&Policy::open(), "a.test", 22), Err(Reason::PortNotAllowed));
}
