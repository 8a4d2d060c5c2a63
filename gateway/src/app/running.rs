//! How does a running gateway come to its end?
//!
//! Drain: no new connections, what runs may end. Cut: nothing may. Either way every audit line is
//! written before [`Running::join`] returns.

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use outgate_credentials::Credentials;
use outgate_hooks::Phase;
use outgate_proxy::{AuditWriter, DnsListener, Egress, Environments, Gateway, Listener, Purpose};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc as tokio_mpsc, watch};

use super::App;
use crate::audit::AuditOutput;
use crate::environments::Problem;
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::management::{Asked, Changed, Management, ManagementKey, Shown};
use crate::metrics::Metrics;
use crate::reload::Reloader;
use crate::supply::{Keeping, Supplier, Supply};

/// What the last audit lines have to be written, once nothing runs any more: a disk that is full
/// must not keep the process for ever.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The threads of a gateway.
pub(crate) struct Running {
    gateway: Arc<Gateway>,
    workers: Vec<JoinHandle<()>>,
    /// Ends when every worker has.
    alive: tokio_mpsc::Receiver<Infallible>,
    cut: watch::Sender<bool>,
    management: JoinHandle<()>,
    reloader: JoinHandle<()>,
    reloading: Arc<Notify>,
    suppliers: Vec<JoinHandle<()>>,
    supply: Supply,
    /// Ends the three.
    close: watch::Sender<bool>,
    audit: mpsc::Receiver<()>,
    socket_files: Vec<PathBuf>,
}

impl App {
    /// Starts one worker per core, and a thread for everything else that goes on.
    pub(crate) fn start(self) -> Result<Running, Failure> {
        let (cut, cut_seen) = watch::channel(false);
        let (living, alive) = tokio_mpsc::channel(1);
        let (mut workers, mut runtimes) = (Vec::new(), Vec::new());
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let sockets = self.sockets.try_clone().map_err(Failure::start)?;
            let worker = Worker {
                runtime: runtime()?,
                gateway: Arc::clone(&self.gateway),
                listeners: sockets.listeners,
                names: sockets.names,
                cut: cut_seen.clone(),
                living: living.clone(),
            };
            runtimes.push(worker.runtime.handle().clone());
            workers.push(spawn("worker", move || worker.run())?);
        }
        self.metrics.of_workers(runtimes);
        let (close, closed) = watch::channel(false);
        let supply = Supply {
            gateway: Arc::clone(&self.gateway),
            authority: self.authority,
            orders: self.reloader.orders(),
            problems: watch::Sender::new(Vec::new()),
        };
        let problems = [self.reloader.problems(), supply.problems.subscribe()];
        let credentials = self.gateway.credentials().clone();
        let shown = shown(&self.gateway, problems, &self.metrics, Arc::clone(&self.hooks));
        let changed = changed(&self.gateway, &self.reloader);
        // Before anybody is answered: what is there now is what is pinned.
        self.hooks.start();
        let reloading = Arc::new(Notify::new());
        Ok(Running {
            audit: start_audit(self.audit, &self.metrics)?,
            management: start_management(
                self.management,
                self.key,
                (shown, changed),
                closed.clone(),
            )?,
            reloader: start_reloader(self.reloader, credentials, Arc::clone(&reloading), closed)?,
            reloading,
            suppliers: Vec::new(),
            supply,
            socket_files: self.sockets.files(),
            gateway: self.gateway,
            workers,
            alive,
            cut,
            close,
        })
    }
}

impl Running {
    /// Told once, all that may change is read again.
    pub(crate) fn reloading(&self) -> Arc<Notify> {
        Arc::clone(&self.reloading)
    }

    /// What sends the gateway's own requests for `purpose`.
    pub(crate) fn egress(&self, purpose: Purpose) -> Egress {
        Egress::new(Arc::clone(&self.gateway), purpose)
    }

    /// The environments that are served.
    pub(crate) fn environments(&self) -> Arc<Environments> {
        self.gateway.environments()
    }

    /// Brings the sources of all environments to their places, as long as the gateway runs.
    pub(crate) fn supply(&mut self, kept: Keeping) -> Result<(), Failure> {
        let (network, mut closed) = (runtime()?, self.close.subscribe());
        let supplier = Supplier::new(self.supply.clone(), kept, network.handle().clone());
        let drive = move || {
            // Told, or without anybody who could tell it: either is the end.
            let _ = network.block_on(closed.wait_for(|closed| *closed));
        };
        self.suppliers.push(spawn("supply-net", drive)?);
        let (runtime, closed) = (runtime()?, self.close.subscribe());
        let run = move || runtime.block_on(supplier.run(closed));
        self.suppliers.push(spawn("supply", run)?);
        Ok(())
    }

    /// No new connections; what runs may end within its deadline.
    pub(crate) fn drain(&self) {
        self.gateway.drain();
    }

    /// Nothing may run any more.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Ready when no worker runs any more.
    pub(crate) async fn ended(&mut self) {
        let None = self.alive.recv().await;
    }

    /// Waits for the end of everything, audit lines last.
    pub(crate) fn join(self) -> Result<(), Failure> {
        let panicked = self.workers.into_iter().filter_map(|worker| worker.join().err()).count();
        self.close.send_replace(true);
        let others = [self.management, self.reloader].into_iter().chain(self.suppliers);
        let others = others.filter_map(|thread| thread.join().err()).count();
        for path in self.socket_files {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "a socket file is left behind");
            }
        }
        // The last handles to the sink: its writer ends when all lines are written.
        drop((self.gateway, self.supply));
        if self.audit.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
            return Err(Failure::start("the last audit lines could not be written"));
        }
        match panicked + others == 0 {
            true => Ok(()),
            false => Err(Failure::start("a thread broke off; the log has its panic")),
        }
    }
}

/// One core's share.
struct Worker {
    runtime: Runtime,
    gateway: Arc<Gateway>,
    listeners: Vec<Listener>,
    names: Vec<DnsListener>,
    cut: watch::Receiver<bool>,
    living: tokio_mpsc::Sender<Infallible>,
}

impl Worker {
    fn run(self) {
        let Worker { runtime, gateway, listeners, names, mut cut, living } = self;
        runtime.block_on(async {
            tokio::select! {
                () = gateway.serve(listeners, names) => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
        });
        // Connections that were cut end here, each with its audit line.
        drop(runtime);
        drop(living);
    }
}

/// The receiver hears of the end of the last line.
fn start_audit(
    (writer, output): (AuditWriter, AuditOutput),
    metrics: &Metrics,
) -> Result<mpsc::Receiver<()>, Failure> {
    let (written, audit) = mpsc::channel();
    let mut counting = metrics.counting();
    spawn("audit", move || {
        writer.run(output, |tally| counting.count(tally));
        // Nobody waits any more when the process gave up on a stuck sink.
        let _ = written.send(());
    })?;
    Ok(audit)
}

fn start_management(
    management: Management,
    key: ManagementKey,
    (shown, changed): (Shown, Changed),
    closed: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, Failure> {
    let runtime = runtime()?;
    spawn("management", move || {
        if let Err(error) = runtime.block_on(management.serve(key, shown, changed, closed)) {
            tracing::error!(%error, "the management listener ended");
        }
    })
}

fn start_reloader(
    reloader: Reloader,
    credentials: Credentials,
    asked: Arc<Notify>,
    closed: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, Failure> {
    let runtime = runtime()?;
    // Here, so that a gateway that can't watch has said so when it says that it serves.
    let watch = {
        let _entered = runtime.enter();
        reloader.watch()
    };
    spawn("reload", move || {
        runtime.block_on(async {
            // Ends with the other: what changes in the store is followed as long as files are.
            tokio::select! {
                () = credentials.follow() => {}
                () = reloader.run(watch, asked, closed) => {}
            }
        });
    })
}

fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::start(format_args!("no runtime: {error}")))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| Failure::start(format_args!("no thread for {name}: {error}")))
}

fn changed(gateway: &Arc<Gateway>, reloader: &Reloader) -> Changed {
    Changed {
        credentials: gateway.credentials().clone(),
        audit: gateway.audit().clone(),
        gateway: Arc::clone(gateway),
        rules: reloader.rules(),
        rereads: reloader.rereads(),
    }
}

fn shown(
    gateway: &Arc<Gateway>,
    problems: [watch::Receiver<Vec<Problem>>; 2],
    metrics: &Metrics,
    hooks: Arc<Hooks>,
) -> Shown {
    let (probed, scraped) = (Arc::clone(gateway), Arc::clone(gateway));
    let (counted, metrics) = (problems.clone(), metrics.clone());
    Shown {
        missing: Arc::new(move || {
            let audit = probed.audit().is_stalled();
            let accept = probed.refuses_connections();
            let checks = [(probed.is_draining(), "draining"), (audit, "audit"), (accept, "accept")];
            checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, name)| name).collect()
        }),
        problems: Arc::new(move || {
            let summaries = |of: &watch::Receiver<Vec<Problem>>| {
                of.borrow().iter().map(Problem::summary).collect::<Vec<_>>()
            };
            problems.iter().flat_map(summaries).collect()
        }),
        metrics: Arc::new(move || {
            metrics.render(&scraped, counted.iter().map(|of| of.borrow().len()).sum())
        }),
        hooks: asked(hooks),
    }
}

fn asked(hooks: Arc<Hooks>) -> Arc<dyn Fn(String, Phase, Bytes) -> Asked + Send + Sync> {
    Arc::new(move |id, phase, event| {
        let hooks = Arc::clone(&hooks);
        Box::pin(async move { hooks.ask(&id, phase, &event).await })
    })
}
