//! Do the leaves and the CA hold what strict verifiers look for?

mod support;

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, SystemTime};

use rustls_pki_types::ServerName;
use support::{DAY, Gateway, long_name, server_name};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

#[test]
fn a_leaf_holds_what_strict_clients_look_for() {
    let gateway = Gateway::new();
    let now = SystemTime::now();
    let certified = gateway.leaves.leaf(&server_name(&long_name())).expect("a leaf");
    assert_eq!(certified.cert.len(), 2, "the chain contains the CA");
    let (_, leaf) = X509Certificate::from_der(&certified.cert[0]).expect("a leaf");
    let (_, ca) = X509Certificate::from_der(&certified.cert[1]).expect("a CA");
    leaf.verify_signature(Some(ca.public_key())).expect("signed by the CA");

    let names = leaf.subject_alternative_name().expect("readable").expect("present").value;
    assert_eq!(names.general_names, [GeneralName::DNSName(&long_name())]);
    assert!(!leaf.subject().to_string().contains("example"));
    assert!(!leaf.is_ca());
    assert!(leaf.basic_constraints().expect("readable").expect("present").critical);
    let usage = leaf.key_usage().expect("readable").expect("present");
    assert_eq!((usage.value.flags, usage.critical), (1, true), "digitalSignature alone");
    let purposes = leaf.extended_key_usage().expect("readable").expect("present").value;
    assert!(purposes.server_auth && !purposes.client_auth && !purposes.any);
    assert_eq!(authority_key(&leaf).expect("AKI"), subject_key(&ca).expect("SKI"));
    assert!(subject_key(&leaf).is_some());

    let (from, to) = (seconds(leaf.validity().not_before), seconds(leaf.validity().not_after));
    assert!(from <= unix(now) - 300, "clients may be five minutes behind");
    assert!(to >= unix(now + DAY) && to <= unix(now + 90 * DAY), "days, not years");
    assert!(from >= seconds(ca.validity().not_before) && to <= seconds(ca.validity().not_after));
}

#[test]
fn serial_numbers_are_long_and_random() {
    let gateway = Gateway::new();
    let serial = |name: &str| {
        let certified = gateway.leaves.leaf(&server_name(name)).expect("a leaf");
        let (_, leaf) = X509Certificate::from_der(&certified.cert[0]).expect("a leaf");
        assert!(leaf.raw_serial().len() <= 16 && leaf.raw_serial()[0] < 0x80, "positive");
        leaf.serial.clone()
    };
    let serials: Vec<_> = (0..16).map(|n| serial(&format!("n{n}.example.test"))).collect();
    assert!(serials.iter().any(|serial| serial.bits() >= 120));
    for (index, one) in serials.iter().enumerate() {
        assert!(!serials[..index].contains(one));
    }
}

#[test]
fn the_ca_holds_what_strict_clients_look_for() {
    let gateway = Gateway::new();
    let certified = gateway.leaves.leaf(&server_name("ok.example.test")).expect("a leaf");
    let (_, ca) = X509Certificate::from_der(&certified.cert[1]).expect("a CA");
    ca.verify_signature(None).expect("signed by itself");
    let constraints = ca.basic_constraints().expect("readable").expect("present");
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    let usage = ca.key_usage().expect("readable").expect("present");
    assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
    assert!(subject_key(&ca).is_some());
    let from = seconds(ca.validity().not_before);
    assert!(from <= unix(SystemTime::now()) - 3600, "clocks may be behind");
    assert_eq!(seconds(ca.validity().not_after), unix(gateway.authority.not_after()));
    assert!(ca.subject().to_string().starts_with("CN=outgate CA "));
}

#[test]
fn an_address_is_named_as_an_address() {
    let gateway = Gateway::new();
    let v6: Ipv6Addr = "2001:db8::7".parse().expect("an address");
    for (address, octets) in [
        (IpAddr::from([192, 0, 2, 7]), vec![192, 0, 2, 7]),
        (IpAddr::from(v6), v6.octets().to_vec()),
    ] {
        let certified = gateway.leaves.leaf(&ServerName::from(address)).expect("a leaf");
        let (_, leaf) = X509Certificate::from_der(&certified.cert[0]).expect("a leaf");
        let names = leaf.subject_alternative_name().expect("readable").expect("present").value;
        assert_eq!(names.general_names, [GeneralName::IPAddress(&octets)]);
    }
}

fn authority_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(key) => key.key_identifier.as_ref().map(|id| id.0),
        _ => None,
    })
}

fn subject_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    })
}

fn seconds(time: x509_parser::time::ASN1Time) -> u64 {
    u64::try_from(time.timestamp()).expect("after 1970")
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
