//! What does an origin want of TLS beyond the usual?

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS12;
use rustls::{DEFAULT_VERSIONS, NamedGroup, RootCertStore, ServerConfig};

use crate::pki::Identity;

/// What an origin wants of TLS beyond the usual.
#[derive(Clone, Default)]
pub(super) struct Demands {
    /// A certificate of its client, by one of these.
    pub(super) client: Option<RootCertStore>,
    pub(super) only_tls12: bool,
    /// The one key exchange that it knows.
    pub(super) group: Option<NamedGroup>,
}

impl Demands {
    pub(super) fn config(self, identity: Identity, alpn: Vec<Vec<u8>>) -> ServerConfig {
        let mut provider = default_provider();
        if let Some(group) = self.group {
            provider.kx_groups.retain(|known| known.name() == group);
        }
        let provider = Arc::new(provider);
        let versions = if self.only_tls12 { &[&TLS12][..] } else { DEFAULT_VERSIONS };
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("the provider knows TLS 1.2 and 1.3");
        let config = match self.client {
            None => config.with_no_client_auth(),
            Some(roots) => config.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .expect("there are roots"),
            ),
        };
        let mut config = config
            .with_single_cert(identity.chain, identity.key)
            .expect("the key belongs to the leaf");
        config.alpn_protocols = alpn;
        config
    }
}
