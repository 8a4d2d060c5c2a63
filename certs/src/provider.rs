//! Which cryptography is used, and in which order of preference?

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{CipherSuite, SupportedCipherSuite};

/// aws-lc-rs with AES-128 before AES-256, as browsers have it: its transcript hash is SHA-256,
/// which processors compute, while SHA-384 in software costs a tenth of a handshake.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.cipher_suites.sort_by_key(|suite| !is_aes_128(suite));
    Arc::new(provider)
}

fn is_aes_128(suite: &SupportedCipherSuite) -> bool {
    matches!(
        suite.suite(),
        CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_no_suite_out() {
        let all = provider().cipher_suites.clone();
        assert_eq!(all.len(), default_provider().cipher_suites.len());
        assert_eq!(all[0].suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
    }
}
