//! What does a client say first in TLS, and how may a test bend it?

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::{EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
use rustls::crypto::hpke::Hpke;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;

/// What a client wants of TLS.
#[derive(Clone, Debug)]
pub struct Hello {
    name: String,
    with_server_name: bool,
    alpn: Vec<Vec<u8>>,
    tls12_only: bool,
    ech_grease: bool,
    remembered: Option<Arc<OnceLock<Arc<ClientConfig>>>>,
}

/// A handshake whose first bytes are in the hands of the test.
pub struct PendingTls {
    /// The ClientHello in its record, to be sent in whatever pieces.
    pub client_hello: Vec<u8>,
    pub(super) connection: ClientConnection,
}

impl Hello {
    /// A client that names this server and accepts a certificate for it alone.
    pub fn to(name: &str) -> Self {
        let alpn = vec![b"http/1.1".to_vec()];
        Self {
            name: name.to_owned(),
            with_server_name: true,
            alpn,
            tls12_only: false,
            ech_grease: false,
            remembered: None,
        }
    }

    /// Names no server. The certificate must still be for it.
    #[must_use]
    pub fn without_server_name(mut self) -> Self {
        self.with_server_name = false;
        self
    }

    /// Offers these protocols instead of `http/1.1`; none at all with an empty list.
    #[must_use]
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        self.alpn = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        self
    }

    /// Speaks TLS 1.2 and nothing newer.
    #[must_use]
    pub fn tls12(mut self) -> Self {
        self.tls12_only = true;
        self
    }

    /// Pretends to hide its name, as browsers do towards any server (RFC 9849 6.2).
    #[must_use]
    pub fn ech_grease(mut self) -> Self {
        self.ech_grease = true;
        self
    }

    /// Remembers the sessions of all connections that are made with this value and its clones.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        self.remembered = Some(Arc::default());
        self
    }

    /// The handshake, begun, of a client that trusts the roots in this PEM file alone.
    ///
    /// # Panics
    /// When the file has no certificate, or the name can't be one of a server.
    pub fn begin(&self, roots: &Path) -> PendingTls {
        let name = ServerName::try_from(self.name.clone())
            .unwrap_or_else(|_| panic!("{} can't be the name of a server", self.name));
        let mut connection = ClientConnection::new(self.shared_config(roots), name)
            .expect("this configuration makes connections");
        let mut client_hello = Vec::new();
        connection.write_tls(&mut client_hello).expect("a Vec takes all");
        PendingTls { client_hello, connection }
    }

    fn shared_config(&self, roots: &Path) -> Arc<ClientConfig> {
        let new = || Arc::new(self.config(roots));
        self.remembered.as_ref().map_or_else(new, |shared| Arc::clone(shared.get_or_init(new)))
    }

    pub(crate) fn config(&self, roots: &Path) -> ClientConfig {
        let mut store = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(roots)
            .unwrap_or_else(|fault| panic!("cannot read {}: {fault}", roots.display()));
        for certificate in certificates {
            let certificate = certificate.expect("the file is PEM");
            store.add(certificate).expect("a root is a certificate");
        }
        let versions = if self.tls12_only { vec![&TLS12] } else { vec![&TLS13, &TLS12] };
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = if self.ech_grease {
            builder.with_ech(grease())
        } else {
            builder.with_protocol_versions(&versions)
        };
        let mut config = builder
            .expect("the provider knows TLS 1.2 and 1.3")
            .with_root_certificates(store)
            .with_no_client_auth();
        config.alpn_protocols = self.alpn.clone();
        config.enable_sni = self.with_server_name;
        config
    }
}

/// A ClientHello taken apart (RFC 8446 4.1.2), to be put together otherwise. Only one whose parts
/// are unchanged, however it is cut into records, leads to a handshake.
#[derive(Clone, Debug)]
pub struct ClientHello {
    before_extensions: Vec<u8>,
    extensions: Vec<(u16, Vec<u8>)>,
}

impl ClientHello {
    /// Takes apart what [`Hello::begin`] made.
    ///
    /// # Panics
    /// When these are not the records of a ClientHello.
    pub fn parse(records: &[u8]) -> Self {
        Self::read(records).expect("these are the records of a ClientHello")
    }

    /// The payload of an extension.
    pub fn extension(&self, kind: u16) -> Option<&[u8]> {
        let (_, payload) = self.extensions.iter().find(|(known, _)| *known == kind)?;
        Some(payload)
    }

    /// With this extension, in the place of one of the same kind or in front of all.
    #[must_use]
    pub fn with_extension(mut self, kind: u16, payload: &[u8]) -> Self {
        match self.extensions.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, old)) => *old = payload.to_vec(),
            None => self.extensions.insert(0, (kind, payload.to_vec())),
        }
        self
    }

    /// Without this extension.
    #[must_use]
    pub fn without_extension(mut self, kind: u16) -> Self {
        self.extensions.retain(|(known, _)| *known != kind);
        self
    }

    /// With exactly these host names as its server names, which may be any bytes.
    #[must_use]
    pub fn with_server_names(self, names: &[&[u8]]) -> Self {
        // RFC 6066 3: a list of entries, each a type (0, host_name) and a name.
        let entries: Vec<u8> =
            names.iter().flat_map(|name| [&[0], prefixed(name).as_slice()].concat()).collect();
        self.with_extension(SERVER_NAME, &prefixed(&entries))
    }

    /// In one record.
    pub fn to_record(&self) -> Vec<u8> {
        record(&self.message())
    }

    /// In records of these lengths, which may be 0, and one more for what is left.
    pub fn to_records(&self, lengths: &[usize]) -> Vec<u8> {
        let message = self.message();
        let mut rest = message.as_slice();
        let mut records = Vec::new();
        for length in lengths {
            let (piece, after) = rest.split_at(rest.len().min(*length));
            records.extend(record(piece));
            rest = after;
        }
        if !rest.is_empty() {
            records.extend(record(rest));
        }
        records
    }

    fn message(&self) -> Vec<u8> {
        let encode = |(kind, payload): &(u16, Vec<u8>)| {
            [&kind.to_be_bytes(), prefixed(payload).as_slice()].concat()
        };
        let extensions: Vec<u8> = self.extensions.iter().flat_map(encode).collect();
        let body = [self.before_extensions.as_slice(), &prefixed(&extensions)].concat();
        let length = u32::try_from(body.len()).expect("a ClientHello is short").to_be_bytes();
        [&[CLIENT_HELLO], &length[1..], &body].concat()
    }

    fn read(records: &[u8]) -> Option<Self> {
        let mut message = Vec::new();
        let mut rest = records;
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes(rest.get(3..5)?.try_into().ok()?));
            message.extend_from_slice(rest.get(5..5 + length)?);
            rest = &rest[5 + length..];
        }
        let body = message.get(4..)?;
        // Version and random, then session id, cipher suites and compression methods.
        let mut at = 34;
        at += 1 + usize::from(*body.get(at)?);
        at += 2 + usize::from(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
        at += 1 + usize::from(*body.get(at)?);
        let mut rest = body.get(at + 2..)?;
        let mut extensions = Vec::new();
        while !rest.is_empty() {
            let kind = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
            let length = usize::from(u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?));
            extensions.push((kind, rest.get(4..4 + length)?.to_vec()));
            rest = &rest[4 + length..];
        }
        Some(Self { before_extensions: body.get(..at)?.to_vec(), extensions })
    }
}

fn grease() -> EchMode {
    let suite = DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair().expect("an HPKE key can be made");
    EchGreaseConfig::new(suite, key).into()
}

/// Bytes behind their length in two bytes.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("parts of a ClientHello are short");
    [&length.to_be_bytes(), bytes].concat()
}

fn record(piece: &[u8]) -> Vec<u8> {
    [&[HANDSHAKE_RECORD, 3, 1], prefixed(piece).as_slice()].concat()
}
