//! Has a file changed that means something?
//!
//! Watched are folders, not files: a file that is replaced by renaming another over it is another
//! file. On the way to a path every symbolic link counts, so that a link that is turned (as
//! Kubernetes does with `..data`) is a change of what is behind it.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::unix::AsyncFd;

/// Symbolic links on one path; the kernel follows no more either.
const LINKS: usize = 40;

/// Watches folders by inotify(7).
pub(crate) struct Watch {
    inotify: AsyncFd<Descriptor>,
    folders: HashMap<WatchDescriptor, Names>,
}

/// What counts in one folder.
#[derive(Debug, Default, PartialEq)]
struct Names {
    named: HashSet<OsString>,
    all_json: bool,
}

struct Descriptor(Inotify);

impl Watch {
    /// Watches nothing yet; needs a runtime.
    pub(crate) fn new() -> io::Result<Watch> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        #[expect(unsafe_code, reason = "tokio wants a promise about the descriptor")]
        // SAFETY: it is the value's own, open and the same until the value is dropped.
        let inotify = unsafe { AsyncFd::register(Descriptor(inotify))? };
        Ok(Watch { inotify, folders: HashMap::new() })
    }

    /// Watches these files, and these folders for files named `*.json`, and nothing else. Whether
    /// there is a folder among them that was not watched before: what was read from it may be old.
    pub(crate) fn set(&mut self, files: &[PathBuf], folders: &[PathBuf]) -> bool {
        let mut wanted: HashMap<PathBuf, Names> = HashMap::new();
        files.iter().chain(folders).for_each(|path| turns(path, &mut wanted));
        for folder in folders {
            wanted.entry(folder.clone()).or_default().all_json = true;
        }
        let old = std::mem::take(&mut self.folders);
        for (folder, names) in wanted {
            match self.inotify.get_ref().0.add_watch(&folder, counted()) {
                Ok(watched) => self.folders.entry(watched).or_default().add(names),
                // Its own folder tells when it comes.
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => {
                    let folder = folder.display();
                    tracing::warn!(%folder, %error, "it can't be watched: SIGHUP tells of changes");
                }
            }
        }
        for unwanted in old.keys().filter(|watched| !self.folders.contains_key(*watched)) {
            // A folder that is gone took its watch along.
            let _ = self.inotify.get_ref().0.rm_watch(*unwanted);
        }
        self.folders.keys().any(|watched| !old.contains_key(watched))
    }

    /// Ready once something that counts has changed.
    pub(crate) async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            let read = |inotify: &AsyncFd<Descriptor>| {
                inotify.get_ref().0.read_events().map_err(io::Error::from)
            };
            match ready.try_io(read) {
                Ok(Ok(events)) if events.iter().any(|event| self.counts(event)) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(_)) | Err(_) => {}
            }
        }
    }

    /// Takes what has been noticed so far for seen.
    pub(crate) fn forget(&mut self) {
        while self.inotify.get_ref().0.read_events().is_ok_and(|events| !events.is_empty()) {}
    }

    fn counts(&self, event: &InotifyEvent) -> bool {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return true;
        }
        let Some(names) = self.folders.get(&event.wd) else { return false };
        // Without a name it is the folder itself, moved or deleted.
        event.name.as_deref().is_none_or(|name| names.count(name))
    }
}

impl Names {
    fn add(&mut self, more: Names) {
        self.named.extend(more.named);
        self.all_json |= more.all_json;
    }

    fn count(&self, name: &OsStr) -> bool {
        let json = || Path::new(name).extension().is_some_and(|extension| extension == "json");
        self.named.contains(name) || (self.all_json && json())
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Whatever may give a name other content. Not each write: half a file is not worth a look, its
/// end is told by the close.
fn counted() -> AddWatchFlags {
    AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_MOVE
        | AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_ATTRIB
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE_SELF
        | AddWatchFlags::IN_ONLYDIR
}

/// Adds every place where the way to `path` may turn: its last part, each symbolic link before it,
/// and the first part that isn't there.
fn turns(path: &Path, into: &mut HashMap<PathBuf, Names>) {
    let Ok(path) = std::path::absolute(path) else { return };
    let mut rest = parts(&path);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let target = next.read_link().ok().filter(|_| links < LINKS);
        let missing = target.is_none() && !next.exists();
        if target.is_some() || missing || rest.is_empty() {
            into.entry(here.clone()).or_default().named.insert(part);
        }
        match target {
            Some(target) => {
                links += 1;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                rest.extend(parts(&target));
            }
            None if missing => return,
            None => here = next,
        }
    }
}

/// The names and `..` of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::slice::from_ref;
    use std::time::Duration;

    use super::*;

    /// A folder, and a watch over what `watched` names in it.
    struct Scene {
        folder: tempfile::TempDir,
        watch: Watch,
    }

    impl Scene {
        fn new(prepare: impl FnOnce(&Path)) -> Scene {
            let folder = tempfile::tempdir().unwrap();
            prepare(folder.path());
            Scene { folder, watch: Watch::new().unwrap() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        async fn sees(&mut self, change: impl FnOnce(&Path)) -> bool {
            change(self.folder.path());
            let changed = self.watch.changed();
            tokio::time::timeout(Duration::from_millis(200), changed).await.is_ok()
        }
    }

    #[tokio::test]
    async fn a_file_that_is_written_replaced_or_removed_has_changed() {
        let mut scene = Scene::new(|folder| fs::write(folder.join("a"), "1").unwrap());
        let file = scene.path("a");
        assert!(scene.watch.set(from_ref(&file), &[]));
        assert!(!scene.watch.set(&[file], &[]), "nothing new");
        assert!(scene.sees(|folder| fs::write(folder.join("a"), "2").unwrap()).await);
        while scene.sees(|_| ()).await {}
        let replace = |folder: &Path| {
            fs::write(folder.join("a.new"), "3").unwrap();
            fs::rename(folder.join("a.new"), folder.join("a")).unwrap();
        };
        assert!(scene.sees(replace).await);
        while scene.sees(|_| ()).await {}
        assert!(scene.sees(|folder| fs::remove_file(folder.join("a")).unwrap()).await);
    }

    #[tokio::test]
    async fn what_happens_beside_it_means_nothing() {
        let mut scene = Scene::new(|folder| fs::write(folder.join("a"), "1").unwrap());
        let file = scene.path("a");
        scene.watch.set(&[file], &[]);
        assert!(!scene.sees(|folder| fs::write(folder.join("audit.jsonl"), "2").unwrap()).await);
        assert!(!scene.sees(|folder| fs::write(folder.join("b.json"), "2").unwrap()).await);
    }

    #[tokio::test]
    async fn a_folder_is_watched_for_json_files() {
        let mut scene = Scene::new(|folder| fs::create_dir(folder.join("many")).unwrap());
        let many = scene.path("many");
        scene.watch.set(&[], &[many]);
        assert!(!scene.sees(|folder| fs::write(folder.join("many/a.txt"), "1").unwrap()).await);
        assert!(scene.sees(|folder| fs::write(folder.join("many/a.json"), "1").unwrap()).await);
        while scene.sees(|_| ()).await {}
        let swap = |folder: &Path| fs::rename(folder.join("many"), folder.join("old")).unwrap();
        assert!(scene.sees(swap).await);
    }

    /// As the kubelet writes a config map.
    #[tokio::test]
    async fn a_link_that_is_turned_changes_what_is_behind_it() {
        let mut scene = Scene::new(|folder| {
            for version in ["..1", "..2"] {
                fs::create_dir(folder.join(version)).unwrap();
                fs::write(folder.join(version).join("a.json"), version).unwrap();
            }
            symlink("..1", folder.join("..data")).unwrap();
            symlink("..data/a.json", folder.join("a.json")).unwrap();
        });
        let file = scene.path("a.json");
        scene.watch.set(from_ref(&file), &[]);
        let turn = |folder: &Path| {
            symlink("..2", folder.join("..data_tmp")).unwrap();
            fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        };
        assert!(scene.sees(turn).await);
        while scene.sees(|_| ()).await {}
        assert!(scene.watch.set(&[file], &[]), "the second version's folder is new");
        let write = |folder: &Path| fs::write(folder.join("..2/a.json"), "3").unwrap();
        assert!(scene.sees(write).await);
    }

    #[tokio::test]
    async fn a_path_that_is_not_there_yet_is_waited_for() {
        let mut scene = Scene::new(|_| ());
        let file = scene.path("x/y/a.json");
        scene.watch.set(&[file], &[]);
        assert!(scene.sees(|folder| fs::create_dir(folder.join("x")).unwrap()).await);
    }

    #[test]
    fn a_ring_of_links_ends() {
        let folder = tempfile::tempdir().unwrap();
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        let mut into = HashMap::new();
        turns(&folder.path().join("a"), &mut into);
        assert!(!into.is_empty());
    }
}
