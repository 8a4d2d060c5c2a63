//! Why has the sandbox no file system?

use std::io;
use std::path::{Path, PathBuf};

/// While it was planned, before there was any namespace: a problem of what outgate was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("can't {what} {}: {error}", path.display())]
    Read { what: &'static str, path: PathBuf, error: io::Error },
    #[error(
        "{}/{name}: it would lie at /{name} in the sandbox, but the machine has a /{name} already; \
         give it another name",
        root.display()
    )]
    Taken { root: PathBuf, name: String },
    #[error(
        "{} has {links} names (hard links), and the command could read it by another one; keep it \
         in a file of its own",
        path.display()
    )]
    ManyNames { path: PathBuf, links: u64 },
    #[error(
        "{} must be hidden from the command, but it holds {what} ({}); use another folder for one \
         of them",
        hidden.display(),
        path.display()
    )]
    HoldsTooMuch { hidden: PathBuf, what: &'static str, path: PathBuf },
}

/// While it was built, inside the namespaces: the kernel or its administrator forbids something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesystemError {
    #[error("the sandbox's file system can't be made: {what} {}: {error}", path.display())]
    Step { what: &'static str, path: PathBuf, error: io::Error },
    #[error(
        "the sandbox can't have a /proc of its own: {0}; in a container, parts of /proc are covered: \
         start it with `--security-opt systempaths=unconfined`"
    )]
    Proc(io::Error),
    #[error("the kernel is too old for a sandbox: it takes Linux 5.12 or later")]
    OldKernel,
    #[error("{} can still be seen inside at {}", hidden.display(), place.display())]
    StillVisible { hidden: PathBuf, place: PathBuf },
    #[error(
        "the sandbox can't look names up: /etc/resolv.conf is missing or leads nowhere; an empty \
         file is enough"
    )]
    NoResolverFile,
}

impl PlanError {
    pub(super) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlanError {
        move |error| PlanError::Read { what, path: path.to_owned(), error }
    }
}

impl FilesystemError {
    pub(super) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FilesystemError {
        move |error| match error.raw_os_error() {
            Some(libc::ENOSYS) => FilesystemError::OldKernel,
            _ => FilesystemError::Step { what, path: path.to_owned(), error },
        }
    }
}
