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
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use aws_lc_rs::rand;
use outgate_hooks::{Answer, Busy, Discovery, Engine, EventError, Folder, Phase, Places};
use outgate_policy::EnvironmentId;
use outgate_proxy::{Gateway, SinkFull};
use thiserror::Error;

pub(crate) use self::commands::{Commands, InRun};
use self::guarded::Guarded;
use crate::config::{HooksSettings, Settings};

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
    guarded: Mutex<HashMap<EnvironmentId, Arc<Guarded>>>,
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
    pub(crate) fn new(gateway: Arc<Gateway>, settings: &Settings) -> Hooks {
        Hooks {
            gateway,
            settings: settings.hooks.clone(),
            state_dir: settings.state_dir.clone(),
            guarded: Mutex::default(),
        }
    }

    /// An environment's sandbox: the folders in which hooks are looked for, and where commands
    /// run. What is remembered of an earlier process is in `memory`.
    pub(crate) fn guard(
        &self,
        id: &EnvironmentId,
        folders: Vec<Folder>,
        commands: Commands,
        memory: Option<PathBuf>,
    ) -> Arc<Guarded> {
        let HooksSettings { file, pin, dangerously_on_host } = &self.settings;
        let places = Places { operator: file.clone(), folders, pin: *pin, memory };
        let commands = match commands {
            Commands::Nowhere(_) if *dangerously_on_host => Commands::on_host(),
            commands => commands,
        };
        let guarded = Arc::new(Guarded {
            discovery: Discovery::new(places),
            engine: Engine::default(),
            commands,
        });
        self.known().insert(id.clone(), Arc::clone(&guarded));
        guarded
    }

    /// Looks for the hooks of every environment there is: what is there now is what is pinned.
    pub(crate) fn start(&self, settings: &Settings) {
        for (id, commands, folders) in places::sandboxes(settings, self.gateway.credentials()) {
            self.guard(&id, folders, commands, None);
        }
        for environment in self.gateway.environments().iter() {
            self.of(environment.id()).discovery.look_ahead();
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
        let environment = EnvironmentId::parse(id).ok();
        let environment = environment.and_then(|id| self.gateway.environments().get(&id).cloned());
        let environment = environment.ok_or_else(|| Unasked::NoEnvironment(id.to_owned()))?;
        let event = outgate_hooks::Event::parse(event)?;
        self.gateway.audit().has_place().await?;
        let guarded = self.of(environment.id());
        Ok(guarded.ask(&self.gateway, &environment, phase, &event, random_id()).await?)
    }

    fn of(&self, id: &EnvironmentId) -> Arc<Guarded> {
        if let Some(known) = self.known().get(id) {
            return Arc::clone(known);
        }
        let folders = places::fetched(&self.state_dir, id);
        self.guard(id, folders, Commands::none("the environment has no sandbox"), None)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<EnvironmentId, Arc<Guarded>>> {
        self.guarded.lock().expect("nothing panics while it is held")
    }
}

/// 128 bits, so that runs of different processes have different names too.
fn random_id() -> String {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
