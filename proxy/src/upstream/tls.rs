//! Is the origin who the judged name says it is?
//!
//! Until its certificate is verified for that name, not one byte of a request is sent.

use std::io;
use std::time::Duration;

use outgate_certs::OriginTls;
use outgate_policy::Host;
use rustls_pki_types::{DnsName, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::pool::Offer;
use super::profile::OriginClient;
use crate::limits::Limits;

/// Why there is no verified TLS session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("no handshake within {0:?}")]
    Timeout(Duration),
    #[error("{host} can't be the name of a certificate")]
    Name { host: Host },
    #[error("{class}: {error}")]
    Refused { class: &'static str, error: io::Error },
}

impl TlsError {
    /// Whether the origin speaks none of the protocols that it was offered (RFC 7301 §3.2).
    pub(super) fn is_other_protocol(&self) -> bool {
        let TlsError::Refused { error, .. } = self else { return false };
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let alert = rustls::AlertDescription::NoApplicationProtocol;
        matches!(cause, Some(rustls::Error::AlertReceived(received)) if *received == alert)
    }
}

/// A verified session with `host` over `stream`.
pub(super) async fn secure<IO: AsyncRead + AsyncWrite + Unpin>(
    stream: IO,
    host: &Host,
    profile: &OriginClient,
    offer: Offer,
    limits: &Limits,
) -> Result<TlsStream<IO>, TlsError> {
    handshake(stream, host, profile.tls(offer), limits).await
}

/// The same as whatever client `tls` is.
pub(crate) async fn handshake<IO: AsyncRead + AsyncWrite + Unpin>(
    stream: IO,
    host: &Host,
    tls: &OriginTls,
    limits: &Limits,
) -> Result<TlsStream<IO>, TlsError> {
    let name = server_name(host).ok_or_else(|| TlsError::Name { host: host.clone() })?;
    let handshake = TlsConnector::from(tls.config()).connect(name, stream);
    match tokio::time::timeout(limits.origin_handshake, handshake).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(error)) => {
            Err(TlsError::Refused { class: outgate_certs::failure_class(&error), error })
        }
        Err(_) => Err(TlsError::Timeout(limits.origin_handshake)),
    }
}

/// The name in the form that certificates and SNI have it.
pub(crate) fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Address(address) => Some(ServerName::IpAddress((*address).into())),
        Host::Name(name) => {
            DnsName::try_from(name.as_str().to_owned()).ok().map(ServerName::DnsName)
        }
    }
}
