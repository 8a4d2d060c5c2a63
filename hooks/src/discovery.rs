//! Which hooks are in force for this event? The operator's file, then those found in the sandbox.
//!
//! The files are read for every event, so that a change counts from the next one; they are
//! compiled only when their text has changed. The sandbox can write its own: what is read there
//! is read by [`reading`]'s rules, and a file that breaks or vanishes leaves its last good text in
//! force.

mod known;
mod memory;
mod reading;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outgate_policy::Problem;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::hook_set::{BrokenFile, HookSet, OnFailure};
use known::Known;
use memory::Memory;
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
    names: Vec<String>,
    published: Mutex<Option<Arc<HookSet>>>,
}

/// Something about a file that was not so at the event before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which file.
    pub file: String,
    /// What became of it.
    pub change: Change,
    /// What is wrong with it, or worth a look.
    pub problems: Vec<Problem>,
}

/// What became of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is in force.
    Loaded,
    /// It can't be used; the last good one is in force.
    KeptBroken,
    /// It is gone; the last good one is in force.
    KeptVanished,
    /// It can't be used, and there is no good one: it fails on every event.
    Broken,
    /// It has changed, and is not used: hooks are pinned.
    Pinned,
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
        let names = found.iter().map(Place::name).collect();
        let memory = Memory::read(places.memory);
        let known = found.iter().map(|place| Known::recall(memory.get(&place.name()))).collect();
        let state = State { places: found, known, memory, pin: places.pin, hooks: None };
        Discovery { state: Arc::new(AsyncMutex::new(state)), names, published: Mutex::default() }
    }

    /// Reads what there is before any event: with `pin`, files that are there stay as they are. One
    /// that is not there yet may still come until [`Discovery::settle`] or the first event.
    pub fn look_ahead(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.look(Absence::May);
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
            Ok(Ok(look)) => {
                *self.published() = Some(Arc::clone(&look.hooks));
                look
            }
            Ok(Err(_)) | Err(_) => self.unread(),
        }
    }

    /// What is in force when the files can't be read in time: what was, else nothing but failures.
    fn unread(&self) -> Look {
        tracing::warn!("the hooks files could not be read within {} s", PATIENCE.as_secs());
        let known = self.published().clone();
        let hooks = known.unwrap_or_else(|| {
            let broken = self
                .names
                .iter()
                .map(|name| BrokenFile { name: name.clone(), on_failure: OnFailure::Allow });
            Arc::new(HookSet { groups: Vec::new(), broken: broken.collect() })
        });
        Look { hooks, notices: Vec::new() }
    }

    fn published(&self) -> std::sync::MutexGuard<'_, Option<Arc<HookSet>>> {
        self.published.lock().expect("nothing panics while it is held")
    }
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
}

impl State {
    fn look(&mut self, absence: Absence) -> Look {
        let mut notices = Vec::new();
        let mut changed = self.hooks.is_none();
        for (place, known) in self.places.iter().zip(&mut self.known) {
            let found = place.read();
            if absence == Absence::May && found == Found::Absent {
                continue;
            }
            if let Some((change, problems)) = known.update(found, self.pin) {
                notices.push(Notice { file: place.name(), change, problems });
            }
            changed |= known.take_changed();
            if let Some(text) = known.take_new_text() {
                self.memory.set(place.name(), text);
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
        Look { hooks, notices }
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

impl Notice {
    fn log(&self) {
        let file = &self.file;
        match self.change {
            Change::Loaded => tracing::info!("hooks of {file} are in force"),
            Change::KeptBroken => {
                tracing::warn!("{file} can't be used; its last good hooks stay in force");
            }
            Change::KeptVanished => {
                tracing::warn!("{file} is gone; its last good hooks stay in force");
            }
            Change::Broken => {
                tracing::warn!("{file} can't be used; it fails on every event until it is mended");
            }
            Change::Pinned => {
                tracing::warn!("{file} has changed; hooks are pinned, so the change is not used");
            }
        }
        for problem in &self.problems {
            tracing::warn!("{file}: {problem}");
        }
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
