//! Does the indexed evaluator decide as SPEC 1 says? Compared with a naive reading of it.

use std::collections::BTreeMap;

use outgate_policy::{Destination, Host, Policy, Reason, Request, Scheme, compile};
use proptest::prelude::*;
use serde_json::json;

/// An entry as a person would think of it.
#[derive(Clone, Debug)]
struct Line {
    domain: String,
    ports: Vec<u16>,
    methods: Vec<&'static str>,
    deny: bool,
    header: &'static str,
}

/// What came out, in comparable form.
#[derive(Debug, PartialEq)]
enum Outcome {
    Allowed { entry: usize, headers: BTreeMap<String, String> },
    Refused(Reason),
}

fn name() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "xa", "ok"]);
    prop::collection::vec(label, 1..5).prop_map(|labels| labels.join("."))
}

fn domain() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => name(),
        4 => name().prop_map(|name| format!("*.{name}")),
        1 => Just("*".to_owned()),
        1 => Just("11.22.33.44".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    (
        domain(),
        prop::sample::subsequence(vec![80, 443, 8443], 0..3),
        prop::sample::subsequence(vec!["GET", "POST"], 0..2),
        prop::bool::weighted(0.2),
        prop::sample::select(vec!["x-one", "X-One", "x-two"]),
    )
        .prop_map(|(domain, ports, methods, deny, header)| Line {
            domain,
            ports,
            methods,
            deny,
            header,
        })
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => name(),
        1 => Just("11.22.33.44".to_owned()),
        1 => Just("[::ffff:11.22.33.44]".to_owned()),
        1 => Just("11.22.33.45".to_owned()),
        1 => Just("10.0.0.1".to_owned()),
    ]
}

fn compiled(lines: &[Line]) -> Policy {
    let entries: Vec<_> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let mut entry = json!({"domain": line.domain, "deny": line.deny});
            entry["transform"] = json!({ line.header: index.to_string() });
            if !line.ports.is_empty() {
                entry["ports"] = json!(line.ports);
            }
            if !line.methods.is_empty() {
                entry["methods"] = json!(line.methods);
            }
            entry
        })
        .collect();
    let text = json!({"network": {"allowlist": entries}}).to_string();
    compile(&text, "test").expect("a valid file").policy
}

/// How specific a pattern is for a host; `None` if it doesn't match. Text only, no look-up.
fn specificity(domain: &str, host: &str) -> Option<usize> {
    let host =
        host.strip_prefix("[::ffff:").and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let is_literal = host.starts_with("11.") || host.starts_with("10.");
    if domain == host {
        return Some(usize::MAX);
    }
    if domain == "*" {
        let covered = if is_literal { host.starts_with("11.") } else { host.contains('.') };
        return covered.then_some(0);
    }
    let suffix = domain.strip_prefix('*')?;
    (!is_literal && host.ends_with(suffix) && host.len() > suffix.len()).then_some(suffix.len())
}

/// SPEC 1 "Who decides" and "What is injected", read slowly.
fn naive(lines: &[Line], host: &str, port: u16, method: &str) -> Outcome {
    let at_port = |line: &Line| match (line.ports.is_empty(), line.deny) {
        (true, true) => true,
        (true, false) => port == 80 || port == 443,
        (false, _) => line.ports.contains(&port),
    };
    let by_method = |line: &Line| line.methods.is_empty() || line.methods.contains(&method);
    let matching: Vec<_> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((specificity(&line.domain, host)?, index, line)))
        .collect();
    let Some(best) = matching.iter().map(|(rank, ..)| *rank).max() else {
        let star = lines.iter().any(|line| line.domain == "*");
        let private = host == "10.0.0.1";
        return Outcome::Refused(if star && private {
            Reason::AddressNotAllowed
        } else {
            Reason::DomainNotAllowed
        });
    };
    let deciding: Vec<_> = matching.iter().filter(|(rank, ..)| *rank == best).collect();
    let fits = |line: &Line| at_port(line) && by_method(line);
    if deciding.iter().any(|(.., line)| line.deny && fits(line))
        || deciding.iter().all(|(.., line)| line.deny)
    {
        return Outcome::Refused(Reason::DeniedByEntry);
    }
    let allowing: Vec<_> = deciding.iter().filter(|(.., line)| !line.deny).collect();
    if !allowing.iter().any(|(.., line)| at_port(line)) {
        return Outcome::Refused(Reason::PortNotAllowed);
    }
    let Some((_, entry, _)) = allowing.iter().find(|(.., line)| fits(line)) else {
        return Outcome::Refused(Reason::MethodNotAllowed);
    };
    let mut injecting: Vec<_> =
        matching.iter().filter(|(.., line)| !line.deny && fits(line)).collect();
    injecting.sort_by_key(|(rank, index, _)| (*rank, *index));
    let headers = injecting
        .into_iter()
        .map(|(_, index, line)| (line.header.to_lowercase(), index.to_string()))
        .collect();
    Outcome::Allowed { entry: *entry, headers }
}

fn judged(policy: &Policy, host: &str, port: u16, method: &str) -> Outcome {
    let host = Host::from_wire(host.as_bytes()).expect("a host");
    let destination = Destination { host, port };
    let request = Request { destination: &destination, scheme: Scheme::Https, method, path: "/" };
    match policy.judge_request(&request) {
        Ok(verdict) => {
            let headers: BTreeMap<_, _> = verdict
                .headers
                .iter()
                .map(|(name, value)| {
                    let value = value.to_str().expect("visible ASCII");
                    (name.to_string(), value.to_owned())
                })
                .collect();
            assert_eq!(headers.len(), verdict.headers.len(), "a header set twice");
            assert!(policy.judge_tunnel(&destination).is_ok(), "a request without its tunnel");
            Outcome::Allowed { entry: verdict.entry, headers }
        }
        Err(denial) => Outcome::Refused(denial.reason),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_a_naive_reading_of_the_rules_does(
        lines in prop::collection::vec(line(), 0..8),
        host in host(),
        port in prop::sample::select(vec![80, 443, 8443, 22]),
        method in prop::sample::select(vec!["GET", "POST", "DELETE"]),
    ) {
        let policy = compiled(&lines);
        prop_assert_eq!(
            judged(&policy, &host, port, method),
            naive(&lines, &host, port, method)
        );
    }

    #[test]
    fn refuses_a_tunnel_only_where_every_request_would_be(
        lines in prop::collection::vec(line(), 0..8),
        host in host(),
        port in prop::sample::select(vec![80, 443, 8443, 22]),
    ) {
        let policy = compiled(&lines);
        let to = Destination { host: Host::from_wire(host.as_bytes()).expect("a host"), port };
        if policy.judge_tunnel(&to).is_err() {
            for method in ["GET", "POST", "DELETE"] {
                let outcome = judged(&policy, &host, port, method);
                prop_assert!(matches!(outcome, Outcome::Refused(_)), "{:?}", outcome);
            }
        }
    }
}
