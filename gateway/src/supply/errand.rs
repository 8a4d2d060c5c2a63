//! How does one environment come to its sources, and what if it doesn't?

use std::sync::Arc;
use std::time::Duration;

use outgate_policy::Source;
use outgate_proxy::{Egress, Purpose};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::store::Store;
use super::{Depot, clone};
use crate::environments::Wanted;
use crate::sandbox::{trust_paths, variables};
use crate::sources::{self, Asker, SourceError};

/// Before the second try. Most of what fails at first (an origin that restarts, a name that is not
/// there yet) is over soon.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Pauses double up to this: what failed for so long waits for a person, who changes the file.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What goes on for one environment. Dropped, it ends, with everything that it started.
pub(super) struct Errand {
    wanted: watch::Sender<Wanted>,
    task: JoinHandle<()>,
}

impl Errand {
    /// Begins with what is `wanted`. Needs a runtime.
    pub(super) fn send(depot: Arc<Depot>, wanted: Wanted) -> Errand {
        let (wanted, told) = watch::channel(wanted);
        Errand { wanted, task: tokio::spawn(go_on(depot, told)) }
    }

    /// Goes on with what is wanted now, if anything was read anew.
    pub(super) fn tell(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|known| {
            let is_new = !Arc::ptr_eq(&known.sources, &wanted.sources)
                || !Arc::ptr_eq(&known.environment, &wanted.environment);
            *known = wanted;
            is_new
        });
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn go_on(depot: Arc<Depot>, mut told: watch::Receiver<Wanted>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let wanted = told.borrow_and_update().clone();
        let wrong = tokio::select! {
            wrong = bring_all(&depot, &wanted) => wrong,
            () = differs(&mut told, &wanted.sources) => continue,
        };
        let failed = !wrong.is_empty();
        depot.report(wanted.environment.id(), wrong);
        // The policy may permit now what it did not.
        if failed && !Arc::ptr_eq(&told.borrow().sources, &wanted.sources) {
            pause = FIRST_PAUSE;
            continue;
        }
        tokio::select! {
            news = told.changed() => match news {
                Ok(()) => pause = FIRST_PAUSE,
                Err(_) => return,
            },
            () = tokio::time::sleep(pause), if failed => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

/// Ready when other sources are wanted. Other news does not disturb what is under way.
async fn differs(told: &mut watch::Receiver<Wanted>, sources: &Arc<[Source]>) {
    // Without a sender this task is about to end.
    if told.wait_for(|wanted| wanted.sources != *sources).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Brings what is not there yet; what is wrong with the rest.
async fn bring_all(depot: &Depot, wanted: &Wanted) -> Vec<String> {
    let id = wanted.environment.id();
    let mut store = match Store::open(&depot.keeping.settings.state_dir, id) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let mut wrong = Vec::new();
    for source in wanted.sources.iter() {
        if store.has(source) {
            continue;
        }
        match bring(depot, wanted, source, &store).await {
            Ok(()) => wrong.extend(store.note(source).err().map(|error| error.to_string())),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    wrong
}

async fn bring(
    depot: &Depot,
    wanted: &Wanted,
    source: &Source,
    store: &Store,
) -> Result<(), SourceError> {
    let _place = match source {
        Source::Inline { .. } => None,
        Source::Repository { .. } | Source::Gcs { .. } => {
            Some(depot.places.acquire().await.expect("nobody closes it"))
        }
    };
    let caller = &depot.keeping.surroundings.variables;
    // Whoever writes an environment file must not thereby run programs on this machine.
    let variables =
        variables(caller, &[], &[], &trust_paths()).expect("no name of a proxy is kept");
    let to_do = sources::place(&store.root(), std::slice::from_ref(source), &variables)?;
    let egress = Egress::new(Arc::clone(&depot.supply.gateway), Purpose::Source);
    let environment = Arc::clone(&wanted.environment);
    let fetching = async move {
        let asker = Asker { egress: &egress, environment: &environment };
        sources::fetch(to_do.fetches, asker).await
    };
    depot.afar(fetching).end().await?;
    let target = source.target();
    match (source, to_do.preparations.is_empty()) {
        (Source::Repository { .. }, true) if store.knows(target) => {
            Err(SourceError::Occupied { target: target.clone() })
        }
        (_, true) => Ok(()),
        (_, false) => clone::bring(depot, wanted, source, (store, &variables)).await,
    }
}
