//! Which hooks are in force for this event? The operator's file, then those found in the sandbox.
//!
//! The files are read for every event, so that a change counts from the next one; they are
//! compiled only when their text has changed. The sandbox can write its own: what is read there
//! is read by [`reading`]'s rules, and a file that breaks or vanishes leaves its last good text in
//! force.

mod known;
mod memory;
mod notice;
mod reading;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::hook_set::{BrokenFile, HookSet, OnFailure};
use known::Known;
use memory::Memory;
pub use notice::{Change, Notice};
use reading::{Found, Place};

/// Files of 1 MiB on a local disk take a millisecond. A file system that hangs must not hold up
/// every tool call for longer than this.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where hooks are looked for.
#[derive(Debug, Default)]
pub struct Places {
    /// The operator's own file, out of the sandbox's reach.
    pub operator: Option<PathBuf>,
    /// The sandbox's folders, the strongest first.
    pub folders: Vec<Folder>,
    /// Whether what was there first stays in force.
    pub pin: bool,
    /// A file in which last good and pinned texts outlive the process.
    pub memory: Option<PathBuf>,
}

/// A folder of a sandbox in which `.agents/hooks.json` is looked for.
#[derive(Debug)]
pub struct Folder {
    /// A folder that nothing leads out of.
    pub root: Root,
    /// The folder below it, `.` for itself.
    pub below: PathBuf,
    /// How it is named inside the sandbox.
    pub inside: String,
}

/// A folder that is looked into.
#[derive(Clone, Debug)]
pub enum Root {
    /// It is open.
    Open(Arc<OwnedFd>),
    /// It is opened for each event: it may not be there yet, or be replaced as a whole. The
    /// sandbox has no say in the path.
    At(PathBuf),
}

impl Folder {
    /// Those of a whole sandbox: its root, then its working directory.
    pub fn of_sandbox(root: &Root, directory: &str) -> Vec<Folder> {
        let folder = |inside: &str| Folder {
            root: root.clone(),
            below: Path::new(".").join(inside.trim_start_matches('/')),
            inside: inside.trim_end_matches('/').to_owned(),
        };
        let mut folders = vec![folder("/"), folder(directory)];
        folders.dedup_by(|one, other| one.inside == other.inside);
        folders
    }
}

/// Finds hooks, and remembers what was good.
#[derive(Debug)]
pub struct Discovery {
    state: Arc<AsyncMutex<State>>,
    places: Vec<(String, Owner)>,
    published: Published,
}

/// What was in force when it was last known, for an event that can't wait for the files.
type Published = Arc<Mutex<Option<Arc<HookSet>>>>;

/// Who writes a file.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Owner {
    Operator,
    Sandbox,
}

/// What is in force for one event.
#[derive(Clone, Debug)]
pub struct Look {
    /// The hooks.
    pub hooks: Arc<HookSet>,
    /// What is new about the files.
    pub notices: Vec<Notice>,
}

impl Discovery {
    /// Prepares to look there; with `pin`, what the first [`look`](Discovery::look) finds stays.
    pub fn new(places: Places) -> Discovery {
        let mut found: Vec<Place> = places.operator.map(Place::Operator).into_iter().collect();
        found.extend(places.folders.into_iter().map(Place::Sandbox));
        let names = found.iter().map(|place| (place.name(), place.owner())).collect();
        let memory = Memory::read(places.memory);
        let known = found.iter().map(|place| Known::recall(memory.get(&place.name()))).collect();
        let published = Published::default();
        let state = State {
            places: found,
            known,
            memory,
            pin: places.pin,
            hooks: None,
            published: Arc::clone(&published),
        };
        Discovery { state: Arc::new(AsyncMutex::new(state)), places: names, published }
    }

    /// Reads what there is before any event: with `pin`, files that are there stay as they are. One
    /// that is not there yet may still come until [`Discovery::settle`] or the first event.
    pub fn look_ahead(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.look(Absence::May);
        }
    }

    /// The same where all that shall be is there: with `pin`, a file that is not there stays away.
    pub fn look_at_once(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.look(Absence::Counts);
        }
    }

    /// Reads what there is: with `pin`, this is what stays.
    pub async fn settle(&self) {
        self.look().await;
    }

    /// Reads what there is now.
    pub async fn look(&self) -> Look {
        let reading = async {
            let mut state = Arc::clone(&self.state).lock_owned().await;
            spawn_blocking(move || state.look(Absence::Counts)).await
        };
        match timeout(PATIENCE, reading).await {
            Ok(Ok(look)) => look,
            Ok(Err(_)) | Err(_) => self.unread(),
        }
    }

    /// What is in force when the files can't be read in time: what was, else nothing but failures.
    /// What the operator wrote is not passed by then: nobody knows what it says.
    fn unread(&self) -> Look {
        tracing::warn!("the hooks files could not be read within {} s", PATIENCE.as_secs());
        let known = locked(&self.published).clone();
        let hooks = known.unwrap_or_else(|| {
            let broken = self.places.iter().map(|(name, owner)| BrokenFile {
                name: name.clone(),
                on_failure: match owner {
                    Owner::Operator => OnFailure::Deny,
                    Owner::Sandbox => OnFailure::Allow,
                },
            });
            Arc::new(HookSet { groups: Vec::new(), broken: broken.collect() })
        });
        Look { hooks, notices: Vec::new() }
    }
}

fn locked(published: &Published) -> MutexGuard<'_, Option<Arc<HookSet>>> {
    published.lock().expect("nothing panics while it is held")
}

/// What it means that a file is not there.
#[derive(Copy, Clone, PartialEq)]
enum Absence {
    /// It may still come.
    May,
    /// There is none.
    Counts,
}

#[derive(Debug)]
struct State {
    places: Vec<Place>,
    known: Vec<Known>,
    memory: Memory,
    pin: bool,
    hooks: Option<Arc<HookSet>>,
    published: Published,
}

impl State {
    fn look(&mut self, absence: Absence) -> Look {
        let mut notices = Vec::new();
        let mut changed = self.hooks.is_none();
        for at in 0..self.places.len() {
            notices.extend(self.look_into(at, absence));
            changed |= self.known[at].take_changed();
            if changed {
                // A weaker file may take long, and must not keep this one out of force.
                *locked(&self.published) = Some(Arc::new(self.merge_after(at)));
            }
        }
        self.memory.write();
        for notice in &notices {
            notice.log();
        }
        if changed {
            self.hooks = Some(Arc::new(self.merge()));
        }
        let hooks = self.hooks.clone().expect("made above, at the first look at the latest");
        *locked(&self.published) = Some(Arc::clone(&hooks));
        Look { hooks, notices }
    }

    fn look_into(&mut self, at: usize, absence: Absence) -> Option<Notice> {
        let (place, known) = (&self.places[at], &mut self.known[at]);
        let found = place.read();
        if absence == Absence::May && found == Found::Absent {
            return None;
        }
        let news = known.update(found, self.pin);
        if let Some(text) = known.take_new_text() {
            self.memory.set(place.name(), text);
        }
        news.map(|(change, problems)| Notice { file: place.name(), change, problems })
    }

    /// What is in force when the files up to `at` have been read: of the others what was, and a
    /// failure of each that was never read.
    fn merge_after(&self, at: usize) -> HookSet {
        let mut set = self.merge();
        let later = self.places.iter().zip(&self.known).skip(at + 1);
        let unread = later.filter(|(_, known)| !known.is_seen());
        set.broken.extend(
            unread
                .map(|(place, _)| BrokenFile { name: place.name(), on_failure: OnFailure::Allow }),
        );
        set
    }

    fn merge(&self) -> HookSet {
        let mut set = HookSet::merge(self.known.iter().filter_map(Known::file));
        let broken = self.places.iter().zip(&self.known).filter_map(|(place, known)| {
            known.broken().map(|on_failure| BrokenFile { name: place.name(), on_failure })
        });
        set.broken.extend(broken);
        set
    }
}

impl From<OwnedFd> for Root {
    fn from(open: OwnedFd) -> Root {
        Root::Open(Arc::new(open))
    }
}

/// Opens the root of a sandbox that is a folder on this host.
pub fn open_root(root: &Path) -> std::io::Result<OwnedFd> {
    Ok(reading::open_folder(root)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATE: &str = r#"{"gate": {"pre_tool_execution": []}}"#;

    /// An operator's file that has a gate, and a sandbox.
    fn scene(folder: &Path) -> Discovery {
        let operator = folder.join("operator.json");
        std::fs::write(&operator, GATE).expect("a file of the scene");
        let folders = Folder::of_sandbox(&Root::At(folder.join("root")), "/workspace");
        Discovery::new(Places { operator: Some(operator), folders, ..Places::default() })
    }

    fn names(hooks: &HookSet) -> Vec<&str> {
        hooks.groups.iter().map(|group| group.name.as_str()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_is_approved_before_the_operators_file_was_read() {
        let folder = tempfile::tempdir().expect("a file of the scene");
        let discovery = scene(folder.path());
        let _hanging = discovery.state.lock().await;
        let broken: Vec<_> =
            discovery.look().await.hooks.broken.iter().map(|file| file.on_failure).collect();
        assert_eq!(broken, [OnFailure::Deny, OnFailure::Allow, OnFailure::Allow]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_operators_hooks_hold_when_the_files_can_not_be_read_in_time() {
        let folder = tempfile::tempdir().expect("a file of the scene");
        let discovery = scene(folder.path());
        discovery.look_ahead();
        let _hanging = discovery.state.lock().await;
        assert_eq!(names(&discovery.look().await.hooks), ["gate"]);
    }

    #[tokio::test]
    async fn the_operators_hooks_are_in_force_before_a_file_of_the_sandbox_is_read() {
        let folder = tempfile::tempdir().expect("a file of the scene");
        let discovery = scene(folder.path());
        let mut state = discovery.state.lock().await;
        state.look_into(0, Absence::Counts);
        let set = state.merge_after(0);
        assert_eq!((names(&set), set.broken.len()), (vec!["gate"], 2));
        state.look_into(1, Absence::Counts);
        assert_eq!(state.merge_after(0).broken.len(), 1);
    }
}
