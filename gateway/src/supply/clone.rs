//! How does a repository get into an environment's folder, if git is all there is to fetch it?
//!
//! In a sandbox as `outgate run` makes it, whose network is served by the running gateway as this
//! environment's, and in a folder of its own. What git leaves there comes to its place in one step,
//! when it is whole.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use outgate_policy::{Source, Target};
use thiserror::Error;

use super::Depot;
use super::store::Store;
use crate::app::Sockets;
use crate::ca;
use crate::environments::Wanted;
use crate::failure::Failure;
use crate::sandbox::{
    Event, FilesystemPlan, FilesystemRequest, Launched, OWN_V4, OWN_V6, Plan, PlanError,
    Preparation, SandboxError, SocketSearch, blocked_signals,
};
use crate::sources::{self, SourceError};
use crate::trust_files::TrustFiles;

/// Why there is no clone.
#[derive(Debug, Error)]
pub(crate) enum CloneError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("no sandbox for git: {0}")]
    Plan(#[from] PlanError),
    #[error("no sandbox for git: {}", .0.message().unwrap_or("no roots"))]
    Roots(Failure),
    #[error("the clone can't be put in its place: {0}")]
    Place(io::Error),
}

/// Clones `source` and puts it in its place, an empty folder; `variables` are git's.
pub(super) async fn bring(
    depot: &Depot,
    wanted: &Wanted,
    source: &Source,
    (store, variables): (&Store, &[(OsString, OsString)]),
) -> Result<(), SourceError> {
    let target = source.target();
    let failed = |error| SourceError::Clone { target: target.clone(), error };
    let unfinished = store.begin().map_err(|error| failed(CloneError::Place(error)))?;
    let to_do = sources::place(&unfinished, std::slice::from_ref(source), variables)?;
    let cloned = run(depot, wanted, &unfinished, to_do.preparations).await;
    let placed = cloned.and_then(|()| put(&unfinished, store, target));
    store.clear().map_err(CloneError::Place).and(placed).map_err(failed)
}

fn put(unfinished: &Path, store: &Store, target: &Target) -> Result<(), CloneError> {
    sources::move_whole(unfinished, &store.root(), target).map_err(CloneError::Place)
}

/// Runs `preparations` in a sandbox whose own folder is `root`.
async fn run(
    depot: &Depot,
    wanted: &Wanted,
    root: &Path,
    preparations: Vec<Preparation>,
) -> Result<(), CloneError> {
    let plan = Plan {
        ports: wanted.environment.snapshot().policy.ports().into_iter().collect(),
        filesystem: filesystem(depot, root)?,
        preparations,
        read_only: Vec::new(),
        command: None,
        silent: true,
        blocked_signals: blocked_signals(),
    };
    let mut sandbox = Launched::launch(&plan)?;
    let (sockets, _) = sandbox.take_sockets();
    let sockets = Sockets::of_sandbox(sockets, wanted.environment.id());
    let Sockets { listeners, names, .. } = sockets.map_err(SandboxError::Spawn)?;
    let gateway = Arc::clone(&depot.supply.gateway);
    let _served = depot.afar(async move { gateway.serve(listeners, names).await });
    let mut running = sandbox.start().await?;
    let ended = running.event().await?;
    running.end().await;
    match ended {
        Event::Ended(0) => Ok(()),
        other => Err(SandboxError::Unexpected(format!("{other:?}")).into()),
    }
}

fn filesystem(depot: &Depot, root: &Path) -> Result<FilesystemPlan, CloneError> {
    let keeping = &depot.keeping;
    let home = keeping.surroundings.home.as_deref();
    let sockets = SocketSearch::start(home.into_iter().chain([Path::new("/var")])).finish();
    let files = keeping.hidden(&depot.supply.orders.borrow());
    let roots = ca::origin_roots(&keeping.settings).map_err(CloneError::Roots)?;
    let trust = TrustFiles::new(&depot.supply.authority, &roots);
    let request = FilesystemRequest {
        sandbox_root: root,
        state_dirs: std::slice::from_ref(&keeping.settings.state_dir),
        files: &files,
        values: &depot.supply.gateway.credentials().files(),
        working_directory: Path::new("/"),
        // It may well be the state folder: git needs none.
        home: None,
        sockets: &sockets,
    };
    Ok(FilesystemPlan::new(&request, vec![OWN_V4.into(), OWN_V6.into()], trust)?)
}
