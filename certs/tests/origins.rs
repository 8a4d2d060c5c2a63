//! Does an origin that can't prove its name get anything?

mod support;

use std::time::SystemTime;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, OtherNameValue, SanType,
};
use rustls::ProtocolVersion;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use support::{
    DAY, World, ca_params, handshake, leaf_params, origin_tls_trusting, refused, server,
    set_validity,
};

const NAME: &str = "origin.example.test";

/// The class under which one changed leaf below the trusted root is refused.
fn refused_leaf(change: impl FnOnce(&mut CertificateParams)) -> &'static str {
    let world = World::new();
    refused(&world.origin_tls(), NAME, world.origin(change))
}

#[test]
fn accepts_an_origin_that_proves_its_name() {
    let world = World::new();
    let met = handshake(world.origin_tls().config(), NAME, world.origin(|_| {})).expect("accepted");
    assert_eq!(met.client.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(met.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
}

#[test]
fn refuses_an_expired_certificate() {
    let class = refused_leaf(|params| {
        set_validity(params, SystemTime::now() - 9 * DAY, SystemTime::now() - DAY);
    });
    assert_eq!(class, "expired");
}

#[test]
fn refuses_a_certificate_of_tomorrow() {
    let class = refused_leaf(|params| {
        set_validity(params, SystemTime::now() + DAY, SystemTime::now() + 9 * DAY);
    });
    assert_eq!(class, "not_yet_valid");
}

#[test]
fn refuses_another_name() {
    let class = refused_leaf(|params| params.subject_alt_names = vec![dns("other.example.test")]);
    assert_eq!(class, "wrong_name");
}

#[test]
fn refuses_a_name_that_only_the_common_name_has() {
    let class = refused_leaf(|params| {
        params.subject_alt_names.clear();
        params.distinguished_name.push(DnType::CommonName, NAME);
    });
    assert_eq!(class, "wrong_name");
}

#[test]
fn refuses_a_certificate_for_clients() {
    let class = refused_leaf(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    assert_eq!(class, "wrong_usage");
}

#[test]
fn refuses_a_ca_that_serves() {
    let class = refused_leaf(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    assert_eq!(class, "wrong_usage");
}

#[test]
fn refuses_a_self_signed_certificate() {
    for (is_ca, class) in [
        (IsCa::ExplicitNoCa, "unknown_issuer"),
        (IsCa::Ca(BasicConstraints::Unconstrained), "wrong_usage"),
    ] {
        let key = KeyPair::generate().expect("a key");
        let mut params = leaf_params(NAME);
        params.is_ca = is_ca;
        let leaf = params.self_signed(&key).expect("a certificate");
        let origin = server(vec![leaf.der().clone()], key);
        assert_eq!(refused(&World::new().origin_tls(), NAME, origin), class);
    }
}

#[test]
fn refuses_a_root_that_nobody_named() {
    let origin = World::named("another root").origin(|_| {});
    assert_eq!(refused(&World::new().origin_tls(), NAME, origin), "unknown_issuer");
}

#[test]
fn refuses_a_root_that_only_bears_a_trusted_name() {
    let origin = World::new().origin(|_| {});
    assert_eq!(refused(&World::new().origin_tls(), NAME, origin), "bad_signature");
}

#[test]
fn refuses_a_leaf_that_signs() {
    let world = World::new();
    let key = KeyPair::generate().expect("a key");
    let signer = CertifiedIssuer::signed_by(leaf_params("own.example.test"), key, &world.root)
        .expect("a leaf");
    let origin = world.origin_behind(&signer, &[signer.der().clone()], |_| {});
    assert_eq!(refused(&world.origin_tls(), NAME, origin), "wrong_usage");
}

#[test]
fn needs_the_intermediate() {
    let world = World::new();
    let key = KeyPair::generate().expect("a key");
    let mut params = ca_params("between");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let between = CertifiedIssuer::signed_by(params, key, &world.root).expect("an intermediate");
    let tls = world.origin_tls();
    let without = world.origin_behind(&between, &[], |_| {});
    assert_eq!(refused(&tls, NAME, without), "unknown_issuer");
    let with = world.origin_behind(&between, &[between.der().clone()], |_| {});
    assert_eq!(refused(&tls, NAME, with), "accepted");
}

#[test]
fn refuses_a_server_without_the_key() {
    let world = World::new();
    let key = KeyPair::generate().expect("a key");
    let leaf = leaf_params(NAME).signed_by(&key, &world.root).expect("a leaf");
    let other = KeyPair::generate().expect("a key");
    let origin = server(vec![leaf.der().clone()], other);
    assert_eq!(refused(&world.origin_tls(), NAME, origin), "bad_signature");
}

#[test]
fn refuses_weak_signatures() {
    let sha1 = (include_str!("fixtures/sha1-root.pem"), include_str!("fixtures/sha1-leaf.pem"));
    let rsa1024 =
        (include_str!("fixtures/rsa1024-root.pem"), include_str!("fixtures/rsa1024-leaf.pem"));
    for ((root, leaf), class) in [(sha1, "weak_algorithm"), (rsa1024, "bad_signature")] {
        let leaf = CertificateDer::from_pem_slice(leaf.as_bytes()).expect("a leaf");
        // The chain is judged before the server has to show its key.
        let origin = server(vec![leaf], KeyPair::generate().expect("a key"));
        assert_eq!(refused(&origin_tls_trusting(root), NAME, origin), class);
    }
}

#[test]
fn wildcards_stand_for_one_whole_label() {
    assert!(matches("a.example.com", &[dns("*.example.com")]));
    assert!(!matches("a.b.example.com", &[dns("*.example.com")]));
    assert!(!matches("example.com", &[dns("*.example.com")]));
    assert!(!matches("example.com", &[dns("*.com")]));
    assert!(!matches("ab.example.com", &[dns("a*.example.com")]));
    assert!(!matches("example.com", &[dns("*")]));
}

#[test]
fn a_nul_ends_no_name() {
    assert!(!matches("api.example.com", &[dns("api.example.com\0.evil.example.test")]));
    // CVE-2025-66220
    let other = SanType::OtherName((
        vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3],
        OtherNameValue::Utf8String("api.example.com\0.evil.example.test".to_owned()),
    ));
    assert!(!matches("api.example.com", &[dns("evil.example.test"), other]));
}

#[test]
fn neither_case_nor_a_trailing_dot_makes_another_name() {
    assert!(matches("api.example.com", &[dns("API.Example.COM")]));
    assert!(matches("api.example.com.", &[dns("api.example.com")]));
}

#[test]
fn addresses_match_address_names_only() {
    let address = SanType::IpAddress([192, 0, 2, 7].into());
    assert!(matches("192.0.2.7", std::slice::from_ref(&address)));
    assert!(!matches("192.0.2.8", &[address]));
    assert!(!matches("192.0.2.7", &[dns("192.0.2.7")]));
}

/// Whether a certificate for these names is good for `name`.
fn matches(name: &str, names: &[SanType]) -> bool {
    let world = World::new();
    let origin = world.origin(|params| params.subject_alt_names = names.to_vec());
    match refused(&world.origin_tls(), name, origin) {
        "accepted" => true,
        class => {
            assert!(["wrong_name", "bad_certificate"].contains(&class), "{class}");
            false
        }
    }
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(Ia5String::try_from(name).expect("ascii"))
}
