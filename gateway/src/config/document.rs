//! What may stand in the operator's file?
//!
//! Every name of SPEC 12 and no other, checked as it is read, so that an error has its line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use outgate_proxy::Limits;
use serde::Deserialize;

use super::block::{Block, Nat64Prefix};
use super::environment::InterfaceName;
use super::upstream::{NoProxy, ProxyUrl, without_userinfo};
use super::{BindAddress, ConfigError};

/// Thousands of environments have a line each.
const LONGEST: usize = 16 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Document {
    pub(super) state_dir: Option<PathBuf>,
    pub(super) listener: Vec<ListenerSection>,
    pub(super) environment: Vec<EnvironmentSection>,
    pub(super) ca: Option<CaSection>,
    pub(super) addresses: AddressesSection,
    pub(super) origin: OriginSection,
    pub(super) upstream: UpstreamSection,
    pub(super) refusals: RefusalsSection,
    pub(super) hooks: HooksSection,
    pub(super) store: StoreSection,
    pub(super) audit: AuditSection,
    pub(super) limits: Limits,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListenerSection {
    pub(super) kind: Kind,
    pub(super) bind: BindAddress,
    pub(super) environment: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Explicit,
    Management,
    Socks,
    Transparent,
    Dns,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EnvironmentSection {
    pub(super) file: Option<PathBuf>,
    pub(super) directory: Option<PathBuf>,
    pub(super) source_addresses: Vec<Block>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) interface: Option<InterfaceName>,
    pub(super) namespaces_of: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaSection {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AddressesSection {
    pub(super) allow: Vec<Block>,
    pub(super) deny: Vec<Block>,
    pub(super) nat64_prefixes: Vec<Nat64Prefix>,
    pub(super) dangerously_allow: Vec<SocketAddr>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OriginSection {
    pub(super) roots: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UpstreamSection {
    pub(super) proxy: Option<ProxyUrl>,
    pub(super) no_proxy: Vec<NoProxy>,
    pub(super) dangerously_resolve_at_proxy: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RefusalsSection {
    pub(super) connect: ConnectRefusals,
}

/// Where a refused CONNECT is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectRefusals {
    /// As the answer to CONNECT.
    #[default]
    Status,
    /// Inside TLS, where clients show the body.
    Inside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HooksSection {
    pub(super) file: Option<PathBuf>,
    pub(super) pin: bool,
    pub(super) dangerously_run_hooks_on_host: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreSection {
    pub(super) key_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditSection {
    pub(super) file: Option<PathBuf>,
}

impl Document {
    /// Reads and checks the file.
    pub(super) fn read(file: &Path) -> Result<Document, ConfigError> {
        let text = outgate_files::read_text(file, LONGEST)
            .map_err(|error| ConfigError::Read { file: file.to_owned(), error })?;
        let problem = |at: usize, message: String| ConfigError::Line {
            file: file.to_owned(),
            line: line_of(&text, at),
            message,
        };
        toml::from_str(&text).map_err(|error| {
            // The library's message is one sentence; what it says of the place is ours to say.
            problem(
                error.span().map_or(0, |span| span.start),
                without_userinfo(&error.message().replace('\n', " ")),
            )
        })
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
