//! Which root does the command see? One in memory, with the host's folders in their places.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use super::FilesystemError;
use super::mount::{self, NO_DEVICES, NO_SUID, READ_ONLY, Tree, by_descriptor};
use super::open_without_links;

/// Where the host's root lies while the new one is made.
pub(super) const HOST: &str = "/.outgate-host";

/// What of the host's top level is made anew, elsewhere.
pub(super) const FRESH: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// Makes the new root this process's own, with nothing in it but the host's at [`HOST`].
///
/// `place` is a folder that is there; nothing of it is used or covered in the end.
pub(super) fn enter(place: &Path) -> Result<(), FilesystemError> {
    let root = Path::new("/");
    // Nothing that is mounted or unmounted outside from now on reaches inside, nor the other way.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, root, None::<&str>, private, None::<&str>)
        .map_err(|error| FilesystemError::at("cut off from the host", root)(error.into()))?;
    mount::memory(place, 0o755).map_err(FilesystemError::at("mount on", place))?;
    let host = place.join(HOST.trim_start_matches('/'));
    fs::create_dir(&host).map_err(FilesystemError::at("make", &host))?;
    pivot_root(place, &host)
        .and_then(|()| chdir(root))
        .map_err(|error| FilesystemError::at("take as root", place)(error.into()))
}

/// Everything of the host's top level as it is, but for what is made anew.
pub(super) fn mirror_host() -> Result<(), FilesystemError> {
    for entry in entries(Path::new(HOST))? {
        let name = entry.file_name();
        if !FRESH.iter().any(|fresh| name == *fresh) {
            mirror(&entry)?;
        }
    }
    Ok(())
}

/// What lies in the sandbox's own folder. Needs [`super::kernel::mount_proc`].
///
/// A command that has the same folder may put a link in its place, or in one on the way to it,
/// while this sandbox starts; and a link into [`HOST`] would lead to all that is left out.
pub(super) fn add(sandbox_root: &Path) -> Result<(), FilesystemError> {
    let folder = open_without_links(&on_host(sandbox_root));
    let folder = folder.map_err(FilesystemError::at("find", sandbox_root))?;
    entries(&by_descriptor(&folder))?.iter().try_for_each(mirror)
}

/// `/run`, `/tmp`, and `/var/run` where it is a folder of its own. No socket of the host's is there.
pub(super) fn make_fresh() -> Result<(), FilesystemError> {
    for (path, mode) in [("/run", 0o755), ("/tmp", 0o1777)] {
        let path = Path::new(path);
        mount::new_memory(path, mode).map_err(FilesystemError::at("make", path))?;
    }
    keep_links_of_run()?;
    let lock = Path::new("/run/lock");
    mount::new_memory(lock, 0o1777).map_err(FilesystemError::at("make", lock))?;
    // Where it is the usual link, or missing, there is nothing to hide.
    match fs::canonicalize("/var/run") {
        Ok(own) if !own.starts_with("/run") => {
            mount::memory(&own, 0o755).map_err(FilesystemError::at("make", &own))
        }
        _ => Ok(()),
    }
}

/// The working directory, where it lies in something that was made anew: whoever starts a command
/// there means it to be seen.
pub(super) fn bring_along(directory: &Path) -> Result<(), FilesystemError> {
    let is_there = fs::symlink_metadata(directory).is_ok();
    if is_there || directory.starts_with("/proc") || directory.starts_with("/sys") {
        return Ok(());
    }
    fs::create_dir_all(directory)
        .and_then(|()| {
            let directory_on_host = open_without_links(&on_host(directory))?;
            Tree::of(&directory_on_host)?.restrict(NO_SUID | NO_DEVICES)?.attach(directory)
        })
        .map_err(FilesystemError::at("bring in", directory))
}

/// Lets go of the host's root. Only what was put in place before is left of it.
pub(super) fn leave_host() -> Result<(), FilesystemError> {
    let host = Path::new(HOST);
    umount2(host, MntFlags::MNT_DETACH)
        .map_err(|error| FilesystemError::at("let go of", host)(error.into()))?;
    fs::remove_dir(host).map_err(FilesystemError::at("remove", host))?;
    let root = Path::new("/");
    mount::restrict(root, READ_ONLY | NO_DEVICES | NO_SUID)
        .map_err(FilesystemError::at("close", root))
}

/// The path at which the host's `path` can be reached until [`leave_host`].
pub(super) fn on_host(path: &Path) -> PathBuf {
    Path::new(HOST).join(path.strip_prefix("/").unwrap_or(path))
}

/// NixOS keeps the links to its programs in `/run`; a link shows nothing that isn't there anyway.
fn keep_links_of_run() -> Result<(), FilesystemError> {
    let run = on_host(Path::new("/run"));
    // A machine without one has no links in it.
    let Ok(entries) = entries(&run) else { return Ok(()) };
    for entry in entries {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let link = Path::new("/run").join(entry.file_name());
        symlink(&target, &link).map_err(FilesystemError::at("link", &link))?;
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>, FilesystemError> {
    fs::read_dir(folder)
        .and_then(|entries| entries.collect())
        .map_err(FilesystemError::at("list", folder))
}

/// One entry at the same name under the new root. Sockets, pipes and devices are left out.
fn mirror(entry: &DirEntry) -> Result<(), FilesystemError> {
    let (from, to) = (entry.path(), Path::new("/").join(entry.file_name()));
    let mirrored = || -> io::Result<()> {
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            return symlink(fs::read_link(&from)?, &to);
        }
        if kind.is_dir() {
            fs::create_dir(&to)?;
        } else if kind.is_file() {
            File::create_new(&to)?;
        } else {
            return Ok(());
        }
        Tree::copy(&from)?.restrict(NO_SUID | NO_DEVICES)?.attach(&to)
    };
    mirrored().map_err(FilesystemError::at("bring in", &to))
}
