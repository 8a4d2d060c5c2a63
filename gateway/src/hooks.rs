//! May a tool call of this environment run? Its hooks are asked, where and how they are allowed to
//! be.
//!
//! Commands run in the environment's sandbox ([`Commands`]), URLs are called through the proxy
//! under the environment's own policy. Each outcome is an audit line, and counted with it.

mod commands;
mod guarded;
mod places;
mod transport;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lc_rs::rand;
use outgate_hooks::{Answer, Busy, Discovery, Engine, EventError, Folder, Phase, Places};
use outgate_policy::EnvironmentId;
use outgate_proxy::{Gateway, SinkFull};
use thiserror::Error;
use tokio::sync::watch;

use self::commands::Commands;
pub(crate) use self::commands::InRun;
use self::guarded::Guarded;
use self::places::Found;
use crate::config::{HooksSettings, Settings};
use crate::reload::Orders;

/// What a supervisor is called as, and shows up as among the processes.
const SUPERVISOR: &str = "outgate-hook";

/// Ends the program here if it was started to supervise a command of a hook; to be called before
/// anything else is done.
pub(crate) fn take_over() -> Option<ExitCode> {
    if std::env::args_os().next()? != SUPERVISOR {
        return None;
    }
    // What goes wrong, the gateway's process is told over the control stream, or by its end.
    Some(outgate_hooks::supervise().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// The hooks of every environment.
pub(crate) struct Hooks {
    gateway: Arc<Gateway>,
    settings: HooksSettings,
    state_dir: PathBuf,
    /// Which files the operator names, as of the last reading.
    orders: watch::Receiver<Orders>,
    known: Mutex<HashMap<EnvironmentId, Known>>,
}

/// What is known of one environment.
struct Known {
    guarded: Arc<Guarded>,
    sandbox: Whose,
}

/// Whose word it is where an environment's sandbox is.
#[derive(Copy, Clone, PartialEq)]
enum Whose {
    /// `outgate run` made it.
    Run,
    /// The operator names it. It was opened, or can't be.
    Operator,
    /// Nobody has said it yet.
    Nobody,
}

/// Why the hooks were not asked: the call is not approved.
#[derive(Debug, Error)]
pub(crate) enum Unasked {
    #[error("there is no environment {0}")]
    NoEnvironment(String),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error("the gateway can't write its audit log: {0}")]
    Audit(#[from] SinkFull),
}

impl Hooks {
    /// Hooks as the operator wants them. What the environments' sandboxes are is told by
    /// [`Hooks::guard`], else looked for when they are first asked about.
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        settings: &Settings,
        orders: watch::Receiver<Orders>,
    ) -> Hooks {
        Hooks {
            gateway,
            settings: settings.hooks.clone(),
            state_dir: settings.state_dir.clone(),
            orders,
            known: Mutex::default(),
        }
    }

    /// The sandbox of `outgate run`: the folders in which hooks are looked for, and where commands
    /// run. What is remembered of an earlier process is in `memory`.
    pub(crate) fn guard(
        &self,
        id: &EnvironmentId,
        folders: Vec<Folder>,
        sandbox: InRun,
        memory: Option<PathBuf>,
    ) {
        let guarded = self.guarded(Found { folders, commands: Commands::Run(sandbox) }, memory);
        self.known().insert(id.clone(), Known { guarded, sandbox: Whose::Run });
    }

    /// Looks for the hooks of every environment there is: what is there now is what is pinned.
    pub(crate) fn start(&self) {
        for environment in self.gateway.environments().iter() {
            let guarded = self.of(environment.id());
            match guarded.commands {
                // It is open, and whoever lives there could write what is pinned.
                Commands::Namespaces(_) => guarded.discovery.look_at_once(),
                _ => guarded.discovery.look_ahead(),
            }
        }
    }

    /// Everything of an environment's sandbox is there: what is found now is what is pinned.
    pub(crate) async fn settle(&self, id: &EnvironmentId) {
        self.of(id).discovery.settle().await;
    }

    /// Asks the hooks about an event in JSON.
    pub(crate) async fn ask(
        &self,
        id: &str,
        phase: Phase,
        event: &[u8],
    ) -> Result<Answer, Unasked> {
        let environments = self.gateway.environments();
        // Where one is made anew, another sandbox is meant.
        self.known()
            .retain(|id, known| known.sandbox == Whose::Run || environments.get(id).is_some());
        let environment = EnvironmentId::parse(id).ok();
        let environment = environment.and_then(|id| environments.get(&id).cloned());
        let environment = environment.ok_or_else(|| Unasked::NoEnvironment(id.to_owned()))?;
        let event = outgate_hooks::Event::parse(event)?;
        self.gateway.audit().has_place().await?;
        let guarded = self.of(environment.id());
        Ok(guarded.ask(&self.gateway, &environment, phase, &event, random_id()).await?)
    }

    /// Under one lock: whoever came second would forget what the first had found.
    fn of(&self, id: &EnvironmentId) -> Arc<Guarded> {
        let mut known = self.known();
        let entry = match known.entry(id.clone()) {
            Entry::Occupied(entry) if entry.get().sandbox != Whose::Nobody => entry,
            entry => match (self.named(id), entry) {
                (Some(found), entry) => entry.insert_entry(Known {
                    guarded: self.guarded(found, None),
                    sandbox: Whose::Operator,
                }),
                (None, Entry::Occupied(entry)) => entry,
                (None, Entry::Vacant(entry)) => entry.insert_entry(Known {
                    guarded: self.guarded(places::without_sandbox(&self.state_dir, id), None),
                    sandbox: Whose::Nobody,
                }),
            },
        };
        Arc::clone(&entry.get().guarded)
    }

    fn named(&self, id: &EnvironmentId) -> Option<Found> {
        let files = self.orders.borrow().files.clone();
        places::named(id, &files, &self.state_dir, self.gateway.credentials())
    }

    fn guarded(&self, found: Found, memory: Option<PathBuf>) -> Arc<Guarded> {
        let HooksSettings { file, pin, dangerously_on_host } = &self.settings;
        let Found { commands, folders } = found;
        let places = Places { operator: file.clone(), folders, pin: *pin, memory };
        let commands = match commands {
            Commands::Nowhere(_) if *dangerously_on_host => Commands::on_host(),
            commands => commands,
        };
        let (discovery, engine) = (Discovery::new(places), Engine::default());
        Arc::new(Guarded { discovery, engine, commands })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<EnvironmentId, Known>> {
        self.known.lock().expect("nothing panics while it is held")
    }
}

/// 128 bits, so that runs of different processes have different names too.
fn random_id() -> String {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
