//! Who decides, what is injected, and what is said to the client?

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
fn injects_the_more_specific_value_then_the_later_one() {
    let policy = policy(json!([
        {"domain": "api.example.com", "transform": {"X-Team": "exact", "X-Exact": "1"}},
        {"domain": "*", "transform": {"X-Team": "star", "X-Star": "1"}},
        {"domain": "*.example.com", "transform": [{"x-team": "suffix"}, {"X-Suffix": "1"}]},
        {"domain": "*.com", "transform": {"x-suffix": "wider"}},
        {"domain": "twice.test", "transform": {"X-Team": "first"}},
        {"domain": "twice.test", "transform": {"X-TEAM": "later"}},
    ]));
    assert_eq!(
        injected(&policy, "https://api.example.com/"),
        ["x-exact=1", "x-star=1", "x-suffix=1", "x-team=exact"]
    );
    assert_eq!(
        injected(&policy, "https://www.example.com/"),
        ["x-star=1", "x-suffix=1", "x-team=suffix"]
    );
    assert_eq!(injected(&policy, "https://twice.test/"), ["x-star=1", "x-team=later"]);
    let verdict = request(&policy, "GET", "https://api.example.com/").expect("allowed");
    assert!(verdict.headers.iter().all(|(_, value)| value.is_sensitive()));
}

#[test]
fn injects_only_from_entries_that_match_wholly() {
    let policy = policy(json!([
        {"domain": "*", "ports": [443, 8443], "transform": {"X-Wide": "1"}},
        {"domain": "a.test", "ports": [443, 8443]},
        {"domain": "a.test", "ports": [8443], "transform": {"X-Port": "1"}},
        {"domain": "a.test", "methods": ["POST"], "transform": {"X-Post": "1"}},
        {"domain": "a.test", "paths": ["/v1/**"], "transform": {"X-Path": "1"}},
        {"domain": "a.test", "deny": true, "paths": ["/no"], "transform": {"X-Denied": "1"}},
    ]));
    assert_eq!(injected(&policy, "https://a.test/"), ["x-wide=1"]);
    assert_eq!(injected(&policy, "https://a.test/v1/x"), ["x-path=1", "x-wide=1"]);
    assert_eq!(injected(&policy, "https://a.test:8443/"), ["x-port=1", "x-wide=1"]);
}

#[test]
fn names_each_credential_once_most_specific_first() {
    let policy = policy(json!([
        {"domain": "*", "credential": "wide"},
        {"domain": "*.example.com", "credential": "team"},
        {"domain": "api.example.com", "credential": "wide"},
    ]));
    let verdict = request(&policy, "GET", "https://api.example.com/").expect("allowed");
    let ids: Vec<_> = verdict.credentials.iter().map(|named| named.id.as_str()).collect();
    assert_eq!(ids, ["wide", "team"]);
    assert!(verdict.injects());
}

#[test]
fn says_which_headers_win_over_a_credential() {
    let policy = policy(json!([
        {"domain": "*.test", "transform": {"X-Wide": "1"}, "credential": "wide"},
        {"domain": "a.test", "transform": {"X-Own": "1", "Authorization": "mine"}},
        {"domain": "b.test", "transform": {"X-Own": "1"}, "credential": "own"},
    ]));
    let behind = |url: &str| -> Vec<_> {
        let verdict = request(&policy, "GET", url).expect("allowed");
        verdict.credentials.iter().map(|named| (named.id.to_string(), named.behind)).collect()
    };
    assert_eq!(behind("https://a.test/"), [("wide".to_owned(), 2)]);
    assert_eq!(behind("https://b.test/"), [("own".to_owned(), 0), ("wide".to_owned(), 1)]);
}

#[test]
fn placeholders_go_over_plain_http_where_every_deciding_entry_allows_it() {
    let policy = policy(json!([
        {"domain": "a.test", "allow_plaintext": true},
        {"domain": "b.test", "allow_plaintext": true},
        {"domain": "b.test"},
        {"domain": "c.test", "allow_plaintext": true},
        {"domain": "c.test", "methods": ["POST"]},
        {"domain": "*.test"},
    ]));
    for (host, expected) in [("a", true), ("b", false), ("c", true), ("d", false)] {
        let verdict = request(&policy, "GET", &format!("http://{host}.test/")).expect("allowed");
        assert_eq!(verdict.allow_plaintext_placeholders, expected, "{host}");
    }
}

#[test]
fn injects_over_plain_http_only_where_every_injecting_entry_allows_it() {
    let policy = policy(json!([
        {"domain": "*", "transform": {"X-Wide": "1"}, "allow_plaintext": true},
        {"domain": "open.test", "transform": {"X-Own": "1"}, "allow_plaintext": true},
        {"domain": "shut.test", "transform": {"X-Own": "1"}},
        {"domain": "same.test", "transform": {"X-Wide": "2"}},
        {"domain": "held.test", "credential": "c"},
    ]));
    assert_eq!(get(&policy, "http://open.test/"), Ok(1));
    assert_eq!(get(&policy, "http://other.test/"), Ok(0));
    for host in ["shut.test", "same.test", "held.test"] {
        let plain = format!("http://{host}/");
        assert_eq!(get(&policy, &plain), Err(Reason::InjectionNeedsTls), "{host}");
        assert!(get(&policy, &format!("https://{host}/")).is_ok(), "{host}");
    }
    let open = Policy::open();
    assert_eq!(get(&open, "http://example.com/"), Ok(0));
}

#[test]
fn refuses_trace_only_where_something_is_injected() {
    let policy = policy(json!([
        {"domain": "a.test", "transform": {"X-Own": "1"}},
        {"domain": "b.test"},
    ]));
    let trace = |url| request(&policy, "TRACE", url).map(|verdict| verdict.entry);
    assert_eq!(trace("https://a.test/"), Err(Reason::TraceRefused));
    assert_eq!(trace("https://b.test/"), Ok(1));
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

#[test]
fn says_which_entry_would_allow_it() {
    let policy = policy(json!([
        {"domain": "a.test", "methods": ["GET"]},
        {"domain": "b.test", "paths": ["/v1/*"]},
    ]));
    let refusal = |method, host, port, path| {
        let destination = to(host, port);
        let request = Request { destination: &destination, scheme: Scheme::Https, method, path };
        policy.judge_request(&request).expect_err("refused")
    };
    let fix = |denial: outgate_policy::Denial| denial.fix.unwrap_or(Value::Null);
    assert_eq!(fix(refusal("GET", "c.test", 443, "/")), json!({"domain": "c.test"}));
    assert_eq!(fix(refusal("GET", "c.test", 22, "/")), json!({"domain": "c.test", "ports": [22]}));
    assert_eq!(fix(refusal("GET", "a.test", 22, "/")), json!({"domain": "a.test", "ports": [22]}));
    assert_eq!(
        fix(refusal("POST", "a.test", 443, "/")),
        json!({"domain": "a.test", "methods": ["POST"]})
    );
    assert_eq!(
        fix(refusal("GET", "b.test", 443, "/v2")),
        json!({"domain": "b.test", "paths": ["/v2"]})
    );
    assert_eq!(fix(refusal("GET", "b.test", 443, "/v2/*")), Value::Null);
    assert_eq!(fix(refusal("GET", "127.0.0.1", 443, "/")), Value::Null);
    assert_eq!(fix(refusal("GET", "10.0.0.1", 443, "/")), json!({"domain": "10.0.0.1"}));
}

#[test]
fn names_the_environment_in_messages_about_its_allowlist() {
    let id = EnvironmentId::parse("env_xyz789").expect("an id");
    let refusal = |policy: &Policy, host| {
        policy.judge_tunnel(&to(host, 443)).expect_err("refused").in_environment(&id).message
    };
    assert_eq!(
        refusal(&Policy::deny_all(), "evil.example"),
        "evil.example is not in network.allowlist of environment env_xyz789"
    );
    assert_eq!(
        refusal(&Policy::disabled(), "evil.example"),
        "evil.example is out of reach of the disabled network of environment env_xyz789"
    );
    assert!(!refusal(&Policy::open(), "localhost").contains("env_xyz789"));
}

#[test]
fn repeats_little_of_what_the_client_sent() {
    let policy = policy(json!([{"domain": "a.test", "paths": ["/v1"], "methods": ["GET"]}]));
    let path = format!("/{}", "x".repeat(5000));
    let method = "M".repeat(5000);
    let destination = to("a.test", 443);
    for (method, path) in [("GET", path.as_str()), (method.as_str(), "/v1")] {
        let request = Request { destination: &destination, scheme: Scheme::Https, method, path };
        let denial = policy.judge_request(&request).expect_err("refused");
        assert!(denial.message.len() < 200, "{}", denial.message);
        assert!(denial.fix.is_none_or(|fix| fix.to_string().len() < 200));
    }
}
