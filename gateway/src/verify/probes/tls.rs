//! How does the prober speak HTTPS to whoever takes the connection?

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::streams::SOON;

/// The gateway writes down a name only when it knows it, and a busy machine may take its time.
const ANSWER: Duration = Duration::from_secs(10);

/// What came of a connection.
pub(super) enum Answer {
    /// Nobody took it.
    Refused,
    /// Somebody did; the status, where there was one.
    Taken(Option<u16>),
}

/// Connects to `door` for `sni`, and asks it for `path` of `host`.
pub(super) fn get(door: SocketAddr, sni: &str, host: &str, path: &str) -> Answer {
    match TcpStream::connect_timeout(&door, SOON) {
        Ok(stream) => Answer::Taken(ask(stream, sni, host, path).ok().flatten()),
        Err(_) => Answer::Refused,
    }
}

fn ask(stream: TcpStream, sni: &str, host: &str, path: &str) -> io::Result<Option<u16>> {
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let name = ServerName::try_from(sni.to_owned()).map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config()?), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(client, stream);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(status(&head))
}

/// `HTTP/1.1 403`.
fn status(head: &[u8; 12]) -> Option<u16> {
    std::str::from_utf8(head).ok()?.strip_prefix("HTTP/1.1 ")?.parse().ok()
}

fn config() -> io::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let verifier = Arc::new(Anyone(provider));
    Ok(versions.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Who answers is what is to be found out, so every certificate is as good as another.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
