//! What do we offer to origins, keep of them, and say of those that fail?

mod support;

use std::io;
use std::sync::Arc;

use outgate_certs::{CertsError, OriginRoots, OriginTls, failure_class};
use rcgen::KeyPair;
use rustls::server::Acceptor;
use rustls::{ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, ServerConfig};
use rustls_pki_types::ServerName;
use support::{World, handshake, leaf_params, refused};

const NAME: &str = "origin.example.test";

#[test]
fn names_what_an_old_or_foreign_server_says() {
    let says = |bytes: &[u8]| {
        let name = ServerName::try_from(NAME).expect("a name");
        let config = World::new().origin_tls().config();
        let mut client = ClientConnection::new(config, name).expect("a client");
        client.read_tls(&mut &bytes[..]).expect("room");
        let error = client.process_new_packets().expect_err("refused");
        failure_class(&io::Error::new(io::ErrorKind::InvalidData, error))
    };
    // A ServerHello of TLS 1.1: 32 bytes of random, no session, AES-128-CBC, no compression.
    let mut hello = vec![22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    hello.extend_from_slice(&[7; 32]);
    hello.extend_from_slice(&[0, 0xc0, 0x13, 0]);
    assert_eq!(says(&hello), "no_shared_version");
    assert_eq!(says(&[21, 3, 1, 0, 2, 2, 70]), "no_shared_version");
    assert_eq!(says(&[21, 3, 3, 0, 2, 2, 40]), "incompatible");
    assert_eq!(says(&[21, 3, 3, 0, 2, 2, 112]), "unrecognized_name");
    assert_eq!(says(&[21, 3, 3, 0, 2, 2, 80]), "alert");
    assert_eq!(says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "not_tls");
}

#[test]
fn names_failures_below_tls() {
    assert_eq!(failure_class(&io::ErrorKind::UnexpectedEof.into()), "closed");
    assert_eq!(failure_class(&io::ErrorKind::TimedOut.into()), "timeout");
    let inner = io::Error::other(rustls::Error::NoApplicationProtocol);
    assert_eq!(failure_class(&io::Error::other(inner)), "no_shared_protocol");
}

#[test]
fn speaks_tls_1_2_to_origins_that_have_nothing_newer() {
    let world = World::new();
    let key = KeyPair::generate().expect("a key");
    let leaf = leaf_params(NAME).signed_by(&key, &world.root).expect("a leaf");
    let config = ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS12])
    .expect("versions")
    .with_no_client_auth()
    .with_single_cert(vec![leaf.der().clone()], key.into())
    .expect("a server");
    let met = handshake(world.origin_tls().config(), NAME, Arc::new(config)).expect("accepted");
    assert_eq!(met.client.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[test]
fn offers_the_hybrid_key_exchange_first() {
    let name = ServerName::try_from(NAME).expect("a name");
    let mut client = ClientConnection::new(World::new().origin_tls().config(), name).expect("one");
    let mut wire = Vec::new();
    client.write_tls(&mut wire).expect("a hello");
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut wire.as_slice()).expect("room");
    let accepted = acceptor.accept().expect("a hello").expect("a whole hello");
    let hello = accepted.client_hello();
    let groups = hello.named_groups().expect("groups");
    assert_eq!(groups.first(), Some(&NamedGroup::X25519MLKEM768));
    assert!(groups.contains(&NamedGroup::X25519));
}

#[test]
fn resumes_sessions_within_one_environment_only() {
    let world = World::new();
    let (one, other) = (world.origin_tls(), world.origin_tls());
    let origin = world.origin(|_| {});
    let kind = |tls: &OriginTls, name: &str| {
        let met = handshake(tls.config(), name, Arc::clone(&origin)).expect("accepted");
        met.client.handshake_kind().expect("a handshake")
    };
    assert_eq!(kind(&one, NAME), HandshakeKind::Full);
    assert_eq!(kind(&one, NAME), HandshakeKind::Resumed);
    assert_eq!(kind(&other, NAME), HandshakeKind::Full);
    assert!(!one.config().enable_early_data);
}

#[test]
fn a_session_never_stands_in_for_another_name() {
    let world = World::new();
    let tls = world.origin_tls();
    let origin = world.origin(|_| {});
    handshake(tls.config(), NAME, Arc::clone(&origin)).expect("accepted");
    assert_eq!(refused(&tls, "other.example.test", origin), "wrong_name");
}

#[test]
fn an_empty_or_broken_file_of_roots_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("roots.pem");
    let mut roots = OriginRoots::none();
    let world = World::new().root.pem();

    assert!(matches!(roots.add_pem(&path), Err(CertsError::Io { .. })));
    for text in ["", "not PEM at all"] {
        std::fs::write(&path, text).expect("a file");
        assert_eq!(roots.add_pem(&path), Err(CertsError::NoCertificate { path: path.clone() }));
    }
    let garbage = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    for broken in [format!("{world}{garbage}"), format!("{world}{}", &world[..200])] {
        std::fs::write(&path, broken).expect("a file");
        let error = roots.add_pem(&path).expect_err("refused");
        assert!(matches!(error, CertsError::BrokenCertificate { position: 2, .. }), "{error}");
    }
    assert!(roots.is_empty(), "nothing was added from a file that is broken");

    std::fs::write(&path, format!("{world}{world}")).expect("a file");
    assert_eq!(roots.add_pem(&path), Ok(2));
}

#[test]
fn refuses_to_be_without_roots() {
    let error = OriginTls::new(&OriginRoots::none(), &[]).err();
    assert_eq!(error, Some(CertsError::NoRoots));
}
