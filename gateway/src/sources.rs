//! How do an environment's sources get into a sandbox?
//!
//! Its root folder may have been written by an earlier command, so nothing in it is trusted: every
//! step below it is taken without following a link, and a file is put in its place whole, in the
//! place of whatever had its name. Repositories are cloned by git, inside the sandbox; objects of a
//! bucket are fetched by the gateway, before the command starts.
//! Under `serve`, [`crate::supply`] does the same in the place of a sandbox that others make.

mod beneath;
mod gcs;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use outgate_policy::{Source, Target};
use thiserror::Error;

use self::beneath::Folder;
pub(crate) use self::gcs::Asker;
use self::gcs::{Bucket, GcsError};
use crate::sandbox::{Preparation, Task};
use crate::supply::CloneError;

/// A big repository over a slow line; one that takes longer is better cloned beforehand.
const CLONE: Duration = Duration::from_secs(600);

/// No configuration of the user's or the machine's: a helper there would hand out passwords, and
/// `insteadOf` another address.
const GIT_VARIABLES: [(&str, &str); 4] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "https"),
];

/// Why a source isn't there.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    #[error("source for {target}: {error}")]
    Place { target: Target, error: io::Error },
    #[error("source for {target}: the machine has a /{} already; use another target", target.top())]
    Taken { target: Target },
    #[error("source for {target}: {error}")]
    Gcs { target: Target, error: GcsError },
    #[error("source for {target}: something else was fetched there before; move it away")]
    Occupied { target: Target },
    #[error("source for {target}: {error}")]
    Clone { target: Target, error: CloneError },
}

/// A source that is fetched through the gateway, once that runs.
#[derive(Debug)]
pub(crate) struct Fetch {
    target: Target,
    folder: Folder,
    bucket: Bucket,
}

/// What is left to do inside, in this order.
#[derive(Debug)]
pub(crate) struct ToDo {
    pub(crate) preparations: Vec<Preparation>,
    /// What is fetched before them, from outside.
    pub(crate) fetches: Vec<Fetch>,
    /// What becomes read-only after that.
    pub(crate) read_only: Vec<OsString>,
}

/// Puts what the environment file itself brings into `root`, makes folders for the rest, and says
/// what is left to do. `variables` are the command's.
pub(crate) fn place(
    root: &Path,
    sources: &[Source],
    variables: &[(OsString, OsString)],
) -> Result<ToDo, SourceError> {
    let (mut preparations, mut fetches) = (Vec::new(), Vec::new());
    for source in sources {
        let target = source.target();
        if std::fs::symlink_metadata(Path::new("/").join(target.top())).is_ok() {
            return Err(SourceError::Taken { target: target.clone() });
        }
        let failed = |error| SourceError::Place { target: target.clone(), error };
        match source {
            Source::Inline { content, .. } => put(root, target, content).map_err(failed)?,
            Source::Repository { url, .. } => {
                let folder = make_folder(root, target).map_err(failed)?;
                if folder.is_empty().map_err(failed)? {
                    preparations.push(clone(url, target, variables));
                } else {
                    tracing::info!("{target} has something in it already: {url} is not cloned");
                }
            }
            Source::Gcs { bucket, prefix, .. } => fetches.push(Fetch {
                target: target.clone(),
                folder: make_folder(root, target).map_err(failed)?,
                bucket: Bucket::new(bucket, prefix),
            }),
        }
    }
    let read_only = sources.iter().filter(|source| source.is_read_only());
    let read_only = read_only.map(|source| source.target().absolute().into()).collect();
    Ok(ToDo { preparations, fetches, read_only })
}

/// Fetches them, one after the other.
pub(crate) async fn fetch(fetches: Vec<Fetch>, asker: Asker<'_>) -> Result<(), SourceError> {
    for Fetch { target, folder, bucket } in fetches {
        let fetched = bucket.fetch(asker, &folder).await;
        fetched.map_err(|error| SourceError::Gcs { target, error })?;
    }
    Ok(())
}

/// Moves the folder that is at `target` below `from` to the empty one that is there below `to`.
pub(crate) fn move_whole(from: &Path, to: &Path, target: &Target) -> io::Result<()> {
    let (name, folders) = target.components().split_last().expect("a target has a component");
    let folders = || folders.iter().map(String::as_str);
    let from = Folder::open(from)?.make(folders())?;
    from.hand_over(name, &Folder::open(to)?.make(folders())?)
}

fn put(root: &Path, target: &Target, content: &[u8]) -> io::Result<()> {
    let (name, folders) = target.components().split_last().expect("a target has a component");
    let folders = folders.iter().map(String::as_str);
    Folder::open(root)?.make(folders)?.write(name, content)
}

fn make_folder(root: &Path, target: &Target) -> io::Result<Folder> {
    Folder::open(root)?.make(target.components().iter().map(String::as_str))
}

fn clone(url: &str, target: &Target, variables: &[(OsString, OsString)]) -> Preparation {
    let own = GIT_VARIABLES.map(|(name, value)| (name.into(), value.into()));
    let others = variables.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
    let arguments = ["clone", "--quiet", "--template=", "--", url].map(OsString::from);
    let place = target.absolute().into();
    Preparation {
        purpose: format!("cloning {url}"),
        task: Task {
            program: "git".into(),
            arguments: arguments.into_iter().chain([place]).collect(),
            variables: others.cloned().chain(own.clone()).collect(),
            directory: "/".into(),
        },
        deadline: CLONE,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    fn inline(text: &str, content: &str) -> Source {
        Source::Inline { target: target(text), content: content.into(), read_only: false }
    }

    fn repository(text: &str) -> Source {
        let url = "https://github.com/o/r".to_owned();
        Source::Repository { target: target(text), url, read_only: true }
    }

    #[test]
    fn puts_files_where_they_belong() {
        let root = tempfile::tempdir().unwrap();
        let sources = [inline(".agents/hooks.json", "{}"), inline("workspace/a/b", "text")];
        let to_do = place(root.path(), &sources, &[]).unwrap();
        assert!(to_do.preparations.is_empty() && to_do.read_only.is_empty());
        assert_eq!(fs::read_to_string(root.path().join(".agents/hooks.json")).unwrap(), "{}");
        assert_eq!(fs::read_to_string(root.path().join("workspace/a/b")).unwrap(), "text");
        // Again, as with a folder that is used for every run.
        place(root.path(), &[inline("workspace/a/b", "new")], &[]).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("workspace/a/b")).unwrap(), "new");
    }

    #[test]
    fn leaves_cloning_to_git_inside() {
        let root = tempfile::tempdir().unwrap();
        let variables = [("PATH", "/bin"), ("GIT_CONFIG_GLOBAL", "/evil")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let to_do = place(root.path(), &[repository("w/r")], &variables).unwrap();
        assert_eq!(to_do.read_only, ["/w/r"]);
        let [Preparation { task, .. }] = to_do.preparations.as_slice() else { panic!() };
        let url = "https://github.com/o/r";
        assert_eq!(task.arguments, ["clone", "--quiet", "--template=", "--", url, "/w/r"]);
        let of = |wanted: &str| {
            let mut values = task.variables.iter().filter(|(name, _)| name == wanted);
            (values.next().map(|(_, value)| value.to_str().unwrap()), values.next().is_none())
        };
        assert_eq!(of("PATH"), (Some("/bin"), true));
        assert_eq!(of("GIT_CONFIG_GLOBAL"), (Some("/dev/null"), true));
        assert!(root.path().join("w/r").is_dir());
        fs::write(root.path().join("w/r/file"), "").unwrap();
        let again = place(root.path(), &[repository("w/r")], &[]).unwrap();
        assert!(again.preparations.is_empty());
    }

    #[test]
    fn follows_no_link_that_an_earlier_command_left() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("file");
        fs::write(&secret, "kept").unwrap();
        // A folder on the way.
        symlink(outside.path(), root.path().join("w")).unwrap();
        let refused = place(root.path(), &[inline("w/file", "x")], &[]).unwrap_err().to_string();
        assert!(refused.starts_with("source for /w/file: "), "{refused}");
        assert!(place(root.path(), &[repository("w/r")], &[]).is_err());
        // The file itself: the link is replaced, not followed.
        symlink(&secret, root.path().join("link")).unwrap();
        place(root.path(), &[inline("link", "x")], &[]).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("link")).unwrap(), "x");
        // A second name of a file elsewhere.
        fs::hard_link(&secret, root.path().join("twin")).unwrap();
        place(root.path(), &[inline("twin", "x")], &[]).unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn waits_for_no_pipe_and_writes_to_no_folder() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        place(root.path(), &[inline("pipe", "x")], &[]).unwrap();
        assert_eq!(fs::read_to_string(&pipe).unwrap(), "x");
        fs::create_dir(root.path().join("folder")).unwrap();
        assert!(place(root.path(), &[inline("folder", "x")], &[]).is_err());
        // Nothing half-made stays behind.
        let names = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["folder", "pipe"]);
    }

    #[test]
    fn refuses_a_target_in_the_machine_s_own_folders() {
        let root = tempfile::tempdir().unwrap();
        let refused = place(root.path(), &[inline("etc/x", "")], &[]).unwrap_err().to_string();
        assert!(refused.contains("the machine has a /etc already"), "{refused}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
