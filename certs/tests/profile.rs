//! Is an origin met as its profile says, and are profiles told apart by all that they say?

mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use outgate_certs::{CertsError, OriginProfile, OriginRoots, OriginTls};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{ProtocolVersion, RootCertStore, ServerConfig, SupportedProtocolVersion};
use support::{World, handshake, leaf_params, refused, server_name};

const NAME: &str = "origin.example.test";

/// A folder with `root.pem`, `other.pem`, and a client's `client.pem` and `client.key`.
struct Files(tempfile::TempDir);

impl Files {
    fn new(world: &World, other: &World) -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut client = leaf_params("client.example.test");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = client.signed_by(&key, &world.root);
        for (name, text) in [
            ("root.pem", world.root.pem()),
            ("other.pem", other.root.pem()),
            ("client.pem", client.expect("a leaf").pem()),
            ("client.key", key.serialize_pem()),
            ("another.key", KeyPair::generate().expect("a key").serialize_pem()),
        ] {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        Files(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn profile(&self, change: impl FnOnce(&mut OriginProfile)) -> OriginProfile {
        let mut profile = OriginProfile::default();
        change(&mut profile);
        profile
    }
}

fn tls(profile: &OriginProfile, world: &World) -> OriginTls {
    let mut roots = OriginRoots::none();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("roots.pem");
    fs::write(&path, world.root.pem()).expect("a file");
    roots.add_pem(&path).expect("roots");
    OriginTls::under(profile, &roots, &[b"http/1.1"]).expect("a client side")
}

#[test]
fn a_profile_s_roots_stand_instead_of_the_others() {
    let (world, other) = (World::new(), World::named("another world"));
    let files = Files::new(&world, &other);
    let own = files.profile(|profile| profile.trust_only(&files.path("other.pem")).expect("PEM"));
    let own = tls(&own, &world);
    assert!(handshake(own.config(), NAME, other.origin(|_| {})).is_ok());
    assert_eq!(refused(&own, NAME, world.origin(|_| {})), "unknown_issuer");
    let common = tls(&OriginProfile::default(), &world);
    assert!(handshake(common.config(), NAME, world.origin(|_| {})).is_ok());
    assert_eq!(refused(&common, NAME, other.origin(|_| {})), "unknown_issuer");
}

#[test]
fn who_we_are_is_shown_to_an_origin_that_asks() {
    let world = World::new();
    let files = Files::new(&world, &world);
    let own = files.profile(|profile| {
        profile.present(&files.path("client.pem"), &files.path("client.key")).expect("a pair");
    });
    let met = handshake(tls(&own, &world).config(), NAME, demanding(&world)).expect("accepted");
    assert_eq!(met.server.peer_certificates().map(<[_]>::len), Some(1));
    let met = handshake(tls(&own, &world).config(), NAME, world.origin(|_| {})).expect("accepted");
    assert_eq!(met.server.peer_certificates(), None, "it did not ask");
}

#[test]
fn nothing_older_than_tls_1_3_is_spoken_where_it_is_required() {
    let world = World::new();
    let files = Files::new(&world, &world);
    let own = tls(&files.profile(OriginProfile::require_tls13), &world);
    let met = handshake(own.config(), NAME, world.origin(|_| {})).expect("accepted");
    assert_eq!(met.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let old = server(&world, &[&rustls::version::TLS12], None);
    let common = tls(&OriginProfile::default(), &world);
    assert!(handshake(common.config(), NAME, Arc::clone(&old)).is_ok());
    let mut client = rustls::ClientConnection::new(own.config(), server_name(NAME)).expect("one");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a hello");
    let mut origin = rustls::ServerConnection::new(old).expect("a server");
    origin.read_tls(&mut hello.as_slice()).expect("room");
    let error = origin.process_new_packets().expect_err("no version is shared");
    assert!(format!("{error:?}").contains("Tls12NotOffered"), "{error:?}");
}

#[test]
fn profiles_are_told_apart_by_what_their_files_say() {
    let (world, other) = (World::new(), World::named("another world"));
    let files = Files::new(&world, &other);
    let roots = |name: &str| {
        *files.profile(|p| p.trust_only(&files.path(name)).expect("PEM")).fingerprint()
    };
    let first = roots("root.pem");
    assert_eq!(first, roots("root.pem"));
    fs::copy(files.path("root.pem"), files.path("copy.pem")).expect("a file");
    assert_eq!(first, roots("copy.pem"), "the name says nothing");
    let presented = files.profile(|p| {
        p.present(&files.path("client.pem"), &files.path("client.key")).expect("a pair");
    });
    let both = files.profile(|p| {
        p.trust_only(&files.path("root.pem")).expect("PEM");
        p.require_tls13();
    });
    let all = [
        first,
        roots("other.pem"),
        *presented.fingerprint(),
        *both.fingerprint(),
        *files.profile(OriginProfile::require_tls13).fingerprint(),
        *OriginProfile::default().fingerprint(),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{at}");
    }
}

#[test]
fn a_pair_that_can_t_be_used_is_an_error_that_names_the_file() {
    let world = World::new();
    let files = Files::new(&world, &world);
    let present = |certificate: &str, key: &str| {
        OriginProfile::default().present(&files.path(certificate), &files.path(key)).err()
    };
    assert_eq!(present("client.pem", "client.key"), None);
    let of_another = CertsError::KeyOfAnother {
        certificate: files.path("client.pem"),
        key: files.path("another.key"),
    };
    assert_eq!(present("client.pem", "another.key"), Some(of_another));
    let no_key = CertsError::NoKey { path: files.path("client.pem") };
    assert_eq!(present("client.pem", "client.pem"), Some(no_key));
    let none = CertsError::NoCertificate { path: files.path("client.key") };
    assert_eq!(present("client.key", "client.key"), Some(none));
    assert!(matches!(present("client.pem", "missing"), Some(CertsError::Io { .. })));
    let broken = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    fs::write(files.path("broken.key"), broken).expect("a file");
    let unusable = CertsError::UnusableKey { path: files.path("broken.key") };
    assert_eq!(present("client.pem", "broken.key"), Some(unusable));
}

fn demanding(world: &World) -> Arc<ServerConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(world.root.der().clone()).expect("a root");
    server(world, rustls::DEFAULT_VERSIONS, Some(roots))
}

fn server(
    world: &World,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<RootCertStore>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = KeyPair::generate().expect("a key");
    let leaf = leaf_params(NAME).signed_by(&key, &world.root).expect("a leaf");
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .expect("versions");
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(roots) => config.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("roots"),
        ),
    };
    let config = config.with_single_cert(vec![leaf.der().clone()], key.into());
    Arc::new(config.expect("a server"))
}
