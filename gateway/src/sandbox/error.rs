//! Why is there no sandbox?

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::channel::ChannelError;
use super::filesystem::FilesystemError;
use super::message::FromInside;
use super::namespace::NamespaceError;
use super::network::NetworkError;
use super::preparation::PreparationError;

/// As the gateway's process has it.
#[derive(Debug, Error)]
pub(crate) enum SandboxError {
    #[error("the launcher of the sandbox can't be started: {0}")]
    Spawn(io::Error),
    #[error("the sandbox can't be reached: {0}")]
    Channel(#[from] ChannelError),
    #[error("no sandbox, so nothing was run: {0}")]
    Inside(String),
    #[error("the sandbox says {0}, which has no place there")]
    Unexpected(String),
    #[error("the sandbox ended by itself: its first process was killed from outside")]
    Vanished,
}

/// As the processes of the sandbox have it; it crosses to the gateway's as text.
#[derive(Debug, Error)]
pub(super) enum InsideError {
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error("inherited descriptors can't be closed ({0}): Linux 5.9 or later is needed")]
    Descriptors(io::Error),
    #[error("its network: {0}")]
    Network(#[from] NetworkError),
    #[error("its files: {0}")]
    Filesystem(#[from] FilesystemError),
    #[error(transparent)]
    Preparation(#[from] PreparationError),
    #[error("its capabilities can't be given up: {0}")]
    Confine(io::Error),
    #[error("{}: the command's working directory is not there inside: {error}", directory.display())]
    Directory { directory: PathBuf, error: io::Error },
    #[error("{0} came at the wrong time")]
    Unexpected(String),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error(transparent)]
    System(#[from] io::Error),
}

impl FromInside {
    /// What is told of an error.
    pub(super) fn failed(error: InsideError) -> FromInside {
        FromInside::Failed { message: error.to_string() }
    }
}
