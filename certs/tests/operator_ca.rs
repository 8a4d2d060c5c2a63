//! Is an operator's own CA used as it is, or refused with the reason?

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, Pkcs8V1Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_certs::{Authority, CertsError, ClientTls, Leaves};
use rcgen::{
    Certificate, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::ServerName;
use support::{DAY, ca_params, client_trusting, handshake, set_validity};
use tempfile::TempDir;

/// The operator's two files.
struct Own {
    _folder: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Own {
    fn new(certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let own = Self {
            certificate: folder.path().join("company-ca.pem"),
            key: folder.path().join("company-ca.key"),
            _folder: folder,
        };
        fs::write(&own.certificate, certificate).expect("a file");
        fs::write(&own.key, key).expect("a file");
        fs::set_permissions(&own.key, Permissions::from_mode(0o600)).expect("ours");
        own
    }

    fn load(&self) -> Result<Authority, CertsError> {
        Authority::load(&self.certificate, &self.key)
    }
}

fn self_signed(key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) -> Certificate {
    let mut params = ca_params("Company CA");
    change(&mut params);
    params.self_signed(key).expect("a certificate")
}

/// Why a CA that was changed like this is refused.
fn unfit(change: impl FnOnce(&mut CertificateParams)) -> CertsError {
    let key = KeyPair::generate().expect("a key");
    let own = Own::new(&self_signed(&key, change).pem(), &key.serialize_pem());
    own.load().expect_err("unfit")
}

#[test]
fn every_usual_kind_of_key_can_be_the_operator_s() {
    let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
    let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).expect("a key");
    let rsa = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("a key");
    let rsa = AsDer::<Pkcs8V1Der<'_>>::as_der(&rsa).expect("encoded");
    // RFC 5208: the PKCS#1 key is what the PKCS#8 one holds behind 26 octets of version,
    // algorithm and length.
    let mut keys =
        vec![pem("PRIVATE KEY", rsa.as_ref()), pem("RSA PRIVATE KEY", &rsa.as_ref()[26..])];
    for key in [p256, p384] {
        let pkcs8 = key.to_pkcs8v1().expect("encoded");
        let sec1 =
            AsDer::<EcPrivateKeyRfc5915Der<'_>>::as_der(&key.private_key()).expect("encoded");
        keys.push(pem("PRIVATE KEY", pkcs8.as_ref()));
        keys.push(pem("EC PRIVATE KEY", sec1.as_ref()));
    }
    for key in keys {
        let pair = KeyPair::from_pem(&key).expect("a key");
        let certificate = self_signed(&pair, |_| {}).pem();
        let authority = Own::new(&certificate, &key).load().expect("a CA");
        assert_eq!(authority.certificate_pem(), certificate);
        clients_accept_leaves_of(authority);
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn clients_accept_leaves_of(authority: Authority) {
    let client = client_trusting(authority.certificate_pem());
    let leaves = Leaves::new(Arc::new(authority), 1).expect("leaves");
    let name = "ok.example.test";
    let leaf = leaves.leaf(&ServerName::try_from(name).expect("a name")).expect("a leaf");
    let server = ClientTls::new(&[]).expect("a server side").config(leaf);
    handshake(Arc::new(client), name, server).expect("accepted");
}

#[test]
fn an_intermediate_brings_its_parents() {
    let root_key = KeyPair::generate().expect("a key");
    let root = CertifiedIssuer::self_signed(ca_params("Root"), root_key).expect("a root");
    let key = KeyPair::generate().expect("a key");
    let between = ca_params("Issuing").signed_by(&key, &root).expect("an intermediate");
    let (issuing, above) = (between.pem(), root.pem());

    let own = Own::new(&format!("{issuing}{above}"), &key.serialize_pem());
    let authority = own.load().expect("a CA");
    assert_eq!(authority.certificate_pem(), format!("{issuing}{above}"));
    clients_accept_leaves_of(authority);
    let own = Own::new(&format!("{issuing}{issuing}"), &key.serialize_pem());
    assert!(matches!(own.load(), Err(CertsError::NotAnAuthority { .. })));
}

#[test]
fn a_key_beside_the_certificate_is_never_handed_on() {
    let key = KeyPair::generate().expect("a key");
    let certificate = self_signed(&key, |_| {}).pem();
    let both = format!("{}{certificate}", key.serialize_pem());
    let authority = Own::new(&both, &both).load().expect("a CA");
    assert_eq!(authority.certificate_pem(), certificate);
}

#[test]
fn refuses_a_certificate_that_may_not_issue() {
    let problem = |error: CertsError| match error {
        CertsError::NotAnAuthority { problem, .. } => problem,
        other => panic!("{other}"),
    };
    assert!(problem(unfit(|ca| ca.is_ca = IsCa::ExplicitNoCa)).contains("CA:TRUE"));
    let usage = unfit(|ca| ca.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
    assert!(problem(usage).contains("keyCertSign"));
    let purpose = unfit(|ca| ca.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    assert!(problem(purpose).contains("serverAuth"));
}

#[test]
fn refuses_a_subject_that_leaves_could_not_repeat() {
    // "DC=a, DC=b" can't be made with rcgen, which knows one attribute of a kind: this is made
    // with the neighbouring kind, then edited.
    let domain_component = |last| DnType::from_oid(&[0, 9, 2342, 19_200_300, 100, 1, last]);
    let key = KeyPair::generate().expect("a key");
    let certificate = self_signed(&key, |ca| {
        ca.distinguished_name.push(domain_component(25), "a");
        ca.distinguished_name.push(domain_component(26), "b");
    });
    let load = |der: &[u8]| Own::new(&pem("CERTIFICATE", der), &key.serialize_pem()).load();
    load(certificate.der()).expect("two kinds are fine");

    let mut der = certificate.der().to_vec();
    let edited = [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 26];
    while let Some(at) = der.windows(edited.len()).position(|window| window == edited) {
        der[at + edited.len() - 1] = 25;
    }
    let error = load(&der).expect_err("refused");
    assert!(error.to_string().contains("subject repeats"), "{error}");
}

#[test]
fn refuses_a_certificate_that_is_not_valid_now() {
    let now = SystemTime::now();
    let past = unfit(|ca| set_validity(ca, now - 9 * DAY, now - DAY));
    assert!(matches!(past, CertsError::Expired { .. }), "{past}");
    let future = unfit(|ca| set_validity(ca, now + DAY, now + 9 * DAY));
    assert!(matches!(future, CertsError::NotYetValid { .. }), "{future}");
}

#[test]
fn refuses_another_certificate_s_key() {
    let (key, other) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let own = Own::new(&self_signed(&key, |_| {}).pem(), &other.serialize_pem());
    let error = own.load().expect_err("another key");
    let (certificate, key) = (own.certificate.clone(), own.key.clone());
    assert_eq!(error, CertsError::KeyMismatch { certificate, key });
}

#[test]
fn refuses_keys_that_clients_would_not_accept_or_that_are_locked() {
    let certificate = self_signed(&KeyPair::generate().expect("a key"), |_| {}).pem();
    let load = |key: &str| Own::new(&certificate, key).load().expect_err("refused");
    let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let error = load(&ed25519.serialize_pem());
    assert!(matches!(error, CertsError::UnsupportedKey { .. }), "{error}");
    for encrypted in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMAA=\n-----END RSA PRIVATE KEY-----\n",
    ] {
        let error = load(encrypted);
        assert!(matches!(error, CertsError::EncryptedKey { .. }), "{error}");
    }
    let error = load(&certificate);
    assert!(matches!(error, CertsError::NoKey { .. }), "{error}");
}

#[test]
fn refuses_a_file_that_can_only_be_a_mistake() {
    let key = KeyPair::generate().expect("a key").serialize_pem();
    let own = Own::new(&"x".repeat(2 * 1024 * 1024), &key);
    let error = own.load().expect_err("too large");
    assert!(matches!(error, CertsError::TooLarge { .. }), "{error}");
    fs::remove_file(&own.certificate).expect("ours");
    let error = own.load().expect_err("not there");
    assert!(error.to_string().contains("company-ca.pem"), "{error}");
}
