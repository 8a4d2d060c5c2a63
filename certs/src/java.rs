//! How are roots written for Java, without a JDK?
//!
//! As a JKS file (`sun.security.provider.JavaKeyStore`), which every Java since 1.2 reads, whatever
//! its default type: a list of trusted certificates, then SHA-1 over the password, a fixed phrase
//! and all that came before. Nothing in it is secret; the password is Java's own default.

use aws_lc_rs::digest::{Context, Digest, SHA1_FOR_LEGACY_USE_ONLY};
use rustls_pki_types::CertificateDer;

/// What Java takes for a trust store unless told otherwise.
pub const JAVA_PASSWORD: &str = "changeit";

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
const TRUSTED_CERTIFICATE: u32 = 2;
const PHRASE: &[u8] = b"Mighty Aphrodite";

/// The store, with one alias per certificate.
pub(crate) fn key_store<'a>(
    certificates: impl ExactSizeIterator<Item = (String, &'a CertificateDer<'static>)>,
) -> Vec<u8> {
    let mut store = Vec::new();
    store.extend(MAGIC.to_be_bytes());
    store.extend(VERSION.to_be_bytes());
    put_length(&mut store, certificates.len());
    for (alias, certificate) in certificates {
        store.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        put_text(&mut store, &alias);
        // When it was added, in milliseconds: the same input gives the same file.
        store.extend(0_u64.to_be_bytes());
        put_text(&mut store, "X.509");
        put_length(&mut store, certificate.len());
        store.extend_from_slice(certificate);
    }
    store.extend(seal(&store).as_ref());
    store
}

fn seal(store: &[u8]) -> Digest {
    let mut seal = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    JAVA_PASSWORD.encode_utf16().for_each(|unit| seal.update(&unit.to_be_bytes()));
    seal.update(PHRASE);
    seal.update(store);
    seal.finish()
}

/// As `DataOutput.writeUTF` has it; ours are short and ASCII.
fn put_text(store: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("aliases are short");
    store.extend(length.to_be_bytes());
    store.extend(text.as_bytes());
}

fn put_length(store: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("roots are read from files of at most 1 MiB");
    store.extend(length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pem;

    /// Made by `keytool -importcert -storetype JKS -alias outgate`.
    const OF_KEYTOOL: &[u8] = include_bytes!("../tests/fixtures/keytool.jks");

    #[test]
    fn writes_what_keytool_writes() {
        let root = include_bytes!("../tests/fixtures/rsa1024-root.pem");
        let root = &pem::certificates(root, Path::new("root")).unwrap()[0];
        let store = key_store([("outgate".to_owned(), root)].into_iter());
        let (body, sealed) = OF_KEYTOOL.split_at(OF_KEYTOOL.len() - 20);
        assert_eq!(seal(body).as_ref(), sealed);
        // Its time of addition follows magic, version, count, kind and alias.
        let time = 4 * 4 + 2 + "outgate".len()..4 * 4 + 2 + "outgate".len() + 8;
        let mut body = body.to_vec();
        body[time].fill(0);
        assert_eq!(store[..store.len() - 20], body);
        assert_eq!(store[store.len() - 20..], *seal(&body).as_ref());
    }
}
