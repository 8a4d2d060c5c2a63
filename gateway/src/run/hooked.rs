//! Where are the hooks of this sandbox, and how do their commands come into it?

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_hooks::{Folder, Streams, open_root};
use outgate_policy::EnvironmentId;
use tokio::sync::{Notify, mpsc};

use crate::failure::Failure;
use crate::hooks::{Hooks, InRun};

/// Supervisors that wait for the command to run, or for their turn.
const WAITING: usize = 64;

/// What hooks need to know of the sandbox.
pub(super) struct Hooked {
    pub(super) id: EnvironmentId,
    /// Where the command runs, inside as outside.
    pub(super) directory: PathBuf,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// The supervisors that the hooks of the sandbox want.
pub(super) struct Wanted {
    id: EnvironmentId,
    hooks: Arc<Hooks>,
    starts: mpsc::Receiver<Streams>,
    ready: Arc<Notify>,
}

impl Wanted {
    /// The sandbox is as it shall be, and its command doesn't run yet.
    pub(super) async fn settle(&self) {
        self.hooks.settle(&self.id).await;
        self.ready.notify_one();
    }

    /// Who is asked about tool calls, and under which name.
    pub(super) fn hooks(&self) -> (Arc<Hooks>, EnvironmentId) {
        (Arc::clone(&self.hooks), self.id.clone())
    }

    /// Told when [`Wanted::settle`] is done.
    pub(super) fn ready(&self) -> Arc<Notify> {
        Arc::clone(&self.ready)
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Option<Streams> {
        self.starts.recv().await
    }
}

impl Hooked {
    /// Tells `hooks` where they are; the supervisors that they want are received. `root` is the
    /// folder whose entries appear at the sandbox's root.
    pub(super) fn guard(
        self,
        hooks: Arc<Hooks>,
        root: &Path,
        memory: Option<PathBuf>,
    ) -> Result<Wanted, Failure> {
        let Hooked { id, directory, variables } = self;
        let folder = |folder: &Path, inside: &str| -> Result<Folder, Failure> {
            let open = open_root(folder);
            let open = open
                .map_err(|error| Failure::start(format_args!("{}: {error}", folder.display())))?;
            let inside = inside.trim_end_matches('/').to_owned();
            Ok(Folder { root: open.into(), below: PathBuf::from("."), inside })
        };
        let named = directory.to_string_lossy().into_owned();
        let folders = vec![folder(root, "/")?, folder(&directory, &named)?];
        let (starts, wanted) = mpsc::channel(WAITING);
        hooks.guard(&id, folders, InRun { starts, directory, variables }, memory);
        Ok(Wanted { id, hooks, starts: wanted, ready: Arc::default() })
    }
}
