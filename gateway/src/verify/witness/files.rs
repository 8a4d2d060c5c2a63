//! Which files and named sockets may the sandbox not find?

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

use super::Met;

const PREFIX: &str = "outgate-verify-";

/// Folders that a sandbox has anew.
const FRESH: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// All of them, removed with this.
pub(in crate::verify) struct Files {
    /// A file with the canary in the state folder.
    state: NamedTempFile,
    /// Files with the canary where all programs of the host may write.
    shared: Vec<NamedTempFile>,
    sockets: Vec<NamedSocket>,
    set_id: Option<NamedTempFile>,
}

struct NamedSocket {
    probe: &'static str,
    listener: UnixListener,
    path: PathBuf,
    _folder: TempDir,
}

impl Files {
    pub(super) fn lay(canary: &str, state_dir: &Path, home: Option<&Path>) -> io::Result<Files> {
        let state = file(canary, state_dir)?;
        // What can't be written to can't be watched either, as `/run` for an ordinary user.
        let fresh = ["/tmp", "/dev/shm"].iter().map(Path::new);
        let shared = fresh.filter_map(|folder| file(canary, folder).ok()).collect();
        let folders = FRESH.iter().map(Path::new).chain(home);
        let mut sockets: Vec<_> =
            folders.filter_map(|folder| socket("named-sockets", folder).ok()).collect();
        sockets.push(socket("management", state_dir)?);
        let set_id = file(canary, Path::new("/var/tmp")).ok().filter(|file| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o4755)).is_ok()
        });
        Ok(Files { state, shared, sockets, set_id })
    }

    pub(in crate::verify) fn state_canary(&self) -> PathBuf {
        self.state.path().to_owned()
    }

    pub(in crate::verify) fn shared(&self) -> Vec<PathBuf> {
        self.shared.iter().map(|file| file.path().to_owned()).collect()
    }

    pub(in crate::verify) fn sockets(&self, probe: &str) -> Vec<PathBuf> {
        let of = self.sockets.iter().filter(|socket| socket.probe == probe);
        of.map(|socket| socket.path.clone()).collect()
    }

    /// A program that runs as its owner, whoever starts it.
    pub(in crate::verify) fn set_id(&self) -> Option<PathBuf> {
        self.set_id.as_ref().map(|file| file.path().to_owned())
    }

    pub(super) fn met(&self) -> Vec<Met> {
        let reached = self.sockets.iter().filter(|socket| socket.listener.accept().is_ok());
        reached
            .map(|socket| Met { probe: socket.probe, what: socket.path.display().to_string() })
            .collect()
    }
}

fn file(canary: &str, folder: &Path) -> io::Result<NamedTempFile> {
    let file = Builder::new().prefix(PREFIX).tempfile_in(folder)?;
    fs::write(file.path(), canary)?;
    Ok(file)
}

fn socket(probe: &'static str, folder: &Path) -> io::Result<NamedSocket> {
    let folder = Builder::new().prefix(PREFIX).tempdir_in(folder)?;
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok(NamedSocket { probe, listener, path, _folder: folder })
}
