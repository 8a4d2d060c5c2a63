//! How does TLS look to the clients of one environment?

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{NoServerSessionStorage, ResolvesServerCertUsingSni};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::CertsError;
use crate::provider::provider;

/// The TLS server that the clients of one environment meet. Its ticket keys are its own, so a
/// session of one environment can't be resumed in another.
pub struct ClientTls {
    base: ServerConfig,
}

impl ClientTls {
    /// TLS 1.2 and 1.3, these ALPN protocols (most preferred first), no client certificates, no
    /// 0-RTT.
    ///
    /// # Errors
    /// The crypto library could not make ticket keys.
    pub fn new(alpn: &[&[u8]]) -> Result<Self, CertsError> {
        let mut base = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            // Knows no name, so it refuses all: `config` puts a leaf in its place.
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        base.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        // Sessions live in tickets that the clients keep: any number of them costs us nothing.
        base.ticketer = Ticketer::new()?;
        base.session_storage = Arc::new(NoServerSessionStorage {});
        // A client needs one to come back; each costs an encryption and bytes of every handshake.
        base.send_tls13_tickets = 1;
        base.ignore_client_order = true;
        base.max_early_data_size = 0;
        Ok(Self { base })
    }

    /// The configuration for one connection, on which we are whom `leaf` names.
    ///
    /// The leaf is shown whatever the SNI says: who we are was judged before. Cheap: no keys are
    /// made, tickets are shared with all other connections of the environment.
    pub fn config(&self, leaf: Arc<CertifiedKey>) -> Arc<ServerConfig> {
        let mut config = self.base.clone();
        config.cert_resolver = Arc::new(SingleCertAndKey::from(leaf));
        Arc::new(config)
    }
}
