//! What is put on a request, and where two would put the same?

use super::*;

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
