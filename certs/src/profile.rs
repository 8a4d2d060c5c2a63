//! How is one origin met other than the rest: whom do we believe it to be, and who are we to it?

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::provider::provider;
use crate::{CertsError, OriginRoots, pem};

/// What an entry's `origin` says, with the contents of the files that it names.
#[derive(Default)]
pub struct OriginProfile {
    roots: Option<OriginRoots>,
    client: Option<Client>,
    only_tls13: bool,
    fingerprint: [u8; 32],
}

/// Who we are to an origin that asks.
pub(crate) struct Client {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Zeroizing<PrivateKeyDer<'static>>,
}

impl OriginProfile {
    /// Believes no roots but those of this PEM file.
    ///
    /// # Errors
    /// The file can't be read, holds no certificate, or one of them is damaged.
    pub fn trust_only(&mut self, path: &Path) -> Result<(), CertsError> {
        let mut roots = OriginRoots::none();
        roots.add_pem(path)?;
        self.note("roots", roots.certificates().iter().map(AsRef::as_ref));
        self.roots = Some(roots);
        Ok(())
    }

    /// Shows this certificate to origins that ask for one.
    ///
    /// # Errors
    /// One of the files can't be read or used, or they don't belong together.
    pub fn present(&mut self, certificate: &Path, key: &Path) -> Result<(), CertsError> {
        let chain = pem::certificates(&pem::read(certificate)?, certificate)?;
        let key_file = pem::read(key)?;
        let private = pem::private_key(&key_file, key)?;
        check_pair(&chain, &private, certificate, key)?;
        self.note("certificate", chain.iter().map(AsRef::as_ref));
        self.note("key", [private.secret_der()].into_iter());
        self.client = Some(Client { chain, key: private });
        Ok(())
    }

    /// Speaks nothing older than TLS 1.3.
    pub fn require_tls13(&mut self) {
        self.note("tls13", std::iter::empty());
        self.only_tls13 = true;
    }

    /// The same for the same contents, in the same order of calls; tells nothing of them.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    pub(crate) fn roots(&self) -> Option<&OriginRoots> {
        self.roots.as_ref()
    }

    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    pub(crate) fn only_tls13(&self) -> bool {
        self.only_tls13
    }

    /// Goes on from the last fingerprint; each part with its length, so that none runs into the next.
    fn note<'a>(&mut self, what: &'a str, parts: impl Iterator<Item = &'a [u8]>) {
        let mut digest = Context::new(&SHA256);
        digest.update(&self.fingerprint);
        for part in std::iter::once(what.as_bytes()).chain(parts) {
            digest.update(&part.len().to_be_bytes());
            digest.update(part);
        }
        self.fingerprint.copy_from_slice(digest.finish().as_ref());
    }
}

impl Client {
    pub(crate) fn chain_and_key(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), self.key.clone_key())
    }
}

fn check_pair(
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    certificate: &Path,
    key_path: &Path,
) -> Result<(), CertsError> {
    let provider: std::sync::Arc<CryptoProvider> = provider();
    let signing = provider.key_provider.load_private_key(key.clone_key());
    let signing = signing.map_err(|_| CertsError::UnusableKey { path: key_path.to_owned() })?;
    let whole = CertifiedKey::new(chain.to_vec(), signing);
    whole.keys_match().map_err(|_| CertsError::KeyOfAnother {
        certificate: certificate.to_owned(),
        key: PathBuf::from(key_path),
    })
}
