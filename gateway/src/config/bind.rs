//! Where does a listener listen?

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// `host:port`, `[v6]:port` or `unix:PATH`. The host is a literal: what a name means may change.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum BindAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl BindAddress {
    /// Whether only this machine can reach it.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            BindAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
            BindAddress::Unix(_) => true,
        }
    }

    /// The TCP address, if it is one.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self {
            BindAddress::Tcp(address) => Some(*address),
            BindAddress::Unix(_) => None,
        }
    }

    /// The socket's path, if it is one.
    pub(crate) fn unix(&self) -> Option<PathBuf> {
        match self {
            BindAddress::Tcp(_) => None,
            BindAddress::Unix(path) => Some(path.clone()),
        }
    }

    /// The same for a reader that is elsewhere.
    pub(crate) fn absolute(&self) -> BindAddress {
        match self {
            BindAddress::Unix(path) => {
                BindAddress::Unix(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
            }
            tcp @ BindAddress::Tcp(_) => tcp.clone(),
        }
    }

    pub(super) fn relative_to(self, folder: &Path) -> BindAddress {
        match self {
            BindAddress::Unix(path) => BindAddress::Unix(folder.join(path)),
            tcp @ BindAddress::Tcp(_) => tcp,
        }
    }
}

impl FromStr for BindAddress {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.strip_prefix("unix:") {
            Some("") => Err(ConfigError::Bind(text.to_owned())),
            Some(path) => Ok(BindAddress::Unix(path.into())),
            None => {
                text.parse().map(BindAddress::Tcp).map_err(|_| ConfigError::Bind(text.to_owned()))
            }
        }
    }
}

impl TryFrom<String> for BindAddress {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindAddress::Tcp(address) => address.fmt(f),
            BindAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
