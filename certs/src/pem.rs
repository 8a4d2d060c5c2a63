//! How do PEM files become certificates and keys, and back?

use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_files::ReadError;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::CertsError;

/// Four times the biggest public collection of roots there is (about 250 KiB).
const FILE_LIMIT: usize = 1024 * 1024;

/// PEM lines hold 64 characters (RFC 7468 section 2).
const LINE: usize = 64;

/// The bytes of a PEM file, wiped when dropped: people keep keys in files of certificates too.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, CertsError> {
    outgate_files::read(path, FILE_LIMIT).map_err(|error| match error {
        ReadError::Large(limit) => CertsError::TooLarge { path: path.to_owned(), limit },
        ReadError::Kind(kind) => CertsError::NotAFile { path: path.to_owned(), kind },
        ReadError::NotText => CertsError::io("read", path)(io::ErrorKind::InvalidData.into()),
        ReadError::Io(error) => CertsError::io("open", path)(error),
    })
}

/// All certificates of a PEM text, in order. Other sections (keys, parameters) are passed over.
pub(crate) fn certificates(
    pem: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, CertsError> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        found.push(certificate.map_err(|error| CertsError::BrokenCertificate {
            path: path.to_owned(),
            position: found.len() + 1,
            problem: problem(&error).to_owned(),
        })?);
    }
    if found.is_empty() {
        return Err(CertsError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

/// The first private key of a PEM text.
pub(crate) fn private_key(
    pem: &[u8],
    path: &Path,
) -> Result<Zeroizing<PrivateKeyDer<'static>>, CertsError> {
    if let Ok(key) = PrivateKeyDer::from_pem_slice(pem) {
        return Ok(Zeroizing::new(key));
    }
    let path = path.to_owned();
    // "BEGIN ENCRYPTED PRIVATE KEY" (PKCS#8) and "Proc-Type: 4,ENCRYPTED" (RFC 1421).
    match pem.windows(9).any(|window| window == b"ENCRYPTED") {
        true => Err(CertsError::EncryptedKey { path }),
        false => Err(CertsError::NoKey { path }),
    }
}

/// Certificates as PEM, and nothing but certificates.
pub(crate) fn encode<'a>(
    certificates: impl IntoIterator<Item = &'a CertificateDer<'static>>,
) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        let text = STANDARD.encode(certificate);
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            pem.push_str(line);
            pem.push('\n');
            rest = after;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

/// The library's own words show the offending bytes as numbers.
fn problem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "its END line is missing",
        pem::Error::IllegalSectionStart { .. } => "its BEGIN line is damaged",
        pem::Error::Base64Decode(_) => "its text is not base64",
        _ => "it is not PEM",
    }
}
