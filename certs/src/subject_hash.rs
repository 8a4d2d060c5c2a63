//! Under which file name does OpenSSL look for a certificate in a folder?
//!
//! `HASH.N` with the first four bytes of SHA-1 over the canonical form of the subject
//! (`X509_NAME_hash`, openssl-rehash(1)), and a number for subjects that share it. The canonical
//! form (`x509_name_canon` in crypto/x509/x_name.c) makes names equal that RFC 5280 §7.1 compares
//! as equal: every string as UTF-8, lower case, white space trimmed and collapsed, and the outer
//! SEQUENCE left out.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, ToDer};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;

/// The eight hexadecimal digits before the dot; `None` for what is no certificate.
pub(crate) fn subject_hash(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &canonical(certificate.subject())?);
    let first: [u8; 4] = hash.as_ref().first_chunk().copied()?;
    Some(format!("{:08x}", u32::from_le_bytes(first)))
}

fn canonical(name: &X509Name<'_>) -> Option<Vec<u8>> {
    let mut form = Vec::new();
    for rdn in name.iter() {
        let mut attributes: Vec<Vec<u8>> = rdn.iter().map(attribute).collect::<Option<_>>()?;
        // DER has the members of a SET OF in the order of their encodings (X.690 §11.6).
        attributes.sort();
        form.extend(encoded(SET, &attributes.concat()));
    }
    Some(form)
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> Option<Vec<u8>> {
    let mut pair = attribute.attr_type().to_der_vec().ok()?;
    let value = attribute.attr_value();
    match text(value)? {
        Some(text) => pair.extend(encoded(UTF8_STRING, folded(&text).as_bytes())),
        None => pair.extend(value.to_der_vec().ok()?),
    }
    Some(encoded(SEQUENCE, &pair))
}

/// The characters of a value; `Some(None)` for a kind that OpenSSL leaves alone.
fn text(value: &Any<'_>) -> Option<Option<String>> {
    let wide = |width: usize| -> Option<String> {
        let (characters, rest) = (value.data.chunks_exact(width), value.data.len() % width);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let text = characters.map(|bytes| char::from_u32(number(bytes))).collect();
        if rest == 0 { text } else { None }
    };
    let text = match value.tag().0 {
        // UTF8String, PrintableString, IA5String, VisibleString.
        12 | 19 | 22 | 26 => str::from_utf8(value.data).ok()?.to_owned(),
        // TeletexString, which everyone writes in Latin-1.
        20 => value.data.iter().map(|byte| char::from(*byte)).collect(),
        28 => wide(4)?,
        30 => wide(2)?,
        _ => return Some(None),
    };
    Some(Some(text))
}

/// Lower case and single blanks, in ASCII only.
fn folded(text: &str) -> String {
    let blank = |c: char| matches!(c, ' ' | '\t'..='\r');
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    words.join(" ").to_ascii_lowercase()
}

fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short @ ..0x80) => bytes.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
            bytes.push(0x80 | length.len() as u8);
            bytes.extend(length);
        }
    }
    bytes.extend(content);
    bytes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pem;

    /// The hashes are those of `openssl x509 -subject_hash`.
    #[test]
    fn finds_the_hash_that_openssl_finds() {
        let pem = include_bytes!("../tests/fixtures/subjects.pem");
        let certificates = pem::certificates(pem, Path::new("subjects.pem")).unwrap();
        let hashes: Vec<_> = certificates.iter().filter_map(subject_hash).collect();
        let expected = [
            // UTF-8 with blanks around and inside.
            "7446967b", // TeletexString.
            "af721478", // BMPString.
            "50acdd13", "be334ab9", // An RDN of two attributes.
            "0844c817", // IA5String.
            "a814bc56",
        ];
        assert_eq!(hashes, expected);
    }

    #[test]
    fn folds_what_names_are_compared_without() {
        assert_eq!(folded("  DigiCert \t Global\r\nRoot  "), "digicert global root");
        assert_eq!(folded("ÄÖ\u{a0}X"), "ÄÖ\u{a0}x");
        assert_eq!(folded(" "), "");
    }

    #[test]
    fn writes_lengths_of_every_size() {
        assert_eq!(encoded(4, &[7; 3]), [4, 3, 7, 7, 7]);
        assert_eq!(encoded(4, &[7; 200])[..3], [4, 0x81, 200]);
        assert_eq!(encoded(4, &[7; 300])[..4], [4, 0x82, 1, 44]);
    }
}
