//! Whom does the command ask for names?

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::FilesystemError;
use super::mount::{NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, Tree};
use super::own_folder;
use super::root::FRESH;

const FILE: &str = "/etc/resolv.conf";

/// As many links as the kernel follows (path_resolution(7)).
const LINKS: usize = 40;

/// Puts the sandbox's name servers where the C library looks.
pub(super) fn set(servers: &[IpAddr]) -> Result<(), FilesystemError> {
    let own = own_folder().join("resolv.conf");
    fs::write(&own, text(servers)).map_err(FilesystemError::at("write", &own))?;
    let target = followed(Path::new(FILE)).ok_or(FilesystemError::NoResolverFile)?;
    if !target.exists() {
        // Resolvers keep the real file in `/run`, which is new.
        if !is_fresh(&target) {
            return Err(FilesystemError::NoResolverFile);
        }
        make(&target).map_err(FilesystemError::at("make", &target))?;
    }
    Tree::copy(&own)
        .and_then(|tree| {
            tree.restrict(READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS)?.attach(&target)
        })
        .map_err(FilesystemError::at("set", &target))
}

/// Names are whole as they are: a search list of the host's would tell the sandbox of its network.
fn text(servers: &[IpAddr]) -> String {
    servers.iter().map(|server| format!("nameserver {server}\n")).collect()
}

/// What `path` leads to at last, which may not be there.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let folder = fs::canonicalize(path.parent()?);
        path =
            folder.map(|folder| folder.join(path.file_name().unwrap_or_default())).unwrap_or(path);
        match fs::read_link(&path) {
            Ok(target) => path = lexical(&path.parent()?.join(target))?,
            Err(_) => return Some(path),
        }
    }
    None
}

/// Without `.` and `..`: folders of `/run` that are not there can't be asked.
fn lexical(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::from("/");
    for part in path.strip_prefix("/").ok()?.components() {
        match part.as_os_str().as_encoded_bytes() {
            b"." => {}
            b".." => drop(whole.pop()),
            _ => whole.push(part),
        }
    }
    Some(whole)
}

fn is_fresh(path: &Path) -> bool {
    FRESH.iter().any(|name| path.starts_with(Path::new("/").join(name)))
}

fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    File::create_new(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_server_on_its_own_line() {
        let servers = ["198.18.0.1".parse().unwrap(), "fd6f:7574:6761:7465::1".parse().unwrap()];
        let expected = "nameserver 198.18.0.1\nnameserver fd6f:7574:6761:7465::1\n";
        assert_eq!(text(&servers), expected);
    }

    #[test]
    fn follows_links_to_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let link = |name: &str, target: &Path| {
            std::os::unix::fs::symlink(target, base.join(name)).unwrap();
        };
        link("first", Path::new("./second"));
        link("second", Path::new("../nowhere/stub/../file"));
        let expected = base.parent().unwrap().join("nowhere/file");
        assert_eq!(followed(&base.join("first")), Some(expected));
        link("round", Path::new("round"));
        assert_eq!(followed(&base.join("round")), None);
        assert_eq!(followed(&base.join("absent")), Some(base.join("absent")));
    }
}
