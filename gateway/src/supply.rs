//! How do the sources of environments get into the state folder while the gateway serves?
//!
//! Each environment has a task of its own, so that none waits for another one's slow repository:
//!
//! ```text
//! Supplier   what the environment files say now → one errand for each environment
//! errand     brings what is new; what fails is a problem, and tried again
//! store      STATE/environments/ID: root, what was brought there, and what is unfinished
//! clone      a repository, by git in a sandbox of its own, whole or not at all
//! ```
//!
//! Nothing is taken away again: a sandbox may have written among it.

mod clone;
mod errand;
mod store;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_certs::Authority;
use outgate_policy::EnvironmentId;
use outgate_proxy::Gateway;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

pub(crate) use self::clone::CloneError;
use self::errand::Errand;
use crate::config::Settings;
use crate::environments::Problem;
use crate::reload::Orders;
use crate::surroundings::Surroundings;

/// Sources that are fetched at a time: each may have a git of its own, with the memory and the
/// descriptors that this takes.
const AT_A_TIME: usize = 4;

/// What a gateway gives for it.
#[derive(Clone)]
pub(crate) struct Supply {
    pub(crate) gateway: Arc<Gateway>,
    /// The one that issues: the files of another one may be in its place by now.
    pub(crate) authority: Arc<Authority>,
    pub(crate) orders: watch::Receiver<Orders>,
    pub(crate) problems: watch::Sender<Vec<Problem>>,
}

/// What sandboxes are made from, and must not see.
pub(crate) struct Keeping {
    settings: Settings,
    operator_file: Option<PathBuf>,
    surroundings: Surroundings,
}

/// Supplies all environments.
pub(crate) struct Supplier {
    depot: Arc<Depot>,
    orders: watch::Receiver<Orders>,
}

/// What all errands share.
struct Depot {
    supply: Supply,
    keeping: Keeping,
    places: Semaphore,
    /// Where connections live: pools share them with clients, which must not wait for a disk.
    network: Handle,
}

/// Something that goes on on the network's runtime, until this is dropped.
struct Afar<T>(JoinHandle<T>);

impl Keeping {
    pub(crate) fn new(
        settings: &Settings,
        operator_file: Option<&Path>,
        surroundings: &Surroundings,
    ) -> Keeping {
        Keeping {
            settings: settings.clone(),
            operator_file: operator_file.map(Path::to_owned),
            surroundings: surroundings.clone(),
        }
    }

    /// The files that no sandbox sees, where these say what environments there are.
    fn hidden(&self, orders: &Orders) -> Vec<PathBuf> {
        let settings = Settings { environments: orders.files.clone(), ..self.settings.clone() };
        let mut files = settings.kept_from_sandboxes(self.operator_file.as_deref());
        files.extend(orders.named.iter().cloned());
        // One that was deleted is in force all the same.
        files.retain(|file| file.exists());
        files
    }
}

impl Supplier {
    /// Connections are made on `network`.
    pub(crate) fn new(supply: Supply, keeping: Keeping, network: Handle) -> Supplier {
        let orders = supply.orders.clone();
        let depot = Depot { supply, keeping, places: Semaphore::new(AT_A_TIME), network };
        Supplier { depot: Arc::new(depot), orders }
    }

    /// Goes on until `stop` turns true or its sender is gone. To be called on a thread of its own:
    /// it waits for disks, and its sandboxes die with it.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut errands = HashMap::new();
        loop {
            self.send_out(&mut errands);
            tokio::select! {
                changed = self.orders.changed() => if changed.is_err() { return },
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    fn send_out(&mut self, errands: &mut HashMap<EnvironmentId, Errand>) {
        let wanted = self.orders.borrow_and_update().wanted.clone();
        let is_wanted = |id: &EnvironmentId| wanted.iter().any(|one| one.environment.id() == id);
        errands.retain(|id, _| is_wanted(id) || self.depot.forget(id));
        for wanted in wanted {
            let id = wanted.environment.id().clone();
            match errands.get(&id) {
                Some(errand) => errand.tell(wanted),
                None if wanted.sources.is_empty() => {}
                None => drop(errands.insert(id, Errand::send(Arc::clone(&self.depot), wanted))),
            }
        }
    }
}

impl Depot {
    /// Says what is wrong with the sources of an environment, if that is news.
    fn report(&self, id: &EnvironmentId, details: Vec<String>) {
        let new = (!details.is_empty()).then(|| Problem::of_sources(id, details));
        self.supply.problems.send_modify(|problems| {
            let place = Problem::of_sources(id, Vec::new()).place;
            let at = problems.iter().position(|problem| problem.place == place);
            let old = at.map(|at| problems.remove(at));
            match &new {
                Some(problem) if old.as_ref() != Some(problem) => problem.log(),
                None if old.is_some() => {
                    tracing::info!(environment = %id, "all sources are there");
                }
                _ => {}
            }
            problems.extend(new);
        });
    }

    fn afar<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Afar<T> {
        Afar(self.network.spawn(task))
    }

    /// The environment is gone, and so is what was wrong with it.
    fn forget(&self, id: &EnvironmentId) -> bool {
        let place = Problem::of_sources(id, Vec::new()).place;
        self.supply.problems.send_modify(|problems| problems.retain(|one| one.place != place));
        false
    }
}

impl<T> Afar<T> {
    /// Waits for its end; for ever where the gateway ends before it.
    async fn end(mut self) -> T {
        match (&mut self.0).await {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => std::future::pending().await,
        }
    }
}

impl<T> Drop for Afar<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
