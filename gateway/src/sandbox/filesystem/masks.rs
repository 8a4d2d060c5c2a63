//! How does a file stay out of the command's sight, whatever it does?
//!
//! Something empty is mounted over it. A process without capabilities in the namespace can't
//! unmount that, nor rename or remove what it lies on. Three ways around are closed:
//!
//! - The same file may be visible at other places, by other mounts of its file system: each is
//!   masked.
//! - A mask hangs on the mount through which the file is seen. Were one of the folders around it
//!   moved into a folder that another mount shows too, it would be seen there without the mask. So
//!   each of these folders is mounted on itself: a mount point can't be moved.
//! - In a mount namespace of its own, a process could make such another mount:
//!   [`super::kernel::forbid_mount_namespaces`].

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;

use super::FilesystemError;
use super::hidden::{Hidden, Kind};
use super::mount::{self, NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, Tree};
use super::mountinfo::{Item, MountTable};
use super::root::{HOST, on_host};

/// What is shown in the place of a hidden file.
const EMPTY: &str = "/.outgate-empty";

/// Hides everything, then looks for it. What lies in `sandbox_root` is shown, wherever that is.
pub(super) fn apply(hidden: &[Hidden], sandbox_root: &Path) -> Result<(), FilesystemError> {
    let host = Path::new(HOST);
    let table = read_table()?;
    let root = on_host(sandbox_root);
    let root = table.item(&root).map_err(FilesystemError::at("find", sandbox_root))?;
    let mut items = Vec::new();
    for hidden in hidden {
        items.extend(look_up(&table, hidden)?.map(|item| (hidden, item)));
    }
    let places: BTreeSet<(PathBuf, Kind)> = items
        .iter()
        .flat_map(|(hidden, item)| {
            table.places(item, host).into_iter().map(|place| (place, hidden.kind))
        })
        .collect();
    let folders = items.iter().filter(|(hidden, _)| hidden.kind == Kind::Folder);
    let parts = folders.flat_map(|(_, item)| table.parts(item, &root, host));
    // A chroot somewhere has a view of the host's processes and devices of its own.
    let views = table.of_the_kernel(&["/dev", "/proc", "/sys", HOST].map(Path::new));
    let also = parts.chain(views).filter_map(with_kind);
    fix_folders(&table, &places)?;
    cover(&places.iter().cloned().chain(also).collect())?;
    check_invisible(&items)
}

/// `None` for what lies under another mount.
fn with_kind(place: PathBuf) -> Option<(PathBuf, Kind)> {
    let kind = if fs::symlink_metadata(&place).ok()?.is_dir() { Kind::Folder } else { Kind::File };
    Some((place, kind))
}

fn read_table() -> Result<MountTable, FilesystemError> {
    MountTable::read().map_err(FilesystemError::at("read", Path::new("/proc/self/mountinfo")))
}

fn look_up(table: &MountTable, hidden: &Hidden) -> Result<Option<Item>, FilesystemError> {
    let path = on_host(&hidden.path);
    match table.item(&path) {
        Ok(item) => Ok(Some(item)),
        Err(error) if hidden.kind == Kind::Socket && is_out_of_reach(&error) => Ok(None),
        Err(error) => Err(FilesystemError::at("find", &hidden.path)(error)),
    }
}

/// Sockets come and go; one that is gone can't be connected to. Nor can one in a folder of another
/// user: root of a machine sees it, but what is root in here has no right over it, and the command
/// has less.
fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Mounts the folders around each place on themselves, the outermost first.
///
/// Around a socket only where it matters: files can't be hard-linked or renamed across a mount, so
/// each of these folders costs a little.
fn fix_folders(
    table: &MountTable,
    places: &BTreeSet<(PathBuf, Kind)>,
) -> Result<(), FilesystemError> {
    let host = Path::new(HOST);
    let movable =
        |(place, kind): &&(PathBuf, Kind)| *kind != Kind::Socket || table.shows_twice(place, host);
    let folders: BTreeSet<&Path> =
        places.iter().filter(movable).flat_map(|(place, _)| folders_around(place)).collect();
    for folder in folders {
        if !table.is_mount_point(folder) {
            Tree::copy(folder)
                .and_then(|tree| tree.attach(folder))
                .map_err(FilesystemError::at("fix", folder))?;
        }
    }
    Ok(())
}

/// All but the root and what lies in it, which are mounts already.
fn folders_around(place: &Path) -> impl Iterator<Item = &Path> {
    place.ancestors().skip(1).filter(|folder| folder.components().count() > 2)
}

fn cover(places: &BTreeSet<(PathBuf, Kind)>) -> Result<(), FilesystemError> {
    let empty = Path::new(EMPTY);
    File::create_new(empty).map_err(FilesystemError::at("make", empty))?;
    let mut covered: Option<&Path> = None;
    // In order, what lies in a hidden folder comes right after it.
    for (place, kind) in places {
        if covered.is_some_and(|folder| place.starts_with(folder)) {
            continue;
        }
        let masked = match kind {
            Kind::Folder => empty_folder(place),
            Kind::File | Kind::Socket => empty_file(empty, place),
        };
        masked.map_err(FilesystemError::at("hide", place))?;
        if *kind == Kind::Folder {
            covered = Some(place);
        }
    }
    fs::remove_file(empty).map_err(FilesystemError::at("remove", empty))
}

fn empty_folder(place: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount::fresh("tmpfs", place, flags, "mode=0555,size=4k,nr_inodes=1")
}

fn empty_file(empty: &Path, place: &Path) -> io::Result<()> {
    Tree::copy(empty)?.restrict(READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS)?.attach(place)
}

/// What was overlooked would be a secret in the open: then there is no sandbox.
fn check_invisible(items: &[(&Hidden, Item)]) -> Result<(), FilesystemError> {
    let table = read_table()?;
    for (hidden, item) in items {
        if let Some(place) = table.places(item, Path::new(HOST)).pop_first() {
            return Err(FilesystemError::StillVisible { hidden: hidden.path.clone(), place });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_the_folders_between_the_top_level_and_the_file() {
        let around: Vec<_> = folders_around(Path::new("/home/u/.local/state/outgate")).collect();
        let expected = ["/home/u/.local/state", "/home/u/.local", "/home/u"].map(Path::new);
        assert_eq!(around, expected);
        assert_eq!(folders_around(Path::new("/env.json")).count(), 0);
        assert_eq!(folders_around(Path::new("/srv/env.json")).count(), 0);
    }
}
