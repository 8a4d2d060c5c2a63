//! What does a certificate for a new name cost, and for a known one?

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use outgate_certs::{Authority, ClientTls, Leaves};
use rustls_pki_types::ServerName;

fn leaf(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Arc::new(Authority::open_or_create(folder.path()).expect("a CA"));
    let leaves = Leaves::new(authority, 100).expect("a key");
    let mut count = 0_u64;
    c.bench_function("leaf for a new name", |b| {
        b.iter(|| {
            count += 1;
            let name = format!("n{count}.example.com");
            leaves.leaf(&ServerName::try_from(name).expect("a name")).expect("a leaf")
        });
    });
    let known = ServerName::try_from("api.example.com").expect("a name");
    c.bench_function("leaf for a known name", |b| {
        b.iter(|| leaves.leaf(black_box(&known)).expect("a leaf"));
    });
    let client_tls = ClientTls::new(&[b"h2", b"http/1.1"]).expect("a configuration");
    let leaf = leaves.leaf(&known).expect("a leaf");
    c.bench_function("configuration of a handshake", |b| {
        b.iter(|| client_tls.config(Arc::clone(black_box(&leaf))));
    });
}

criterion_group!(benches, leaf);
criterion_main!(benches);
