//! What must a sandbox trust?

use std::collections::HashMap;

use rustls_pki_types::CertificateDer;

use crate::java::key_store;
use crate::subject_hash::subject_hash;
use crate::{Authority, OriginRoots, pem};

/// The CA first, then every root that we trust ourselves, as one PEM text.
///
/// Clients that are pointed at a file of roots believe that file alone. With only the CA in it,
/// an origin whose TLS is passed through untouched would be refused.
pub fn bundle(authority: &Authority, roots: &OriginRoots) -> String {
    let mut text = authority.certificate_pem().to_owned();
    text.push_str(&pem::encode(roots.certificates()));
    text
}

/// The same certificates one by one: the files of a folder in which OpenSSL finds them by their
/// subject, as names and PEM texts. The CA comes first.
pub fn hashed(authority: &Authority, roots: &OriginRoots) -> Vec<(String, String)> {
    let mut used: HashMap<String, usize> = HashMap::new();
    let mut files = Vec::new();
    for certificate in authority.chain().iter().chain(roots.certificates()) {
        // rustls has read every one of them as a certificate, so there is always a hash.
        if let Some(hash) = subject_hash(certificate) {
            let number = used.entry(hash.clone()).or_default();
            files.push((format!("{hash}.{number}"), pem::encode([certificate])));
            *number += 1;
        }
    }
    files
}

/// The same certificates as a trust store for Java, under
/// [`JAVA_PASSWORD`](crate::JAVA_PASSWORD).
pub fn java_trust_store(authority: &Authority, roots: &OriginRoots) -> Vec<u8> {
    let certificates: Vec<&CertificateDer<'static>> =
        authority.chain().iter().chain(roots.certificates()).collect();
    let named = certificates.iter().enumerate().map(|(index, certificate)| match index {
        0 => ("outgate".to_owned(), *certificate),
        _ => (format!("outgate-{index}"), *certificate),
    });
    key_store(named)
}
