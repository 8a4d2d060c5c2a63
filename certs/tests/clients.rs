//! Do clients accept what they are shown?

mod support;

use std::sync::Arc;

use outgate_certs::{ClientTls, OriginRoots, bundle, failure_class, hashed};
use rustls::{
    ClientConfig, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore, ServerConnection,
};
use rustls_pki_types::CertificateDer;
use support::{Gateway, World, client_trusting, handshake, long_name, server_name};

#[test]
fn clients_accept_the_leaf_of_any_name() {
    let gateway = Gateway::new();
    let client = gateway.client();
    let longest = format!("{}.{}", vec!["b".repeat(62); 3].join("."), "c".repeat(63));
    assert_eq!(longest.len(), 252);
    for name in [
        "ok.example.test",
        "OK.Example.Test",
        "_x.ok.example.test",
        "xn--bcher-kva.example.test",
        "192.0.2.7",
        "2001:db8::7",
        &long_name(),
        &longest,
    ] {
        let met = gateway.serve(&client, name);
        assert_eq!(met.client.protocol_version(), Some(ProtocolVersion::TLSv1_3), "{name}");
    }
}

#[test]
fn the_leaf_is_the_judged_name_s_whatever_the_sni_says() {
    let gateway = Gateway::new();
    let leaf = gateway.leaves.leaf(&server_name("judged.example.test")).expect("a leaf");
    let config = gateway.tls.config(leaf);
    let refused = handshake(gateway.client(), "claimed.example.test", config).err();
    let refused = refused.expect("the client sees another name than it asked for");
    assert_eq!(failure_class(&refused.error), "wrong_name");
}

#[test]
fn clients_resume_within_one_environment_only() {
    let gateway = Gateway::new();
    let other = ClientTls::new(&[b"http/1.1"]).expect("a server side");
    for client in [gateway.client(), Arc::new(only_tls_1_2(&gateway))] {
        let kind = |tls: &ClientTls, name: &str| {
            let met = gateway.serve_through(tls, &client, name);
            met.server.handshake_kind().expect("a handshake")
        };
        assert_eq!(kind(&gateway.tls, "a.example.test"), HandshakeKind::Full);
        assert_eq!(kind(&gateway.tls, "a.example.test"), HandshakeKind::Resumed);
        assert_eq!(kind(&gateway.tls, "b.example.test"), HandshakeKind::Full);
        assert_eq!(kind(&other, "a.example.test"), HandshakeKind::Full);
    }
}

fn only_tls_1_2(gateway: &Gateway) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let leaf = gateway.leaves.leaf(&server_name("any.example.test")).expect("a leaf");
    roots.add(leaf.cert[1].clone()).expect("the CA");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[test]
fn answers_alpn_by_our_preference_and_lets_clients_do_without() {
    let gateway = Gateway::new();
    for (offered, chosen) in [
        (vec![], None),
        (vec![b"http/1.1".to_vec()], Some(&b"http/1.1"[..])),
        (vec![b"http/1.1".to_vec(), b"h2".to_vec()], Some(&b"h2"[..])),
    ] {
        let mut client = client_trusting(gateway.authority.certificate_pem());
        client.alpn_protocols = offered;
        let met = gateway.serve(&Arc::new(client), "ok.example.test");
        assert_eq!(met.client.alpn_protocol(), chosen);
    }
}

#[test]
fn takes_no_early_data() {
    let gateway = Gateway::new();
    let leaf = gateway.leaves.leaf(&server_name("ok.example.test")).expect("a leaf");
    assert_eq!(gateway.tls.config(leaf).max_early_data_size, 0);
}

#[test]
fn turns_clients_older_than_tls_1_2_away_with_an_alert() {
    let gateway = Gateway::new();
    let leaf = gateway.leaves.leaf(&server_name("ok.example.test")).expect("a leaf");
    // Minor version 0 is SSL 3, 1 is TLS 1.0, 2 is TLS 1.1.
    for minor in 0..=2 {
        let mut server = ServerConnection::new(gateway.tls.config(Arc::clone(&leaf))).expect("one");
        let mut hello = vec![22, 3, minor.min(1), 0, 47, 1, 0, 0, 43, 3, minor];
        hello.extend_from_slice(&[7; 32]);
        // No session; ECDHE-RSA and RSA with AES-128-CBC-SHA; no compression.
        hello.extend_from_slice(&[0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0]);
        server.read_tls(&mut hello.as_slice()).expect("room");
        server.process_new_packets().expect_err("refused");
        let mut answer = Vec::new();
        server.write_tls(&mut answer).expect("an alert");
        assert_eq!((answer[0], answer[5]), (21, 2), "a fatal alert");
    }
}

#[test]
fn the_bundle_is_the_ca_then_the_roots() {
    let gateway = Gateway::new();
    let (world, folder) = (World::new(), tempfile::tempdir().expect("a folder"));
    let mut roots = OriginRoots::none();
    assert_eq!(bundle(&gateway.authority, &roots), gateway.authority.certificate_pem());
    let path = folder.path().join("roots.pem");
    std::fs::write(&path, world.root.pem()).expect("a file");
    roots.add_pem(&path).expect("roots");

    let text = bundle(&gateway.authority, &roots);
    assert_eq!(text, format!("{}{}", gateway.authority.certificate_pem(), world.root.pem()));
    let client = Arc::new(client_trusting(&text));
    gateway.serve(&client, "intercepted.example.test");
    handshake(
        client,
        "origin.example.test",
        world.origin(|params| params.subject_alt_names.truncate(1)),
    )
    .expect("an origin whose TLS is passed through is accepted too");
}

#[test]
fn certificates_of_one_subject_get_files_of_their_own() {
    let gateway = Gateway::new();
    let (one, other) = (World::named("twin"), World::named("Twin"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("roots.pem");
    std::fs::write(&path, one.root.pem() + &other.root.pem()).expect("a file");
    let mut roots = OriginRoots::none();
    roots.add_pem(&path).expect("roots");

    let files = hashed(&gateway.authority, &roots);
    let [(ca, ca_pem), (first, first_pem), (second, second_pem)] = files.as_slice() else {
        panic!("{files:?}")
    };
    assert_eq!(ca_pem, gateway.authority.certificate_pem());
    assert_eq!([first_pem, second_pem], [&one.root.pem(), &other.root.pem()]);
    assert!(ca.ends_with(".0") && ca[..8] != first[..8], "{ca} {first}");
    assert_eq!(first.strip_suffix(".0"), second.strip_suffix(".1"));
}

#[test]
fn the_hybrid_key_exchange_is_taken_from_clients_that_offer_it() {
    let gateway = Gateway::new();
    let agreed = |client: &Arc<ClientConfig>| {
        let met = gateway.serve(client, "a.example.test");
        met.client.negotiated_key_exchange_group().expect("a full handshake").name()
    };
    let mut client = (*gateway.client()).clone();
    assert_eq!(agreed(&Arc::new(client.clone())), NamedGroup::X25519MLKEM768);
    let mut provider = (**client.crypto_provider()).clone();
    provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
    client = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots(&gateway))
        .with_no_client_auth();
    assert_eq!(agreed(&Arc::new(client)), NamedGroup::X25519);
}

fn roots(gateway: &Gateway) -> RootCertStore {
    use rustls_pki_types::pem::PemObject;
    let mut roots = RootCertStore::empty();
    let pem = gateway.authority.certificate_pem();
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    roots.add(certificate).expect("a root");
    roots
}
