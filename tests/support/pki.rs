//! Which certificates do the origins of a test show?

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A test CA for origins, one that nobody trusts, and an intermediate between.
pub struct Pki {
    root: Authority,
    intermediate: Authority,
    unknown_root: Authority,
    roots: PathBuf,
    unknown_roots: PathBuf,
}

/// What a TLS origin shows: its chain, leaf first, and the leaf's key.
pub struct Identity {
    /// Leaf first, without the root.
    pub chain: Vec<CertificateDer<'static>>,
    /// The leaf's key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// The chain as a file for a server of another make.
    pub fn chain_pem(&self) -> String {
        self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect()
    }

    /// The key, as PKCS #8.
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", self.key.secret_der())
    }

    /// Writes `NAME.pem` and `NAME.key` into `folder`.
    ///
    /// # Panics
    /// When the folder can't be written.
    pub fn write(&self, folder: &Path, name: &str) {
        for (ending, text) in [("pem", self.chain_pem()), ("key", self.key_pem())] {
            fs::write(folder.join(format!("{name}.{ending}")), text)
                .unwrap_or_else(|fault| panic!("cannot write {name}.{ending}: {fault}"));
        }
    }
}

impl Pki {
    /// Makes the authorities and writes `origin-roots.pem`, with the one trusted root, into `folder`.
    ///
    /// # Panics
    /// When the folder can't be written.
    pub fn new(folder: &Path) -> Self {
        let root = authority("outgate test root", None);
        let intermediate = authority("outgate test intermediate", Some(&root));
        let unknown_root = authority("a root that nobody trusts", None);
        let roots = folder.join("origin-roots.pem");
        fs::write(&roots, root.pem())
            .unwrap_or_else(|fault| panic!("cannot write {}: {fault}", roots.display()));
        let unknown_roots = folder.join("unknown-roots.pem");
        fs::write(&unknown_roots, unknown_root.pem())
            .unwrap_or_else(|fault| panic!("cannot write {}: {fault}", unknown_roots.display()));
        Self { root, intermediate, unknown_root, roots, unknown_roots }
    }

    /// The PEM file with the one trusted root.
    pub fn roots(&self) -> &Path {
        &self.roots
    }

    /// The PEM file with the one that nobody trusts.
    pub fn unknown_roots(&self) -> &Path {
        &self.unknown_roots
    }

    /// The trusted root, to verify others with.
    ///
    /// # Panics
    /// Never: it is a root.
    pub fn root_store(&self) -> RootCertStore {
        let mut store = RootCertStore::empty();
        store.add(self.root.der().clone()).expect("it is a root");
        store
    }

    /// A good leaf for `name`, a domain name or an IP address; the knobs spoil it.
    pub fn leaf(&self, name: &str) -> Leaf<'_> {
        Leaf {
            pki: self,
            names: vec![name.to_owned()],
            years: (2020, 2099),
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            common_name_only: false,
            issuer: Issuer::Root,
        }
    }
}

/// A leaf about to be issued. Good unless one of its knobs says otherwise.
pub struct Leaf<'a> {
    pki: &'a Pki,
    names: Vec<String>,
    years: (i32, i32),
    usage: ExtendedKeyUsagePurpose,
    common_name_only: bool,
    issuer: Issuer,
}

#[derive(Clone, Copy)]
enum Issuer {
    Root,
    Intermediate { shown: bool },
    UnknownRoot,
    Itself,
}

impl Leaf<'_> {
    /// Names it holds instead: domain names as they are, wild cards included, or IP addresses.
    #[must_use]
    pub fn names(mut self, names: &[&str]) -> Self {
        self.names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Ran out in 2021.
    #[must_use]
    pub fn expired(mut self) -> Self {
        self.years = (2020, 2021);
        self
    }

    /// Begins in 2090.
    #[must_use]
    pub fn not_yet_valid(mut self) -> Self {
        self.years = (2090, 2099);
        self
    }

    /// Meant for clients: the extended key usage has no `serverAuth`.
    #[must_use]
    pub fn for_clients_only(mut self) -> Self {
        self.usage = ExtendedKeyUsagePurpose::ClientAuth;
        self
    }

    /// The name stands in the subject alone, without a subject alternative name.
    #[must_use]
    pub fn common_name_only(mut self) -> Self {
        self.common_name_only = true;
        self
    }

    /// Issued by a root that is not in `origin-roots.pem`.
    #[must_use]
    pub fn by_unknown_root(mut self) -> Self {
        self.issuer = Issuer::UnknownRoot;
        self
    }

    /// Signed by its own key.
    #[must_use]
    pub fn self_signed(mut self) -> Self {
        self.issuer = Issuer::Itself;
        self
    }

    /// Issued by an intermediate, which the origin shows too.
    #[must_use]
    pub fn by_intermediate(mut self) -> Self {
        self.issuer = Issuer::Intermediate { shown: true };
        self
    }

    /// Issued by an intermediate that the origin doesn't show.
    #[must_use]
    pub fn missing_intermediate(mut self) -> Self {
        self.issuer = Issuer::Intermediate { shown: false };
        self
    }

    /// Issues it, with a key of its own.
    ///
    /// # Panics
    /// When a name can't stand in a certificate at all.
    pub fn issue(self) -> Identity {
        let key = new_key();
        let parameters = self.parameters();
        let signed_by = |authority: &Authority| parameters.signed_by(&key, authority);
        let leaf = match self.issuer {
            Issuer::Root => signed_by(&self.pki.root),
            Issuer::Intermediate { .. } => signed_by(&self.pki.intermediate),
            Issuer::UnknownRoot => signed_by(&self.pki.unknown_root),
            Issuer::Itself => parameters.self_signed(&key),
        };
        let leaf = leaf.expect("a leaf with these parameters can be signed");
        let mut chain = vec![leaf.der().clone()];
        if let Issuer::Intermediate { shown: true } = self.issuer {
            chain.push(self.pki.intermediate.der().clone());
        }
        Identity { chain, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() }
    }

    fn parameters(&self) -> CertificateParams {
        let names = if self.common_name_only { Vec::new() } else { self.names.clone() };
        let mut parameters = CertificateParams::new(names)
            .unwrap_or_else(|fault| panic!("{:?} can't be certified: {fault}", self.names));
        let mut subject = DistinguishedName::new();
        if let Some(name) = self.names.first() {
            subject.push(DnType::CommonName, name.as_str());
        }
        parameters.distinguished_name = subject;
        parameters.not_before = date_time_ymd(self.years.0, 1, 1);
        parameters.not_after = date_time_ymd(self.years.1, 1, 1);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![self.usage.clone()];
        parameters.use_authority_key_identifier_extension = true;
        parameters
    }
}

fn authority(name: &str, issuer: Option<&Authority>) -> Authority {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    match issuer {
        Some(issuer) => CertifiedIssuer::signed_by(parameters, new_key(), issuer),
        None => CertifiedIssuer::self_signed(parameters, new_key()),
    }
    .expect("an authority with these parameters can be signed")
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    let text: Vec<char> = STANDARD.encode(der).chars().collect();
    let lines: String = text.chunks(64).flat_map(|line| line.iter().chain(&['\n'])).collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("an ECDSA key can be made")
}
