//! Who signs the leaves?

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::{digest, rand};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256,
    PublicKeyData, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

use crate::inspect::{inspect, names_issuer};
use crate::store::{Pair, Store, Writer, read_guarded_key};
use crate::{CertsError, pem};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Ten years. Clients learn of this CA by hand or through an image, and a CA that ends before the
/// machine it was made for cuts every sandbox off at once; there is nothing to gain from a short
/// one, since it is trusted by this install's own sandboxes alone and replaced with one command.
const CA_LIFE: Duration = Duration::from_secs(3653 * 24 * 60 * 60);

/// The CA: its certificate, and the key that signs every leaf.
///
/// Neither its `Debug` output nor anything else it returns holds key material.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The issuing certificate first, then what the operator put behind it.
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    /// Where the certificate came from, for errors.
    path: PathBuf,
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Authority {
    /// The CA of a state folder (`ca.pem`, `ca.key`), made now if there is none.
    ///
    /// Processes that start at once end up with the same CA. A CA that is there is never
    /// replaced, not even a damaged one: clients trust it by its certificate.
    ///
    /// # Errors
    /// One of the files is missing, the pair doesn't fit, has expired or is open to every user, or
    /// the folder can't be written.
    pub fn open_or_create(folder: &Path) -> Result<Self, CertsError> {
        if let Some(authority) = Self::open(folder)? {
            return Ok(authority);
        }
        let store = Store::new(folder);
        let writer = store.write_access()?;
        match writer.read()? {
            Some(pair) => Self::from_store(&store, &pair),
            None => Self::create(&store, &writer),
        }
    }

    /// The CA of a state folder, `None` where none was made yet.
    ///
    /// # Errors
    /// As [`Authority::open_or_create`].
    pub fn open(folder: &Path) -> Result<Option<Self>, CertsError> {
        let store = Store::new(folder);
        let load = |pair: Option<Pair>| pair.map(|p| Self::from_store(&store, &p)).transpose();
        if store.is_settled()? {
            match store.read().and_then(load) {
                // A writer may have been between its two renames: look again when it is done.
                Err(CertsError::HalfPair { .. } | CertsError::KeyMismatch { .. }) => {}
                seen => return seen,
            }
        }
        store.write_access()?.read().and_then(load)
    }

    /// Makes a new CA in the place of the one in the state folder, if any. No copy of the old one
    /// is kept.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn replace(folder: &Path) -> Result<Self, CertsError> {
        let store = Store::new(folder);
        let writer = store.write_access()?;
        Self::create(&store, &writer)
    }

    /// The operator's own CA: a PEM file with its certificate (then, if it is an intermediate, what
    /// signed it), and the unencrypted PEM key (PKCS#8, SEC1 or PKCS#1; EC P-256, P-384 or RSA).
    ///
    /// # Errors
    /// A file can't be read or is damaged, the key is open to every user or belongs to another
    /// certificate, or the certificate may not issue leaves now.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, CertsError> {
        let pair = Pair { certificate: pem::read(certificate)?, key: read_guarded_key(key)? };
        Self::from_pem(&pair, certificate, key)
    }

    /// The certificate as PEM, with the rest of the operator's chain: what clients must trust.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` shows it.
    pub fn fingerprint(&self) -> String {
        let hash = digest::digest(&digest::SHA256, self.certificate());
        let octets: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        octets.join(":")
    }

    /// The first moment at which no client accepts the CA any more.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// The last moment before which no client accepts the CA yet.
    pub(crate) fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// A process may outlive its CA.
    pub(crate) fn check_not_expired(&self, now: SystemTime) -> Result<(), CertsError> {
        match now < self.not_after {
            true => Ok(()),
            false => Err(CertsError::Expired { path: self.path.clone() }),
        }
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// The issuing certificate, then what signed it.
    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    fn certificate(&self) -> &CertificateDer<'static> {
        // `inspect` refuses an empty chain.
        &self.chain[0]
    }

    fn create(store: &Store, writer: &Writer<'_>) -> Result<Self, CertsError> {
        let (certificate, key) = make(SystemTime::now())?;
        writer.write(&certificate, &key)?;
        let certificate = Zeroizing::new(certificate.into_bytes());
        let key = Zeroizing::new(key.as_bytes().to_vec());
        Self::from_store(store, &Pair { certificate, key })
    }

    fn from_store(store: &Store, pair: &Pair) -> Result<Self, CertsError> {
        Self::from_pem(pair, &store.certificate, &store.key)
    }

    fn from_pem(pair: &Pair, certificate: &Path, key: &Path) -> Result<Self, CertsError> {
        let chain = pem::certificates(&pair.certificate, certificate)?;
        let inspected = inspect(&chain, certificate, SystemTime::now())?;
        let key_pair = key_pair(&pair.key, key)?;
        if key_pair.subject_public_key_info() != inspected.public_key {
            return Err(CertsError::KeyMismatch {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
            });
        }
        let issuer = issuer(&chain[0], key_pair, &inspected.subject).ok_or_else(|| {
            CertsError::NotAnAuthority {
                path: certificate.to_owned(),
                problem: "its subject repeats or combines attributes; use a CA with a plain one",
            }
        })?;
        Ok(Self {
            issuer,
            pem: pem::encode(&chain),
            chain,
            path: certificate.to_owned(),
            not_before: inspected.not_before,
            not_after: inspected.not_after,
        })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

/// A serial number of 127 random bits (RFC 5280 section 4.1.2.2: positive, at most 20 octets).
pub(crate) fn serial_number() -> Result<SerialNumber, CertsError> {
    let mut serial: [u8; 16] = random("draw a serial number")?;
    serial[0] &= 0x7f;
    Ok(SerialNumber::from_slice(&serial))
}

/// Times as rcgen wants them, without naming its date crate.
pub(crate) fn set_validity(
    params: &mut CertificateParams,
    not_before: SystemTime,
    not_after: SystemTime,
) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    params.not_before = epoch + since(not_before);
    params.not_after = epoch + since(not_after);
}

/// A fresh CA as two PEM texts: certificate and key.
fn make(now: SystemTime) -> Result<(String, Zeroizing<String>), CertsError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .map_err(CertsError::signing("make the key of the ca"))?;
    let mut params = CertificateParams::default();
    params.serial_number = Some(serial_number()?);
    params.distinguished_name = DistinguishedName::new();
    // Two installs must differ in name too: clients that trust both look issuers up by name.
    let mark: [u8; 4] = random("name the ca")?;
    let name = format!("outgate CA {:08x}", u32::from_be_bytes(mark));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, now - DAY, now + CA_LIFE);
    let certificate =
        params.self_signed(&key).map_err(CertsError::signing("make the certificate of the ca"))?;
    Ok((certificate.pem(), Zeroizing::new(key.serialize_pem())))
}

fn key_pair(pem: &[u8], path: &Path) -> Result<KeyPair, CertsError> {
    let der = pem::private_key(pem, path)?;
    // Ed25519 and P-521 would sign as well, but browsers and Go or Java of some age refuse them.
    KeyPair::try_from(&*der)
        .ok()
        .filter(|key| {
            [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_RSA_SHA256]
                .contains(&key.algorithm())
        })
        .ok_or_else(|| CertsError::UnsupportedKey { path: path.to_owned() })
}

/// The issuer, if leaves can name it exactly as it names itself.
///
/// rcgen rebuilds the subject and drops an attribute that occurs twice. Clients compare bytes, so
/// a leaf with such an issuer would be refused by all of them: a probe shows it now.
fn issuer(
    certificate: &CertificateDer<'static>,
    key: KeyPair,
    subject: &[u8],
) -> Option<Issuer<'static, KeyPair>> {
    let issuer = Issuer::from_ca_cert_der(certificate, key).ok()?;
    let probe = CertificateParams::default().signed_by(issuer.key(), &issuer).ok()?;
    names_issuer(probe.der(), subject).then_some(issuer)
}

fn random<const N: usize>(action: &'static str) -> Result<[u8; N], CertsError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(CertsError::signing(action))?;
    Ok(bytes)
}
