//! Which file system does the command see?
//!
//! The host's as it is, with these differences: `/run`, `/tmp`, `/dev/shm` are new and empty (but for
//! the working directory, if it lies in one of them),
//! `/proc` and `/sys` belong to the namespaces, `/dev` has what every program needs; names are
//! looked up at the gateway; the CA is trusted where clients look; what the operator keeps from the
//! command is hidden; and the sandbox's own folder is there.
//!
//! ```text
//! gateway's process     FilesystemPlan::new     by real names, refused before anything starts
//! PID 1 of the sandbox  build                   root → kernel, devices → resolver, trust → masks
//!                       make_read_only          when the sources are in place
//! ```
//!
//! It is not a file sandbox: the command reads and writes what its user may.

mod browsers;
mod devices;
mod error;
mod hidden;
mod kernel;
mod masks;
mod mount;
mod mountinfo;
mod os_path;
mod resolver;
mod root;
mod sockets;
mod trust;

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use serde::{Deserialize, Serialize};

use self::hidden::Hidden;
use self::mount::{NO_DEVICES, NO_SUID, READ_ONLY};
use self::mountinfo::MountTable;
use crate::trust_files::{TrustFiles, TrustPaths};

pub(crate) use self::error::{FilesystemError, PlanError};
pub(crate) use self::hidden::real_name;
pub(crate) use self::sockets::{FoundSockets, SocketSearch};

/// Where the sandbox's own files lie, as seen inside.
const OWN_FOLDER: &str = "/run/outgate";

/// What the plan is made from, all of it as the host has it.
pub(crate) struct FilesystemRequest<'a> {
    /// What is in it appears at the sandbox's `/`.
    pub(crate) sandbox_root: &'a Path,
    /// This gateway's, and those of others of the same user: their keys open more than this
    /// sandbox.
    pub(crate) state_dirs: &'a [PathBuf],
    /// The environment file, the operator's file, and every file with a secret that they name.
    pub(crate) files: &'a [PathBuf],
    /// Those that values of stored credentials are read from; they may be gone.
    pub(crate) values: &'a [PathBuf],
    pub(crate) working_directory: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) sockets: &'a FoundSockets,
}

/// Everything that [`build`] needs to know.
#[derive(Serialize, Deserialize)]
pub(crate) struct FilesystemPlan {
    #[serde(with = "os_path")]
    sandbox_root: PathBuf,
    #[serde(with = "os_path")]
    working_directory: PathBuf,
    hidden: Vec<Hidden>,
    name_servers: Vec<IpAddr>,
    trust: TrustFiles,
}

impl FilesystemPlan {
    /// Looks at the host and settles what the sandbox will have.
    pub(crate) fn new(
        request: &FilesystemRequest<'_>,
        name_servers: Vec<IpAddr>,
        trust: TrustFiles,
    ) -> Result<FilesystemPlan, PlanError> {
        let root = request.sandbox_root;
        let sandbox_root = fs::canonicalize(root).map_err(PlanError::at("find", root))?;
        refuse_taken_names(&sandbox_root)?;
        let hidden = hidden::collect(request)?;
        let working_directory = request.working_directory.to_owned();
        Ok(FilesystemPlan { sandbox_root, working_directory, hidden, name_servers, trust })
    }

    /// What is hidden so that this file is: itself, or a folder around it.
    pub(crate) fn mask_of(&self, file: &Path) -> Option<&Path> {
        let file = real_name(file).ok()?;
        self.hidden.iter().map(|hidden| hidden.path.as_path()).find(|mask| file.starts_with(mask))
    }
}

/// Where the files that make clients trust the CA lie, as seen inside.
pub(crate) fn trust_paths() -> TrustPaths {
    TrustPaths::in_folder(own_folder())
}

/// Makes the file system and enters it; the host's is gone for this process and its children.
///
/// To be called once, by a process with one thread and all capabilities, in user, mount, PID,
/// network and IPC namespaces that were made for it. From then on no mount namespace can be made
/// in the user namespace or below, and `/proc/sys` is read-only.
pub(super) fn build(plan: &FilesystemPlan) -> Result<(), FilesystemError> {
    root::enter(&plan.sandbox_root)?;
    root::mirror_host()?;
    root::make_fresh()?;
    kernel::mount_proc()?;
    root::add(&plan.sandbox_root)?;
    kernel::mount_sys()?;
    devices::make()?;
    root::bring_along(&plan.working_directory)?;
    let own = own_folder();
    mount::new_memory(own, 0o755).map_err(FilesystemError::at("make", own))?;
    resolver::set(&plan.name_servers)?;
    trust::set(&plan.trust)?;
    browsers::set()?;
    mount::restrict(own, READ_ONLY).map_err(FilesystemError::at("close", own))?;
    masks::apply(&plan.hidden, &plan.sandbox_root)?;
    root::leave_host()?;
    kernel::forbid_mount_namespaces()
}

/// Lets nobody change a file or folder any more, by whatever name it is reached. No link on the
/// way to it is followed.
pub(super) fn make_read_only(path: &Path) -> Result<(), FilesystemError> {
    let made = || -> io::Result<()> {
        let table = MountTable::read()?;
        let item = table.item(path)?;
        for place in table.places(&item, Path::new(root::HOST)) {
            mount::on_itself(&open_without_links(&place)?)?;
            // Opened anew, it is what was just mounted.
            let place = open_without_links(&place)?;
            mount::restrict_all(&place, READ_ONLY | NO_SUID | NO_DEVICES)?;
        }
        Ok(())
    };
    made().map_err(FilesystemError::at("make read-only", path))
}

/// Whatever somebody puts in the place of a part of `path`: it leads where it did, or nowhere.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(AT_FDCWD, path, how)?)
}

fn own_folder() -> &'static Path {
    Path::new(OWN_FOLDER)
}

/// The machine's own folders keep their names: what lies in `/etc` must not depend on a sandbox.
fn refuse_taken_names(sandbox_root: &Path) -> Result<(), PlanError> {
    let entries = fs::read_dir(sandbox_root).map_err(PlanError::at("list", sandbox_root))?;
    for entry in entries {
        let name = entry.map_err(PlanError::at("list", sandbox_root))?.file_name();
        let taken = root::FRESH.iter().any(|fresh| name == *fresh)
            || fs::symlink_metadata(Path::new("/").join(&name)).is_ok();
        if taken {
            let (root, name) = (sandbox_root.to_owned(), name.to_string_lossy().into_owned());
            return Err(PlanError::Taken { root, name });
        }
    }
    Ok(())
}

/// The certificates would fill pages.
impl fmt::Debug for FilesystemPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesystemPlan")
            .field("sandbox_root", &self.sandbox_root)
            .field("hidden", &self.hidden)
            .field("name_servers", &self.name_servers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
