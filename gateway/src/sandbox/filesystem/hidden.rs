//! What must the command not see?
//!
//! Settled before there is a sandbox, by the real names of files: links are followed here, once.

use std::collections::BTreeSet;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FilesystemRequest, PlanError, os_path};
use crate::state_dir::ENVIRONMENTS;

/// A state folder has a few dozen files; a folder with many more is somebody's home.
const STATE_FILES: usize = 10_000;

/// One file or folder of the host, without a link in its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Hidden {
    #[serde(with = "os_path")]
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    Folder,
    File,
    Socket,
}

/// The state folders, the operator's files and the sockets that were found.
pub(super) fn collect(request: &FilesystemRequest<'_>) -> Result<Vec<Hidden>, PlanError> {
    let mut hidden = BTreeSet::new();
    for state_dir in request.state_dirs {
        let path = canonical(state_dir)?;
        refuse_hard_links_below(&path, &path.join(ENVIRONMENTS))?;
        hidden.insert(Hidden { path, kind: Kind::Folder });
    }
    let files = request.files.iter().map(|file| canonical(file));
    let mut files: BTreeSet<PathBuf> = files.collect::<Result<_, _>>()?;
    let (values, gone) = look_for(request.values);
    files.extend(values);
    let known: BTreeSet<&PathBuf> = files.iter().chain(&gone).collect();
    for file in &files {
        let metadata = fs::metadata(file).map_err(PlanError::at("look at", file))?;
        refuse_hard_link(file, &metadata)?;
        hidden.insert(match own_folder_of(file, &known, request)? {
            Some(folder) => Hidden { path: folder, kind: Kind::Folder },
            None => Hidden { path: file.clone(), kind: kind(metadata.file_type()) },
        });
    }
    let root = canonical(request.sandbox_root)?;
    for file in &gone {
        // What comes back into a folder that is hidden whole is hidden too.
        let folder = own_folder_of(file, &known, request)?;
        let folder = folder.filter(|folder| !root.starts_with(folder));
        hidden.extend(folder.map(|path| Hidden { path, kind: Kind::Folder }));
    }
    refuse_too_much(&hidden, request)?;
    let sockets = request.sockets.paths.iter().filter(|socket| is_socket(socket));
    hidden.extend(sockets.map(|path| Hidden { path: path.clone(), kind: Kind::Socket }));
    Ok(hidden.into_iter().collect())
}

/// Where a file is, or would be if it were there, without a link on the way.
pub(crate) fn real_name(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        // A link that leads nowhere is no place: it could be turned.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(error);
            };
            Ok(fs::canonicalize(folder)?.join(name))
        }
        found => found,
    }
}

/// The real names of those files that are there, and of those that could come back. What is no file
/// is never read for a value: one such as the home folder must not keep a sandbox from starting.
fn look_for(files: &[PathBuf]) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let names = files.iter().filter_map(|file| real_name(file).ok());
    names.filter(|name| name.is_file() || !name.exists()).partition(|name| name.exists())
}

fn canonical(path: &Path) -> Result<PathBuf, PlanError> {
    fs::canonicalize(path).map_err(PlanError::at("find", path))
}

fn kind(kind: FileType) -> Kind {
    match kind {
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_socket() => Kind::Socket,
        _ => Kind::File,
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// The folder around a file, where nothing else is in it: hidden whole, it stays hidden when an
/// editor puts a new file in the place of the old one. What is mounted over a single file does
/// not: Linux takes it away with the old file (mount_namespaces(7)).
fn own_folder_of(
    file: &Path,
    files: &BTreeSet<&PathBuf>,
    request: &FilesystemRequest<'_>,
) -> Result<Option<PathBuf>, PlanError> {
    let Some(folder) = file.parent() else { return Ok(None) };
    let needed = folders_in_use(request)?;
    if needed.iter().any(|(_, path)| path.starts_with(folder)) {
        return Ok(None);
    }
    // One that can't be listed may have anything in it.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(None) };
    let mut known = entries.map(|entry| entry.is_ok_and(|entry| files.contains(&entry.path())));
    Ok(known.all(|known| known).then(|| folder.to_owned()))
}

/// What the command works in.
fn folders_in_use(
    request: &FilesystemRequest<'_>,
) -> Result<Vec<(&'static str, PathBuf)>, PlanError> {
    let mut folders = vec![("the working directory", canonical(request.working_directory)?)];
    if let Some(home) = request.home.and_then(|home| fs::canonicalize(home).ok()) {
        folders.push(("the home folder", home));
    }
    Ok(folders)
}

fn refuse_too_much(
    hidden: &BTreeSet<Hidden>,
    request: &FilesystemRequest<'_>,
) -> Result<(), PlanError> {
    for (what, path) in folders_in_use(request)? {
        if let Some(around) = hidden.iter().find(|hidden| path.starts_with(&hidden.path)) {
            let hidden = around.path.clone();
            return Err(PlanError::HoldsTooMuch { hidden, what, path });
        }
    }
    Ok(())
}

fn refuse_hard_link(path: &Path, metadata: &Metadata) -> Result<(), PlanError> {
    match metadata.nlink() {
        links if metadata.is_file() && links > 1 => {
            Err(PlanError::ManyNames { path: path.to_owned(), links })
        }
        _ => Ok(()),
    }
}

/// Looks at every file of the state folder, but for those that sandboxes have as their own: these
/// link theirs as they like, and can reach no others to link.
fn refuse_hard_links_below(folder: &Path, of_sandboxes: &Path) -> Result<(), PlanError> {
    let mut waiting = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).map_err(PlanError::at("list", &folder))? {
            let entry = entry.map_err(PlanError::at("list", &folder))?;
            let path = entry.path();
            let metadata = match entry.metadata() {
                // A socket or a temporary file of another gateway's.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found.map_err(PlanError::at("look at", &path))?,
            };
            refuse_hard_link(&path, &metadata)?;
            seen += 1;
            if metadata.is_dir() && seen < STATE_FILES && path != of_sandboxes {
                waiting.push(path);
            }
        }
    }
    Ok(())
}
