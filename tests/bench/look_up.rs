//! Does a look-up in the allowlist cost the same at 10 and at 100,000 entries?

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use outgate_policy::{Destination, Host, Policy, Request, Scheme, compile};

/// Names of the kinds that allowlists have, a third each: exact, wildcard, with a header and paths.
fn policy(entries: usize) -> Policy {
    compile(&document(entries), "bench").expect("a valid document").policy
}

fn document(entries: usize) -> String {
    let mut list = String::new();
    for i in 0..entries {
        let comma = if i == 0 { "" } else { "," };
        let entry = match i % 3 {
            0 => format!(r#"{{"domain":"host{i}.example.com"}}"#),
            1 => format!(r#"{{"domain":"*.zone{i}.example.org"}}"#),
            _ => format!(
                r#"{{"domain":"api{i}.example.net","paths":["/v1/**"],"transform":{{"X-Key":"v{i}"}}}}"#
            ),
        };
        write!(list, "{comma}{entry}").expect("memory");
    }
    format!(r#"{{"network":{{"allowlist":[{list}]}}}}"#)
}

fn destination(host: &str) -> Destination {
    Destination { host: Host::from_wire(host.as_bytes()).expect("a host"), port: 443 }
}

fn look_up(c: &mut Criterion) {
    for entries in [10, 100_000] {
        let policy = policy(entries);
        for (what, host) in [
            ("exact", "host6.example.com"),
            ("wildcard", "a.b.zone7.example.org"),
            ("header and path", "api8.example.net"),
            ("refused", "evil.example.test"),
        ] {
            let destination = destination(host);
            let request = Request {
                destination: &destination,
                scheme: Scheme::Https,
                method: "GET",
                path: "/v1/things/17",
            };
            c.bench_function(&format!("judge_request {what}, {entries} entries"), |b| {
                b.iter(|| policy.judge_request(black_box(&request)));
            });
        }
    }
}

fn load(c: &mut Criterion) {
    let text = document(100_000);
    let mut group = c.benchmark_group("load");
    group.sample_size(10);
    group.bench_function("100000 entries", |b| b.iter(|| compile(black_box(&text), "bench")));
    group.finish();
}

fn parse(c: &mut Criterion) {
    c.bench_function("Host::from_wire", |b| {
        b.iter(|| Host::from_wire(black_box(b"registry.npmjs.example.com")));
    });
}

criterion_group!(benches, look_up, load, parse);
criterion_main!(benches);
