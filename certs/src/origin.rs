//! Whom do we believe to be an origin?

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::version::TLS13;
use rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};
use rustls_pki_types::CertificateDer;

use crate::provider::provider;
use crate::{CertsError, OriginProfile, pem};

/// Sessions kept per environment and TLS profile. An environment rarely talks to more origins at
/// a time; each takes a few KiB.
const SESSIONS: usize = 256;

/// The trust anchors for origins.
#[derive(Clone, Debug)]
pub struct OriginRoots {
    store: RootCertStore,
    /// The anchors as certificates, for the sandbox's bundle.
    certificates: Vec<CertificateDer<'static>>,
    problems: Vec<String>,
}

impl OriginRoots {
    /// No anchors: what [`OriginRoots::add_pem`] adds is all there will be.
    pub fn none() -> Self {
        Self { store: RootCertStore::empty(), certificates: Vec::new(), problems: Vec::new() }
    }

    /// The anchors of this system (or of `SSL_CERT_FILE` and `SSL_CERT_DIR`).
    ///
    /// Some that can't be read are no error, see [`OriginRoots::problems`].
    ///
    /// # Errors
    /// There is none at all. A caller that has roots of its own goes on from
    /// [`OriginRoots::none`].
    pub fn system() -> Result<Self, CertsError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = Self::none();
        roots.problems.extend(found.errors.iter().map(ToString::to_string));
        let (mut refused, mut reason) = (0, String::new());
        for certificate in found.certs {
            if let Err(error) = roots.add(certificate) {
                refused += 1;
                reason = error.to_string();
            }
        }
        if refused > 0 {
            roots.problems.push(format!("{refused} system roots passed over, the last: {reason}"));
        }
        if roots.certificates.is_empty() {
            return Err(CertsError::NoSystemRoots { problems: roots.problems });
        }
        Ok(roots)
    }

    /// Adds every certificate of a PEM file; returns how many it holds.
    ///
    /// # Errors
    /// The file can't be read, holds none, or one of them is damaged. Nothing was added then.
    pub fn add_pem(&mut self, path: &Path) -> Result<usize, CertsError> {
        let certificates = pem::certificates(&pem::read(path)?, path)?;
        let count = certificates.len();
        let mut extended = self.clone();
        for (index, certificate) in certificates.into_iter().enumerate() {
            extended.add(certificate).map_err(|error| CertsError::BrokenCertificate {
                path: path.to_owned(),
                position: index + 1,
                problem: error.to_string(),
            })?;
        }
        *self = extended;
        Ok(count)
    }

    /// What was met while reading the system's anchors: worth a warning at start.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// How many anchors there are.
    pub fn len(&self) -> usize {
        self.certificates.len()
    }

    /// Whether there is no anchor.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    pub(crate) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), rustls::Error> {
        self.store.add(certificate.clone())?;
        self.certificates.push(certificate);
        Ok(())
    }
}

/// The TLS client that meets the origins of one environment under one TLS profile. Its sessions
/// are its own, so what one environment began can't be resumed by another.
pub struct OriginTls {
    config: Arc<ClientConfig>,
}

impl OriginTls {
    /// TLS 1.2 and 1.3, these ALPN protocols (most preferred first), X25519MLKEM768 offered first,
    /// no 0-RTT. Origins are verified against `roots` for the name that the connection is made
    /// with; nothing is sent before. Revocation is not checked: neither OCSP nor CRLs are fetched.
    ///
    /// # Errors
    /// `roots` is empty.
    pub fn new(roots: &OriginRoots, alpn: &[&[u8]]) -> Result<Self, CertsError> {
        Self::under(&OriginProfile::default(), roots, alpn)
    }

    /// The same as `profile` has it; `roots` are believed where it names none.
    ///
    /// # Errors
    /// There are no roots.
    pub fn under(
        profile: &OriginProfile,
        roots: &OriginRoots,
        alpn: &[&[u8]],
    ) -> Result<Self, CertsError> {
        let roots = profile.roots().unwrap_or(roots);
        if roots.is_empty() {
            return Err(CertsError::NoRoots);
        }
        let versions = match profile.only_tls13() {
            true => &[&TLS13][..],
            false => DEFAULT_VERSIONS,
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)?
            .with_root_certificates(roots.store.clone());
        let mut config = match profile.client() {
            None => config.with_no_client_auth(),
            Some(client) => {
                let (chain, key) = client.chain_and_key();
                config.with_client_auth_cert(chain, key)?
            }
        };
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config.enable_early_data = false;
        Ok(Self { config: Arc::new(config) })
    }

    /// The configuration for connections of this environment.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}
