//! May this certificate issue leaves that clients will accept?

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::CertsError;

/// What issuing must know of a CA certificate.
pub(crate) struct Inspected {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
    /// The subject as it is encoded: leaves must name their issuer in exactly these bytes.
    pub(crate) subject: Vec<u8>,
    /// SubjectPublicKeyInfo.
    pub(crate) public_key: Vec<u8>,
}

/// Judges a chain, the issuing certificate first, as of `now`.
pub(crate) fn inspect(
    chain: &[CertificateDer<'static>],
    path: &Path,
    now: SystemTime,
) -> Result<Inspected, CertsError> {
    let parsed = chain
        .iter()
        .enumerate()
        .map(|(index, der)| parse(der, index + 1, path))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(issuer) = parsed.first() else {
        return Err(CertsError::NoCertificate { path: path.to_owned() });
    };
    check_purpose(issuer)
        .and_then(|()| check_order(&parsed))
        .map_err(|problem| CertsError::NotAnAuthority { path: path.to_owned(), problem })?;
    let inspected = Inspected {
        not_before: system_time(issuer.validity().not_before),
        not_after: system_time(issuer.validity().not_after),
        subject: issuer.subject().as_raw().to_vec(),
        public_key: issuer.public_key().raw.to_vec(),
    };
    if now >= inspected.not_after {
        return Err(CertsError::Expired { path: path.to_owned() });
    }
    if now < inspected.not_before {
        return Err(CertsError::NotYetValid { path: path.to_owned() });
    }
    Ok(inspected)
}

/// Whether `leaf` names its issuer in exactly these bytes.
pub(crate) fn names_issuer(leaf: &CertificateDer<'_>, subject: &[u8]) -> bool {
    X509Certificate::from_der(leaf).is_ok_and(|(_, leaf)| leaf.issuer().as_raw() == subject)
}

fn parse<'a>(
    der: &'a CertificateDer<'static>,
    position: usize,
    path: &Path,
) -> Result<X509Certificate<'a>, CertsError> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(|error| {
        CertsError::BrokenCertificate {
            path: path.to_owned(),
            position,
            problem: error.to_string(),
        }
    })
}

fn check_purpose(issuer: &X509Certificate<'_>) -> Result<(), &'static str> {
    const UNREADABLE: &str = "its extensions can't be read; issue it again";
    if !issuer.is_ca() {
        return Err("it is not a CA certificate; it needs basicConstraints CA:TRUE");
    }
    // RFC 5280 section 4.2.1.3: absent means unrestricted.
    let usage = issuer.key_usage().map_err(|_| UNREADABLE)?;
    if usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
        return Err("its keyUsage lacks keyCertSign; issue it with that usage");
    }
    let purposes = issuer.extended_key_usage().map_err(|_| UNREADABLE)?;
    if purposes.is_some_and(|purposes| !purposes.value.any && !purposes.value.server_auth) {
        return Err("its extendedKeyUsage lacks serverAuth; issue it without that extension");
    }
    Ok(())
}

/// Clients walk the chain as it is sent; one that is out of order is broken for some of them.
fn check_order(chain: &[X509Certificate<'_>]) -> Result<(), &'static str> {
    match chain.windows(2).all(|pair| pair[0].issuer().as_raw() == pair[1].subject().as_raw()) {
        true => Ok(()),
        false => Err("its certificates are out of order; put the CA first, then what signed it"),
    }
}

fn system_time(time: ASN1Time) -> SystemTime {
    let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
