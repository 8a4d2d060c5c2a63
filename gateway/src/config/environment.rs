//! Which environment files does the operator name, and how are their clients known?

use std::ffi::CString;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;

use super::ConfigError;
use super::document::EnvironmentSection;

/// The longest name that Linux gives an interface (`IFNAMSIZ`).
const INTERFACE_BYTES: usize = 15;

/// Where environment files are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EnvironmentSource {
    /// One file, with the ways to know its clients.
    File { path: PathBuf, known_by: KnownBy },
    /// Every `*.json` of a folder.
    Directory(PathBuf),
}

impl EnvironmentSource {
    /// The files and the folder that it names, but for that of its hooks.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        match self {
            EnvironmentSource::File { path, known_by } => {
                [Some(path), known_by.token_file.as_ref()]
            }
            EnvironmentSource::Directory(folder) => [Some(folder), None],
        }
        .into_iter()
        .flatten()
    }
}

/// How the clients of one environment are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KnownBy {
    pub(crate) source_addresses: Vec<IpNet>,
    pub(crate) interface: Option<CString>,
    pub(crate) token_file: Option<PathBuf>,
    /// Where the number of a process is written whose namespaces its hooks' commands run in.
    pub(crate) namespaces_of: Option<PathBuf>,
}

/// The name of a network interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct InterfaceName(CString);

/// Those of the flags, else those of the operator's file.
pub(super) fn sources(
    flags: &[PathBuf],
    sections: Vec<EnvironmentSection>,
    folder: &Path,
) -> Result<Vec<EnvironmentSource>, ConfigError> {
    if flags.is_empty() {
        let sections = sections.into_iter().map(|section| section.resolve(folder));
        let sources = sections.collect::<Result<Vec<_>, _>>()?;
        distinct_clients(&sources)?;
        return Ok(sources);
    }
    let named = |path: &PathBuf| {
        let (path, known_by) = (path.clone(), KnownBy::default());
        EnvironmentSource::File { path, known_by }
    };
    Ok(flags.iter().map(named).collect())
}

impl EnvironmentSection {
    fn resolve(self, folder: &Path) -> Result<EnvironmentSource, ConfigError> {
        let known_by = KnownBy {
            source_addresses: self.source_addresses.into_iter().map(IpNet::from).collect(),
            interface: self.interface.map(|InterfaceName(name)| name),
            token_file: self.token_file.map(|path| folder.join(path)),
            namespaces_of: self.namespaces_of.map(|path| folder.join(path)),
        };
        match (self.file, self.directory) {
            (Some(file), None) => Ok(EnvironmentSource::File { path: folder.join(file), known_by }),
            // One of them can't be the way to know the clients of many environments.
            (None, Some(_)) if known_by != KnownBy::default() => {
                Err(ConfigError::DirectoryWithClients)
            }
            (None, Some(directory)) => Ok(EnvironmentSource::Directory(folder.join(directory))),
            _ => Err(ConfigError::FileOrDirectory),
        }
    }
}

impl KnownBy {
    /// Every pair that tells a client, as a person reads it.
    fn pairs(&self) -> Vec<String> {
        let interface = self.interface.as_ref().map(|name| name.to_string_lossy());
        match (&interface, self.source_addresses.as_slice()) {
            (None, blocks) => {
                blocks.iter().map(|block| format!("source_addresses {block}")).collect()
            }
            (Some(name), []) => vec![format!("interface {name}")],
            (Some(name), blocks) => {
                blocks.iter().map(|block| format!("interface {name} with {block}")).collect()
            }
        }
    }
}

/// A narrower block inside a wider one is clear, the same twice is not.
fn distinct_clients(sources: &[EnvironmentSource]) -> Result<(), ConfigError> {
    let mut seen: Vec<(String, &Path)> = Vec::new();
    for source in sources {
        let EnvironmentSource::File { path, known_by } = source else { continue };
        for pair in known_by.pairs() {
            if let Some((_, first)) =
                seen.iter().find(|(known, first)| *known == pair && first != path)
            {
                let (first, second) = (first.to_path_buf(), path.clone());
                return Err(ConfigError::SharedClients { pair, first, second });
            }
            seen.push((pair, path));
        }
    }
    Ok(())
}

impl TryFrom<String> for InterfaceName {
    type Error = ConfigError;

    /// What Linux takes as a name (`dev_valid_name`).
    fn try_from(text: String) -> Result<Self, ConfigError> {
        let length = 1..=INTERFACE_BYTES;
        let wrong = |byte: u8| byte == b'/' || byte == b':' || byte.is_ascii_whitespace();
        if !length.contains(&text.len()) || text == "." || text == ".." || text.bytes().any(wrong) {
            return Err(ConfigError::Interface(text));
        }
        CString::new(text.as_str()).map(InterfaceName).map_err(|_| ConfigError::Interface(text))
    }
}
