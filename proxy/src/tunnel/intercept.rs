//! How does the client's TLS end here?
//!
//! The name is the tunnel's; SNI is the client's claim and must agree. Only then is a certificate
//! issued, and nothing is dialled before a request inside is permitted.

use std::io;

use outgate_certs::CertsError;
use outgate_policy::{Host, Reason};
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use super::Tunnel;
use super::alert::Alert;
use crate::gateway::Gateway;
use crate::upstream::server_name;

/// Why there is no session with the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum InterceptError {
    #[error("the client's TLS handshake failed: {0}")]
    Handshake(io::Error),
    #[error("the client's SNI says {sni}, the tunnel is to {host}")]
    NameMismatch { sni: String, host: Host },
    #[error("{0} can't be the name of a certificate")]
    Name(Host),
    #[error("no certificate could be issued: {0}")]
    Issue(#[from] CertsError),
    #[error("too many refused names in this second")]
    Budget,
}

/// A TLS session with the client, as the tunnel's destination.
pub(super) async fn intercept<IO>(
    gateway: &Gateway,
    tunnel: &mut Tunnel,
    only_refusals: bool,
    io: IO,
) -> Result<TlsStream<IO>, InterceptError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let hello = LazyConfigAcceptor::new(Acceptor::default(), io);
    let mut hello = hello.await.map_err(InterceptError::Handshake)?;
    let host = &tunnel.destination.host;
    if let Err(error) = check_name(&hello, host) {
        tunnel.record.refused(Reason::NameMismatch);
        return Err(refuse(&mut hello.io, Alert::UnrecognizedName, error).await);
    }
    if only_refusals && !tunnel.environment.refused_handshakes.spend() {
        return Err(refuse(&mut hello.io, Alert::AccessDenied, InterceptError::Budget).await);
    }
    let name = server_name(host).ok_or_else(|| InterceptError::Name(host.clone()))?;
    let leaf = gateway.leaves().leaf(&name)?;
    let config = tunnel.environment.client_tls.config(leaf);
    hello.into_stream(config).await.map_err(InterceptError::Handshake)
}

/// No SNI is no claim: clients that connect to an address send none.
fn check_name<IO>(hello: &StartHandshake<IO>, host: &Host) -> Result<(), InterceptError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    match hello.client_hello().server_name() {
        None => Ok(()),
        Some(sni) if Host::from_wire(sni.as_bytes()).as_ref() == Ok(host) => Ok(()),
        Some(sni) => Err(InterceptError::NameMismatch { sni: sni.to_owned(), host: host.clone() }),
    }
}

async fn refuse<IO: AsyncWrite + Unpin>(
    io: &mut IO,
    alert: Alert,
    error: InterceptError,
) -> InterceptError {
    alert.send(io).await;
    // The client is told if it still listens; the error is the same.
    drop(io.shutdown().await);
    error
}
