//! Where do clients come in, by flag, by file or by default?

use std::path::Path;

use super::document::{Kind, ListenerSection};
use super::{BindAddress, ConfigError};
use crate::cli::ServeArgs;

/// Where the explicit proxy listens when nobody names any place for clients.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// One place where clients come in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientListener {
    pub(crate) way: Way,
    pub(crate) bind: BindAddress,
    /// Whoever comes in here is this environment.
    pub(crate) environment: Option<String>,
    /// Given by a flag, or the default: SPEC 2 gives it to the only environment there is.
    pub(crate) implied: bool,
}

/// What clients do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Explicit,
    Socks,
    Transparent,
    /// They ask for names.
    Dns,
}

/// Those of the flags, each in the place of all of its kind in the file, and those of the file.
pub(super) fn resolve(
    args: &ServeArgs,
    sections: Vec<ListenerSection>,
    folder: &Path,
) -> Result<Vec<ClientListener>, ConfigError> {
    let flags = [
        (Way::Explicit, &args.listen),
        (Way::Socks, &args.socks),
        (Way::Transparent, &args.transparent),
        (Way::Dns, &args.dns),
    ];
    let mut listeners = Vec::new();
    for (way, flag) in flags {
        match flag {
            Some(bind) => listeners.push(implied(way, bind.clone())?),
            None => {
                for section in sections.iter().filter(|section| section.way() == Some(way)) {
                    listeners.push(section.resolve(way, folder)?);
                }
            }
        }
    }
    if listeners.is_empty() {
        listeners.push(implied(Way::Explicit, DEFAULT_LISTEN.parse()?)?);
    }
    Ok(listeners)
}

fn implied(way: Way, bind: BindAddress) -> Result<ClientListener, ConfigError> {
    Ok(ClientListener { way, bind: way.fitting(bind)?, environment: None, implied: true })
}

impl Way {
    /// The name in the operator's file and of the flag.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Explicit => "explicit",
            Way::Socks => "socks",
            Way::Transparent => "transparent",
            Way::Dns => "dns",
        }
    }

    /// No packet is led to a Unix socket, and no resolver asks at one.
    fn fitting(self, bind: BindAddress) -> Result<BindAddress, ConfigError> {
        match (self, &bind) {
            (Way::Transparent | Way::Dns, BindAddress::Unix(_)) => {
                Err(ConfigError::NotOverUnix { way: self.name(), bind })
            }
            _ => Ok(bind),
        }
    }
}

impl ListenerSection {
    fn way(&self) -> Option<Way> {
        match self.kind {
            Kind::Explicit => Some(Way::Explicit),
            Kind::Socks => Some(Way::Socks),
            Kind::Transparent => Some(Way::Transparent),
            Kind::Dns => Some(Way::Dns),
            Kind::Management => None,
        }
    }

    fn resolve(&self, way: Way, folder: &Path) -> Result<ClientListener, ConfigError> {
        Ok(ClientListener {
            way,
            bind: way.fitting(self.bind.clone().relative_to(folder))?,
            environment: self.environment.clone(),
            implied: false,
        })
    }
}
