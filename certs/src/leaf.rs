//! What does the certificate for one name or address look like?

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::crypto::aws_lc_rs::sign::any_ecdsa_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use zeroize::Zeroizing;

use crate::CertsError;
use crate::authority::{Authority, serial_number, set_validity};

/// A guest's clock may be behind ours.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// Short enough for every verifier's limit (398 days) and for a leaked key to be worth little,
/// long enough for a client whose clock is days ahead: at least half of it is always left.
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A name in the one form under which its leaf is kept: lower case, no trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeafName {
    Dns(Box<str>),
    Address(IpAddr),
}

/// One leaf with its key, and when it may be handed out.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) certified: Arc<CertifiedKey>,
    not_before: SystemTime,
    renew_at: SystemTime,
}

/// Signs leaves, all for the same key pair.
pub(crate) struct LeafIssuer {
    authority: Arc<Authority>,
    key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    template: CertificateParams,
}

impl TryFrom<&ServerName<'_>> for LeafName {
    type Error = CertsError;

    fn try_from(name: &ServerName<'_>) -> Result<Self, CertsError> {
        match name {
            ServerName::DnsName(name) => {
                let name = name.as_ref();
                let name = name.strip_suffix('.').unwrap_or(name);
                Ok(Self::Dns(name.to_ascii_lowercase().into()))
            }
            ServerName::IpAddress(address) => Ok(Self::Address((*address).into())),
            _ => Err(CertsError::UnsupportedName),
        }
    }
}

impl Leaf {
    /// Whether this leaf may still be handed out. One from the future is as bad as an old one: the
    /// clock was wrong when it was made.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        (self.not_before..self.renew_at).contains(&now)
    }
}

impl LeafIssuer {
    pub(crate) fn new(authority: Arc<Authority>) -> Result<Self, CertsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
            .map_err(CertsError::signing("make the key of the leaves"))?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing_key = any_ecdsa_type(&Zeroizing::new(der))?;
        Ok(Self { authority, key, signing_key, template: template() })
    }

    /// One signature: about as long as a P-256 signature takes.
    ///
    /// # Errors
    /// The CA expired while we ran, or the crypto library failed.
    pub(crate) fn issue(&self, name: &LeafName, now: SystemTime) -> Result<Leaf, CertsError> {
        self.authority.check_not_expired(now)?;
        // Never outside the CA's own life, or strict verifiers refuse the chain.
        let not_before = (now - BACKDATED).max(self.authority.not_before());
        let not_after = (now + LIFE).min(self.authority.not_after());
        let mut params = self.template.clone();
        params.serial_number = Some(serial_number()?);
        params.subject_alt_names = vec![subject_alt_name(name)?];
        set_validity(&mut params, not_before, not_after);
        let leaf = params
            .signed_by(&self.key, self.authority.issuer())
            .map_err(CertsError::signing("sign a leaf"))?;

        let mut chain = vec![leaf.into()];
        chain.extend_from_slice(self.authority.chain());
        let life = not_after.duration_since(now).unwrap_or_default();
        Ok(Leaf {
            certified: Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signing_key))),
            not_before,
            renew_at: now + life / 2,
        })
    }
}

/// What all leaves have in common.
fn template() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // Not the name: a common name ends at 64 characters, a DNS name at 253. Not empty either: the
    // SAN would have to be critical then, which some clients can't read.
    params.distinguished_name.push(DnType::CommonName, "outgate leaf");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params
}

fn subject_alt_name(name: &LeafName) -> Result<SanType, CertsError> {
    Ok(match name {
        LeafName::Dns(name) => SanType::DnsName(
            Ia5String::try_from(name.as_ref()).map_err(CertsError::signing("name a leaf"))?,
        ),
        LeafName::Address(address) => SanType::IpAddress(*address),
    })
}

#[cfg(test)]
mod tests {
    use x509_parser::parse_x509_certificate;

    use super::*;

    #[test]
    fn no_leaf_outlives_the_ca() {
        let state = tempfile::tempdir().expect("a folder");
        let authority = Arc::new(Authority::open_or_create(state.path()).expect("a CA"));
        let issuer = LeafIssuer::new(Arc::clone(&authority)).expect("an issuer");
        let name = LeafName::Dns("ok.example.test".into());
        let end = authority.not_after();

        let leaf = issuer.issue(&name, end - LIFE / 4).expect("a leaf");
        let (_, last) = parse_x509_certificate(&leaf.certified.cert[0]).expect("a leaf");
        let (_, ca) = parse_x509_certificate(&leaf.certified.cert[1]).expect("a CA");
        assert_eq!(last.validity().not_after, ca.validity().not_after);
        assert!(leaf.is_fresh(end - LIFE / 4) && !leaf.is_fresh(end - LIFE / 16));
        assert!(matches!(issuer.issue(&name, end), Err(CertsError::Expired { .. })));
    }
}
