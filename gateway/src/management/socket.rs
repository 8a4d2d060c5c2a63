//! How does a Unix socket come to be bound where an old one may lie?

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};

/// Why an address can't be listened on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("{address}: {error}")]
    Bind { address: String, error: io::Error },
    #[error("unix:{}: another gateway answers there: stop it or choose another path", .0.display())]
    InUse(PathBuf),
    #[error("unix:{}: there is something else than a socket: move it or choose another path", .0.display())]
    NotASocket(PathBuf),
    #[error("unix:{}: longer than the 107 bytes that a socket's path may have: choose a shorter one", .0.display())]
    TooLong(PathBuf),
}

/// Listens on `path` with exactly `mode`.
///
/// A socket that a gateway left behind when it was killed is replaced, if nobody answers on it.
pub(crate) fn bind_unix(path: &Path, mode: u32) -> Result<UnixListener, SocketError> {
    let address = UnixAddr::new(path).map_err(|error| match error {
        Errno::ENAMETOOLONG => SocketError::TooLong(path.to_owned()),
        other => failed(path, other.into()),
    })?;
    make_room(path)?;
    listen_on(&address, Mode::from_bits_truncate(mode))
        .map(UnixListener::from)
        .map_err(|error| failed(path, error.into()))
}

fn make_room(path: &Path) -> Result<(), SocketError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(path, error)),
    };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| failed(path, error))
        }
        // A full backlog, or a socket that isn't ours to enter, has somebody behind it too.
        _ => Err(SocketError::InUse(path.to_owned())),
    }
}

/// On Linux the file gets the mode that the socket had before: there is no moment at which others
/// could connect.
fn listen_on(address: &UnixAddr, mode: Mode) -> nix::Result<OwnedFd> {
    let family = AddressFamily::Unix;
    let descriptor = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    fchmod(&descriptor, mode)?;
    bind(descriptor.as_raw_fd(), address)?;
    listen(&descriptor, Backlog::new(128)?)?;
    Ok(descriptor)
}

fn failed(path: &Path, error: io::Error) -> SocketError {
    SocketError::Bind { address: format!("unix:{}", path.display()), error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = bind_unix(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn replaces_what_a_killed_gateway_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(bind_unix(&path, 0o600).unwrap());
        assert!(path.exists());
        let _listener = bind_unix(&path, 0o600).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn never_replaces_a_socket_that_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = bind_unix(&path, 0o600).unwrap();
        assert!(matches!(bind_unix(&path, 0o600), Err(SocketError::InUse(_))));
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn never_replaces_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::write(&path, "kept").unwrap();
        assert!(matches!(bind_unix(&path, 0o600), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
    }

    #[test]
    fn says_that_a_path_is_too_long() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(bind_unix(&long, 0o600), Err(SocketError::TooLong(_))));
    }
}
