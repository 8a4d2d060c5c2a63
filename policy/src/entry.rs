//! What does one entry of the allowlist say, compiled?

use http::{HeaderName, HeaderValue};
use smallvec::SmallVec;

use crate::id::CredentialId;
use crate::path::{ComparedPath, PathGlob};
use crate::pattern::HostPattern;

/// What may be spoken over a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP, plain or over TLS.
    Http,
    /// Any bytes.
    Tcp,
}

/// Who ends the client's TLS.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TlsMode {
    /// The gateway, so that requests can be judged and injected into.
    Intercept,
    /// The origin.
    Passthrough,
}

/// Something that may carry a credential of the client's own, to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Strip {
    /// A request header.
    Header(HeaderName),
    /// A query parameter, by its decoded name.
    Query(String),
}

/// How the origin's TLS differs from the default. Files are named, and read elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginOptions {
    /// The only roots that are believed, instead of everybody's.
    pub roots: Option<String>,
    /// What an origin that asks is shown, and its key.
    pub client: Option<ClientFiles>,
    /// The oldest TLS that is spoken.
    pub min_tls: MinTls,
}

/// The two files of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate, and what signed it.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// The oldest TLS that is spoken with an origin.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum MinTls {
    /// As with every origin.
    #[default]
    Tls12,
    /// Nothing older than that.
    Tls13,
}

impl OriginOptions {
    /// Every file that is named.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let client = self.client.iter().flat_map(|files| [&files.certificate, &files.key]);
        self.roots.iter().chain(client).map(String::as_str)
    }
}

/// One compiled entry. Its index in the policy is its index in the file.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) pattern: HostPattern,
    pub(crate) ports: Ports,
    /// Empty: every method.
    pub(crate) methods: Vec<String>,
    /// Empty: every path.
    pub(crate) paths: Vec<PathGlob>,
    pub(crate) deny: bool,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) credential: Option<CredentialId>,
    pub(crate) allow_plaintext: bool,
    pub(crate) protocol: Protocol,
    pub(crate) tls: TlsMode,
    pub(crate) allow_ech: bool,
    pub(crate) scrub: bool,
    pub(crate) drop_set_cookie: bool,
    pub(crate) websocket_text: bool,
    pub(crate) strip: Vec<Strip>,
    pub(crate) origin: Option<Box<OriginOptions>>,
}

/// The ports of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// An entry that denies without naming ports: what is denied on 443 must not be open on 8443.
    Every,
    /// Those, 80 and 443 unless the file names others.
    Listed(SmallVec<[u16; 4]>),
}

impl Entry {
    /// An entry of nothing but a pattern.
    pub(crate) fn plain(pattern: HostPattern) -> Entry {
        Entry {
            pattern,
            ports: Ports::web(),
            methods: Vec::new(),
            paths: Vec::new(),
            deny: false,
            headers: Vec::new(),
            credential: None,
            allow_plaintext: false,
            protocol: Protocol::Http,
            tls: TlsMode::Intercept,
            allow_ech: false,
            scrub: false,
            drop_set_cookie: false,
            websocket_text: false,
            strip: Vec::new(),
            origin: None,
        }
    }

    pub(crate) fn matches_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|known| known == method)
    }

    /// `path` is `None` only where no entry at hand has `paths`.
    pub(crate) fn matches_path(&self, path: Option<&ComparedPath<'_>>) -> bool {
        self.paths.is_empty()
            || path.is_some_and(|path| self.paths.iter().any(|glob| glob.matches(path)))
    }

    /// Whether it speaks of every request to its host and ports.
    pub(crate) fn is_whole(&self) -> bool {
        self.methods.is_empty() && self.paths.is_empty()
    }
}

impl Ports {
    /// The default.
    pub(crate) fn web() -> Ports {
        Ports::Listed(SmallVec::from_slice(&[80, 443]))
    }

    pub(crate) fn contains(&self, port: u16) -> bool {
        match self {
            Ports::Every => true,
            Ports::Listed(list) => list.contains(&port),
        }
    }

    /// Those that are named.
    pub(crate) fn listed(&self) -> &[u16] {
        match self {
            Ports::Every => &[],
            Ports::Listed(list) => list,
        }
    }
}
