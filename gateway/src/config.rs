//! What did the operator ask for?
//!
//! Flags, the operator's file (SPEC 12) and defaults become one [`Settings`] value; nothing after
//! it looks at any of them again. A flag replaces what the file says of the same thing: `--listen`
//! all its explicit listeners (`--socks`, `--transparent`, `--dns` likewise), `--environment` all its environments, `--management` its management
//! listener, `--origin-roots` its roots. Paths in the file are relative to the file, paths in
//! flags to the working directory.

mod bind;
mod block;
mod document;
mod environment;
mod error;
mod listeners;
mod upstream;

use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv6Net};
use outgate_policy::AddressConfig;
use outgate_proxy::Limits;

pub(crate) use self::bind::BindAddress;
pub(crate) use self::document::ConnectRefusals;
use self::document::{AddressesSection, CaSection, Document, HooksSection, Kind, ListenerSection};
pub(crate) use self::environment::{EnvironmentSource, KnownBy};
pub(crate) use self::error::ConfigError;
pub(crate) use self::listeners::{ClientListener, Way};
pub(crate) use self::upstream::UpstreamSettings;
use crate::cli::ServeArgs;
use crate::state_dir;
use crate::surroundings::{KeyText, Surroundings};

/// Everything the operator decides, resolved.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) state_dir: PathBuf,
    pub(crate) listeners: Vec<ClientListener>,
    /// A Unix socket or a loopback address.
    pub(crate) management: BindAddress,
    pub(crate) environments: Vec<EnvironmentSource>,
    /// The operator's own CA; without it one is kept in the state folder.
    pub(crate) ca: Option<CaFiles>,
    /// What the operator opens and shuts beside the fixed address rules.
    pub(crate) addresses: AddressConfig,
    /// Whether environments made through the API are served beside those.
    pub(crate) made_environments: bool,
    /// What opens the store of credentials.
    pub(crate) store_key: StoreKeySource,
    /// PEM files trusted for origins besides the system's roots.
    pub(crate) origin_roots: Vec<PathBuf>,
    /// How everything that leaves goes out.
    pub(crate) upstream: UpstreamSettings,
    pub(crate) connect_refusals: ConnectRefusals,
    pub(crate) audit: AuditFile,
    pub(crate) hooks: HooksSettings,
    pub(crate) limits: Limits,
}

/// What the operator says of tool-call hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HooksSettings {
    /// The operator's own hooks file.
    pub(crate) file: Option<PathBuf>,
    /// Whether what is there at the start stays.
    pub(crate) pin: bool,
    /// Whether commands run on the host where there is no sandbox.
    pub(crate) dangerously_on_host: bool,
}

/// The operator's own CA.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CaFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Where the key of the store of credentials is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoreKeySource {
    /// In the state folder, made at first start.
    StateFolder,
    /// In the operator's own file.
    File(PathBuf),
    /// `$OUTGATE_STORE_KEY`.
    Variable(KeyText),
}

/// Where audit lines go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AuditFile {
    /// Nobody said: stderr, unless the command has a better place.
    Unsaid,
    Stderr,
    Path(PathBuf),
}

impl Settings {
    /// Reads the operator's file, if one is named, and lays the flags over it.
    pub(crate) fn resolve(
        args: &ServeArgs,
        surroundings: &Surroundings,
    ) -> Result<Settings, ConfigError> {
        let (document, folder) = match &args.operator.config {
            Some(file) => (Document::read(file)?, file.parent().unwrap_or(Path::new(""))),
            None => (Document::default(), Path::new("")),
        };
        let from_file = document.state_dir.map(|dir| folder.join(dir));
        let state_dir = state_dir::choose(&args.operator, surroundings, from_file)
            .ok_or(ConfigError::NoStateDir)?;
        let mut listeners = document.listener;
        let management = management(args, &mut listeners, folder, &state_dir)?;
        Ok(Settings {
            management,
            listeners: listeners::resolve(args, listeners, folder)?,
            environments: environment::sources(&args.environments, document.environment, folder)?,
            ca: document.ca.map(|ca| ca.resolve(folder)),
            addresses: document.addresses.resolve(),
            made_environments: true,
            store_key: StoreKeySource::choose(
                args.operator.store_key_file.as_deref(),
                surroundings,
                document.store.key_file.map(|path| folder.join(path)),
            ),
            origin_roots: origin_roots(args, document.origin.roots, folder),
            upstream: document.upstream.resolve()?,
            connect_refusals: document.refusals.connect,
            audit: AuditFile::resolve(document.audit.file, folder),
            hooks: document.hooks.resolve(folder),
            limits: document.limits,
            state_dir,
        })
    }

    /// A knob that weakens safety is seen in the log of every start.
    pub(crate) fn warn_of_dangers(&self) {
        for address in &self.addresses.dangerously_allow {
            tracing::warn!(%address, "[addresses] dangerously_allow opens it to every environment");
        }
        if let UpstreamSettings::Proxy(proxy) = &self.upstream
            && proxy.dangerously_resolve
        {
            tracing::warn!(
                "[upstream] dangerously_resolve_at_proxy: the proxy looks names up, so that an \
                 allowed name may lead to any address it can reach"
            );
        }
        if self.hooks.dangerously_on_host {
            tracing::warn!(
                "[hooks] dangerously_run_hooks_on_host: where there is no sandbox, commands of \
                 hooks run on this machine, as this user"
            );
        }
    }

    /// What has secrets, or what the sandboxed must not change: an audit is worth nothing otherwise.
    /// `operator` is the operator's file.
    pub(crate) fn kept_from_sandboxes(&self, operator: Option<&Path>) -> Vec<PathBuf> {
        let environments = self.environments.iter().flat_map(EnvironmentSource::paths);
        let audit = self.audit.path();
        let ca = self.ca.iter().flat_map(|ca| [&ca.certificate, &ca.key]);
        let store_key = match &self.store_key {
            StoreKeySource::File(path) => Some(path),
            StoreKeySource::StateFolder | StoreKeySource::Variable(_) => None,
        };
        let hooks = self.hooks.file.as_ref();
        let files = environments.chain(ca).chain(audit).chain(store_key).chain(hooks);
        let files = files.chain(&self.origin_roots).cloned();
        files.chain(operator.map(Path::to_owned)).collect()
    }

    /// What `new` has otherwise that only a restart puts in force.
    pub(crate) fn differs_for_a_restart(&self, new: &Settings) -> Vec<&'static str> {
        let differences = [
            ("state_dir", self.state_dir != new.state_dir),
            ("listener", self.listeners != new.listeners || self.management != new.management),
            ("ca", self.ca != new.ca),
            ("store", self.store_key != new.store_key),
            ("origin", self.origin_roots != new.origin_roots),
            ("upstream", self.upstream != new.upstream),
            ("hooks", self.hooks != new.hooks),
            ("refusals", self.connect_refusals != new.connect_refusals),
            ("limits", self.limits != new.limits),
        ];
        differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

fn management(
    args: &ServeArgs,
    listeners: &mut Vec<ListenerSection>,
    folder: &Path,
    state_dir: &Path,
) -> Result<BindAddress, ConfigError> {
    let mut named: Vec<_> =
        listeners.extract_if(.., |section| section.kind == Kind::Management).collect();
    if named.len() > 1 {
        return Err(ConfigError::ManyManagement);
    }
    if named.iter().any(|section| section.environment.is_some()) {
        return Err(ConfigError::ManagementWithEnvironment);
    }
    let address = match (&args.management, named.pop()) {
        (Some(flag), _) => flag.clone(),
        (None, Some(section)) => section.bind.relative_to(folder),
        (None, None) => BindAddress::Unix(state_dir.join("management.sock")),
    };
    // No sandbox may reach it, and its key crosses the wire in the clear.
    if address.is_local() { Ok(address) } else { Err(ConfigError::ManagementNotLocal(address)) }
}

fn origin_roots(args: &ServeArgs, from_file: Vec<PathBuf>, folder: &Path) -> Vec<PathBuf> {
    match &args.origin_roots {
        Some(flag) => vec![flag.clone()],
        None => from_file.iter().map(|path| folder.join(path)).collect(),
    }
}

impl StoreKeySource {
    /// A flag, else the variable, else the operator's file, as with the state folder.
    pub(crate) fn choose(
        flag: Option<&Path>,
        surroundings: &Surroundings,
        from_file: Option<PathBuf>,
    ) -> StoreKeySource {
        match (flag, &surroundings.store_key, from_file) {
            (Some(flag), _, _) => StoreKeySource::File(flag.to_owned()),
            (None, Some(text), _) => StoreKeySource::Variable(text.clone()),
            (None, None, Some(path)) => StoreKeySource::File(path),
            (None, None, None) => StoreKeySource::StateFolder,
        }
    }
}

impl CaSection {
    fn resolve(self, folder: &Path) -> CaFiles {
        CaFiles { certificate: folder.join(self.certificate), key: folder.join(self.key) }
    }
}

impl AddressesSection {
    fn resolve(self) -> AddressConfig {
        AddressConfig {
            allow: self.allow.into_iter().map(IpNet::from).collect(),
            deny: self.deny.into_iter().map(IpNet::from).collect(),
            nat64_prefixes: self.nat64_prefixes.into_iter().map(Ipv6Net::from).collect(),
            sandboxes: Vec::new(),
            dangerously_allow: self.dangerously_allow,
        }
    }
}

impl HooksSection {
    fn resolve(self, folder: &Path) -> HooksSettings {
        HooksSettings {
            file: self.file.map(|file| folder.join(file)),
            pin: self.pin,
            dangerously_on_host: self.dangerously_run_hooks_on_host,
        }
    }
}

impl AuditFile {
    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match self {
            AuditFile::Path(path) => Some(path),
            AuditFile::Unsaid | AuditFile::Stderr => None,
        }
    }

    fn resolve(file: Option<PathBuf>, folder: &Path) -> AuditFile {
        match file {
            None => AuditFile::Unsaid,
            Some(path) if path == Path::new("-") => AuditFile::Stderr,
            Some(path) => AuditFile::Path(folder.join(path)),
        }
    }
}

#[cfg(test)]
mod tests;
