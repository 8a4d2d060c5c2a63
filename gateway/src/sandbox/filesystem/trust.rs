//! Where do clients look that no variable reaches?
//!
//! Programs with an emptied environment, GnuTLS and Java read the system's own files. The bundle
//! and the trust store are laid over those that the machine has; none is made that it hasn't,
//! because its folder is the host's.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::mount::{NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, Tree};
use super::{FilesystemError, own_folder};
use crate::trust_files::{TrustFiles, TrustPaths};

/// OpenSSL's, GnuTLS', Go's: Debian, Fedora, SUSE, Alpine, Arch, NixOS.
pub(super) const BUNDLES: [&str; 11] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/lib/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Where OpenSSL looks a certificate up by its subject when it has no file.
const FOLDER: &str = "/etc/ssl/certs";

/// Debian has about 300; of a folder with many more, only the files above are covered.
pub(super) const FOLDER_ENTRIES: usize = 4096;

const JAVA_STORES: [&str; 4] = [
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
    "/etc/pki/java/cacerts",
    "/var/lib/ca-certificates/java-cacerts",
];

/// Folders of Java installations, one below each.
const JAVA_FOLDERS: [&str; 4] = ["/usr/lib/jvm", "/usr/java", "/opt", "/opt/java"];

/// Writes the files and lays them over the system's.
pub(super) fn set(files: &TrustFiles) -> Result<(), FilesystemError> {
    let own = own_folder();
    files.write_into(own).map_err(FilesystemError::at("write", own))?;
    let folder = Path::new(FOLDER);
    extend(files).map_err(FilesystemError::at("extend", folder))?;
    let paths = TrustPaths::in_folder(own);
    cover(BUNDLES.map(PathBuf::from), &paths.bundle)?;
    cover(JAVA_STORES.map(PathBuf::from).into_iter().chain(java_installations()), &paths.java)
}

/// Lays `own` over each of `paths` that is a file, once where many names lead to it.
fn cover(paths: impl IntoIterator<Item = PathBuf>, own: &Path) -> Result<(), FilesystemError> {
    let found = paths.into_iter().filter_map(|path| fs::canonicalize(path).ok());
    let files: BTreeSet<PathBuf> = found.filter(|path| path.is_file()).collect();
    for file in files {
        show_over(own, &file).map_err(FilesystemError::at("cover", &file))?;
    }
    Ok(())
}

fn java_installations() -> impl Iterator<Item = PathBuf> {
    let folders = JAVA_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    folders.flatten().flat_map(|entry| {
        ["lib/security/cacerts", "jre/lib/security/cacerts"].map(|below| entry.path().join(below))
    })
}

/// Shows the system's folder with the CA among its certificates.
fn extend(files: &TrustFiles) -> io::Result<()> {
    let Ok(system) = fs::canonicalize(FOLDER) else { return Ok(()) };
    let entries: Vec<DirEntry> = fs::read_dir(&system)?.collect::<io::Result<_>>()?;
    let Some((name, ca)) = files.folder.first() else { return Ok(()) };
    if entries.len() > FOLDER_ENTRIES {
        return Ok(());
    }
    let extended = own_folder().join("system");
    fs::create_dir(&extended)?;
    for entry in &entries {
        repeat(entry, &extended.join(entry.file_name()))?;
    }
    let hash = name.split('.').next().unwrap_or(name);
    let free = (0..).map(|number| extended.join(format!("{hash}.{number}")));
    let free = free.into_iter().find(|path| fs::symlink_metadata(path).is_err());
    fs::write(free.expect("numbers go on"), ca)?;
    show_over(&extended, &system)
}

/// A link keeps its text: it is read from the same place as before.
pub(super) fn repeat(entry: &DirEntry, to: &Path) -> io::Result<()> {
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return symlink(fs::read_link(entry.path())?, to);
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else if kind.is_file() {
        File::create_new(to)?;
    } else {
        return Ok(());
    }
    Tree::copy(&entry.path())?.attach(to)
}

pub(super) fn show_over(from: &Path, to: &Path) -> io::Result<()> {
    Tree::copy(from)?.restrict(READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS)?.attach(to)
}
