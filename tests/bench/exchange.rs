//! What does one exchange through the gateway cost, beside the same one without it?
//!
//! Client, gateway and origin are threads of this process and speak over loopback, so the ratio
//! of the two figures says more than either.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use criterion::{Criterion, criterion_group, criterion_main};
use outgate_certs::{Authority, Leaves, OriginRoots};
use outgate_credentials::{Credentials, LocalStore};
use outgate_policy::{AddressConfig, AddressRules, compile};
use outgate_proxy::{
    AuditSink, Clients, Environment, Environments, Gateway, Ingress, Limits, Listener, Ownership,
    Parts, Refusals, Resolver, Snapshot, Upstream,
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers every request at once, on every connection.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            thread::spawn(move || while exchange(&mut stream, b"\r\n\r\n", ANSWER) {});
        }
    });
    address
}

/// Reads until `end`, then writes.
fn exchange(stream: &mut TcpStream, end: &[u8], then: &[u8]) -> bool {
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    while !seen.ends_with(end) {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return false,
            Ok(read) => seen.extend_from_slice(&chunk[..read]),
        }
    }
    then.is_empty() || stream.write_all(then).is_ok()
}

/// A gateway with one entry that injects a header, and its audit thrown away.
fn gateway(origin: SocketAddr) -> SocketAddr {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Arc::new(Authority::open_or_create(folder.path()).expect("a CA"));
    let mut roots = OriginRoots::none();
    roots.add_pem(&folder.path().join("ca.pem")).expect("roots");
    let entry = format!(
        r#"{{"network":{{"allowlist":[{{"domain":"origin.example.test","ports":[{}],
            "transform":{{"X-Team":"blue"}},"allow_plaintext":true}}]}}}}"#,
        origin.port()
    );
    let compiled = compile(&entry, "bench").expect("a valid document");
    let addresses = AddressConfig { dangerously_allow: vec![origin], ..AddressConfig::default() };
    let addresses = AddressRules::new(addresses).expect("valid rules");
    let limits = Limits::default();
    let snapshot =
        Snapshot { policy: Arc::new(compiled.policy), addresses, profiles: Arc::default() };
    let environment = Environment::new(&compiled.id, snapshot, &roots, &limits);
    let mut environments = Environments::default();
    let environment = Arc::new(environment.expect("TLS configurations"));
    environments.add(environment, Clients::default());
    let (audit, writer) = AuditSink::new(limits.audit_wait);
    thread::spawn(move || writer.run(std::io::sink(), |_| {}));
    let resolver = Resolver::from_hosts("127.0.0.1 origin.example.test\n", &limits);
    let store = LocalStore::in_memory().expect("a store");
    let parts = Parts {
        leaves: Leaves::new(authority, 100).expect("a key"),
        resolver: resolver.expect("a valid hosts file"),
        limits,
        environments,
        credentials: Credentials::open(Arc::new(store)).expect("no credentials"),
        audit,
        refusals: Refusals::Status,
        upstream: Upstream::Direct,
        captures_ipv6: false,
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let listener = Listener::tcp(Ingress::Explicit, listener, Ownership::Only).expect("a socket");
    let gateway = Gateway::new(parts);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(gateway.serve(vec![listener], Vec::new()));
    });
    address
}

#[expect(clippy::disallowed_methods, reason = "the client of the benchmark")]
fn exchanges(c: &mut Criterion) {
    let origin = origin();
    let gateway = gateway(origin);
    let authority = format!("origin.example.test:{}", origin.port());
    for (what, address, target) in [
        ("exchange without the gateway", origin, "/".to_owned()),
        ("exchange through the gateway", gateway, format!("http://{authority}/")),
    ] {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let request = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        c.bench_function(what, |b| {
            b.iter(|| {
                stream.write_all(request.as_bytes()).expect("open");
                assert!(exchange(&mut stream, b"\r\n\r\nok", b""), "an answer");
            });
        });
    }
}

criterion_group!(benches, exchanges);
criterion_main!(benches);
