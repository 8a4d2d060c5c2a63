//! Where does what must survive a restart live, and who may read it?
//!
//! The folder holds the CA's key and the management key, so nobody but its owner may look inside.
//! A missing one is made with mode 0700. An existing one that others may enter is tightened when
//! it is empty (a volume just made, a `mkdir` of the operator's); one with something in it is left
//! alone and refused, because it may well be somebody's home or `/tmp`.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cli::OperatorArgs;
use crate::surroundings::Surroundings;

/// Where in it the files of sandboxes are that `serve` keeps: a folder for each environment.
pub(crate) const ENVIRONMENTS: &str = "environments";

/// `--state-dir`, `$OUTGATE_STATE_DIR`, the operator's file, `/var/lib/outgate` for root, else the
/// user's own state folder (XDG base directories).
pub(crate) fn choose(
    args: &OperatorArgs,
    surroundings: &Surroundings,
    from_file: Option<PathBuf>,
) -> Option<PathBuf> {
    let named = args.state_dir.clone().or_else(|| surroundings.state_dir.clone()).or(from_file);
    named.or_else(|| usual(surroundings))
}

/// Where gateways of this user keep their state that were told nothing, or the same by the
/// environment, as far as there are any.
pub(crate) fn known(surroundings: &Surroundings) -> impl Iterator<Item = PathBuf> {
    let all = [surroundings.state_dir.clone(), usual(surroundings)];
    all.into_iter().flatten().filter(|path| path.is_dir())
}

fn usual(surroundings: &Surroundings) -> Option<PathBuf> {
    if surroundings.root {
        return Some("/var/lib/outgate".into());
    }
    // A relative XDG folder is to be ignored, says the specification.
    let xdg = surroundings.xdg_state_home.clone().filter(|path| path.is_absolute());
    let home = || surroundings.home.as_ref().map(|home| home.join(".local/state"));
    xdg.or_else(home).map(|folder| folder.join("outgate"))
}

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateDirError {
    #[error("state folder {}: {error}; --state-dir names another", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("state folder {} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("state folder {} belongs to user {owner}, not to {us}: chown it or give --state-dir", path.display())]
    Owner { path: PathBuf, owner: u32, us: u32 },
    #[error("state folder {path} can be entered by others (mode {mode:o}): chmod 700 {path}")]
    Open { path: String, mode: u32 },
}

/// Makes the folder, or checks it.
pub(crate) fn open(path: &Path) -> Result<(), StateDirError> {
    let failed = |error| StateDirError::Io { path: path.to_owned(), error };
    match fs::metadata(path) {
        Ok(found) => check(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

fn check(path: &Path, found: &Metadata) -> Result<(), StateDirError> {
    let failed = |error| StateDirError::Io { path: path.to_owned(), error };
    let us = nix::unistd::geteuid().as_raw();
    if !found.is_dir() {
        return Err(StateDirError::NotAFolder(path.to_owned()));
    }
    if found.uid() != us {
        return Err(StateDirError::Owner { path: path.to_owned(), owner: found.uid(), us });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let shared = mode & 0o1000 != 0;
    if shared || fs::read_dir(path).map_err(failed)?.next().is_some() {
        return Err(StateDirError::Open { path: path.display().to_string(), mode });
    }
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn user() -> Surroundings {
        Surroundings { home: Some("/home/u".into()), ..Surroundings::default() }
    }

    #[test]
    fn a_flag_wins_over_the_variable_and_that_over_the_file() {
        let args = OperatorArgs { state_dir: Some("flag".into()), ..OperatorArgs::default() };
        let variable = Surroundings { state_dir: Some("variable".into()), ..user() };
        let file = Some(PathBuf::from("file"));
        let none = OperatorArgs::default();
        assert_eq!(choose(&args, &variable, file.clone()), Some("flag".into()));
        assert_eq!(choose(&none, &variable, file.clone()), Some("variable".into()));
        assert_eq!(choose(&none, &user(), file), Some("file".into()));
    }

    #[test]
    fn without_a_word_it_is_the_system_s_for_root_and_the_user_s_own_otherwise() {
        let none = OperatorArgs::default();
        let root = Surroundings { root: true, ..user() };
        let xdg = Surroundings { xdg_state_home: Some("/x".into()), ..user() };
        let relative = Surroundings { xdg_state_home: Some("x".into()), ..user() };
        assert_eq!(choose(&none, &root, None), Some("/var/lib/outgate".into()));
        assert_eq!(choose(&none, &xdg, None), Some("/x/outgate".into()));
        assert_eq!(choose(&none, &relative, None), Some("/home/u/.local/state/outgate".into()));
        assert_eq!(choose(&none, &Surroundings::default(), None), None);
    }

    #[test]
    fn is_made_for_its_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        open(&path).unwrap();
    }

    #[test]
    fn tightens_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o775)).unwrap();
        open(dir.path()).unwrap();
        assert_eq!(mode(dir.path()), 0o700);
    }

    #[test]
    fn refuses_one_that_others_may_enter_and_leaves_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("kept"), "").unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
        let refused = open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("mode 750") && refused.contains("chmod 700"), "{refused}");
        assert_eq!(mode(dir.path()), 0o750);
    }

    #[test]
    fn never_tightens_a_shared_folder() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(matches!(open(dir.path()), Err(StateDirError::Open { .. })));
        assert_eq!(mode(dir.path()), 0o1777);
    }

    #[test]
    fn refuses_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(open(file.path()), Err(StateDirError::NotAFolder(_))));
    }
}
