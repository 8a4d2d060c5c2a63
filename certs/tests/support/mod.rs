//! How do two TLS peers meet without a socket?

#![allow(dead_code, reason = "each test target uses its own part of this module")]

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outgate_certs::{Authority, ClientTls, Leaves, OriginRoots, OriginTls, failure_class};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the client would send if it trusted the server.
pub(crate) const SECRET: &[u8] = b"GET / HTTP/1.1\r\nauthorization: secret\r\n\r\n";

/// Two peers after the handshake.
pub(crate) struct Met {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
}

/// A handshake that failed: the client's error, as an IO error like in real use, and what the
/// server could read of the request.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: io::Error,
    pub(crate) received: Vec<u8>,
}

/// Lets the two shake hands; the client has a request ready from the first moment.
pub(crate) fn handshake(
    client: Arc<ClientConfig>,
    name: &str,
    server: Arc<ServerConfig>,
) -> Result<Met, Refused> {
    let name = ServerName::try_from(name.to_owned()).expect("a server name");
    let mut client = ClientConnection::new(client, name).expect("a client");
    let mut server = ServerConnection::new(server).expect("a server");
    client.writer().write_all(SECRET).expect("room for the request");
    let mut received = Vec::new();
    loop {
        let up = pass(|to| client.write_tls(to), |from| server.read_tls(from));
        let server_says = server.process_new_packets().map(drop);
        let _ = server.reader().read_to_end(&mut received);
        let down = pass(|to| server.write_tls(to), |from| client.read_tls(from));
        if let Err(error) = client.process_new_packets() {
            return Err(Refused {
                error: io::Error::new(io::ErrorKind::InvalidData, error),
                received,
            });
        }
        server_says.expect("the server has nothing to complain of before the client has");
        if up + down == 0 {
            assert_eq!(received, SECRET, "a finished handshake delivers the request");
            return Ok(Met { client, server });
        }
    }
}

/// The class under which the client side refuses this origin; it must have received nothing.
pub(crate) fn refused(tls: &OriginTls, name: &str, origin: Arc<ServerConfig>) -> &'static str {
    match handshake(tls.config(), name, origin) {
        Ok(_) => "accepted",
        Err(refused) => {
            assert!(refused.received.is_empty(), "the origin got {:?}", refused.received);
            failure_class(&refused.error)
        }
    }
}

fn pass(
    mut write: impl FnMut(&mut dyn Write) -> io::Result<usize>,
    mut read: impl FnMut(&mut dyn Read) -> io::Result<usize>,
) -> usize {
    let mut wire = Vec::new();
    while write(&mut wire).expect("a vector takes everything") > 0 {}
    let mut rest = wire.as_slice();
    while !rest.is_empty() && read(&mut rest).expect("a peer takes everything") > 0 {}
    wire.len()
}

/// A client that trusts what a PEM text says, and nothing else.
pub(crate) fn client_trusting(pem: &str) -> ClientConfig {
    use rustls_pki_types::pem::PemObject;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a root");
    }
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The gateway's client-facing half.
pub(crate) struct Gateway {
    pub(crate) authority: Arc<Authority>,
    pub(crate) leaves: Leaves,
    pub(crate) tls: ClientTls,
    _state: tempfile::TempDir,
}

impl Gateway {
    pub(crate) fn new() -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let authority = Arc::new(Authority::open_or_create(state.path()).expect("a CA"));
        let leaves = Leaves::new(Arc::clone(&authority), 16).expect("leaves");
        let tls = ClientTls::new(&[b"h2", b"http/1.1"]).expect("a server side");
        Self { authority, leaves, tls, _state: state }
    }

    /// One connection on which we are `name`.
    pub(crate) fn serve(&self, client: &Arc<ClientConfig>, name: &str) -> Met {
        self.serve_through(&self.tls, client, name)
    }

    pub(crate) fn serve_through(
        &self,
        tls: &ClientTls,
        client: &Arc<ClientConfig>,
        name: &str,
    ) -> Met {
        let leaf = self.leaves.leaf(&server_name(name)).expect("a leaf");
        handshake(Arc::clone(client), name, tls.config(leaf)).expect("accepted")
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::new(client_trusting(self.authority.certificate_pem()))
    }
}

pub(crate) fn server_name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).expect("a name")
}

/// A name far beyond the 64 characters of a common name.
pub(crate) fn long_name() -> String {
    let name = format!("{}.example.test", vec!["a".repeat(55); 4].join("."));
    assert!(name.len() > 200);
    name
}

/// A CA of the outside world.
pub(crate) struct World {
    pub(crate) root: CertifiedIssuer<'static, KeyPair>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::named("world root")
    }

    pub(crate) fn named(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        Self { root: CertifiedIssuer::self_signed(ca_params(name), key).expect("a root") }
    }

    /// The gateway's client side, trusting this world.
    pub(crate) fn origin_tls(&self) -> OriginTls {
        origin_tls_trusting(&self.root.pem())
    }

    /// A server with one leaf, changed as the test likes.
    pub(crate) fn origin(&self, change: impl FnOnce(&mut CertificateParams)) -> Arc<ServerConfig> {
        self.origin_behind(&self.root, &[], change)
    }

    /// The same, signed by another issuer, with these certificates after the leaf.
    pub(crate) fn origin_behind(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        rest: &[CertificateDer<'static>],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let mut params = leaf_params("origin.example.test");
        change(&mut params);
        let leaf = params.signed_by(&key, issuer).expect("a leaf");
        let mut chain = vec![leaf.der().clone()];
        chain.extend_from_slice(rest);
        server(chain, key)
    }
}

pub(crate) fn origin_tls_trusting(pem: &str) -> OriginTls {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("roots.pem");
    std::fs::write(&path, pem).expect("a file");
    let mut roots = OriginRoots::none();
    roots.add_pem(&path).expect("roots");
    OriginTls::new(&roots, &[b"http/1.1"]).expect("a client side")
}

pub(crate) fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    set_validity(&mut params, SystemTime::now() - DAY, SystemTime::now() + 100 * DAY);
    params
}

pub(crate) fn leaf_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, SystemTime::now() - DAY, SystemTime::now() + 30 * DAY);
    params
}

pub(crate) fn set_validity(params: &mut CertificateParams, from: SystemTime, to: SystemTime) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + from.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    params.not_after = epoch + to.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
}

/// A server that shows this chain to everybody, whether or not the key fits.
pub(crate) fn server(chain: Vec<CertificateDer<'static>>, key: KeyPair) -> Arc<ServerConfig> {
    let provider = Arc::new(default_provider());
    let key = provider.key_provider.load_private_key(PrivateKeyDer::from(key)).expect("a key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(CertifiedKey::new(chain, key)))));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
