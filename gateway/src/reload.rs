//! What changes while the gateway runs?
//!
//! Environment and token files, when they change or SIGHUP asks; the operator's file and the audit
//! file, when SIGHUP asks. All is read on a thread of its own. What can't be used changes nothing,
//! and is a problem until it can.

mod following;
mod named;
mod rereads;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use outgate_policy::{AddressRules, EnvironmentId};
use outgate_proxy::{Gateway, TokenEndpoints};
use tokio::sync::{Notify, mpsc, watch};

use self::following::changed;
use self::named::refuse_unhidden;
pub(crate) use self::named::{MayName, any_may_be_named};
pub(crate) use self::rereads::Rereads;
use self::rereads::Wish;
use crate::audit::NextOutput;
use crate::config::{ConfigError, EnvironmentSource, Settings};
use crate::environments::{Generation, InForce, Problem, Wanted, address_rules, made_addresses};
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::watch::Watch;

/// After the first sign of a change: who writes one file often writes more, and a file that is
/// made is empty first. A fraction of the second within which a change must count.
const SETTLE: Duration = Duration::from_millis(100);

/// How what may change is read again.
pub(crate) struct Reread {
    /// The operator's file, with the flags of the start over it.
    pub(crate) settings: Box<dyn Fn() -> Result<Settings, ConfigError> + Send>,
    /// Whether a file that changes is read without being asked for.
    pub(crate) watch: bool,
    /// Whether what is there now was written by whom it should be, as far as can be told.
    pub(crate) believable: Box<dyn Fn() -> Result<(), Failure> + Send>,
    /// Whether a file may be read that is named now, and why not.
    pub(crate) may_name: MayName,
}

/// Keeps a gateway up to date.
pub(crate) struct Reloader {
    reread: Reread,
    settings: Settings,
    rules: AddressRules,
    in_force: InForce,
    endpoints: Arc<TokenEndpoints>,
    gateway: Arc<Gateway>,
    audit: NextOutput,
    metrics: Metrics,
    /// Of what is read only when asked.
    standing: Vec<Problem>,
    problems: watch::Sender<Vec<Problem>>,
    orders: watch::Sender<Orders>,
    known_rules: watch::Sender<AddressRules>,
    wishes: mpsc::Receiver<Wish>,
    rereads: Rereads,
}

/// What is wanted in the sandboxes of environments, after each reading.
#[derive(Clone)]
pub(crate) struct Orders {
    pub(crate) wanted: Vec<Wanted>,
    /// The files that say so.
    pub(crate) files: Vec<EnvironmentSource>,
    /// What those name for their origins.
    pub(crate) named: Vec<PathBuf>,
}

/// What a [`Reloader`] begins with.
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) rules: AddressRules,
    pub(crate) in_force: InForce,
    pub(crate) endpoints: Arc<TokenEndpoints>,
    pub(crate) problems: Vec<Problem>,
}

/// What is read, and what is said of it.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// Files that have changed.
    News,
    /// All, because a person asked: every problem is told again.
    All,
    /// All, because the API has changed something: what is known already is not told again.
    ForApi,
}

impl Reloader {
    pub(crate) fn new(
        reread: Reread,
        loaded: Loaded,
        gateway: Arc<Gateway>,
        audit: NextOutput,
        metrics: Metrics,
    ) -> Reloader {
        let Loaded { settings, rules, in_force, endpoints, problems } = loaded;
        problems.iter().for_each(Problem::log);
        let problems = watch::Sender::new(problems);
        let files = settings.environments.clone();
        let (wanted, named) = (in_force.wanted(), in_force.named());
        let orders = watch::Sender::new(Orders { wanted, files, named });
        let known_rules = watch::Sender::new(rules.clone());
        let (rereads, wishes) = Rereads::new();
        Reloader {
            reread,
            settings,
            rules,
            in_force,
            endpoints,
            gateway,
            audit,
            metrics,
            standing: Vec::new(),
            problems,
            orders,
            known_rules,
            wishes,
            rereads,
        }
    }

    /// What is wanted in sandboxes now.
    pub(crate) fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    /// A way to have the store looked at, if environments in it are served here.
    pub(crate) fn rereads(&self) -> Option<Rereads> {
        self.settings.made_environments.then(|| self.rereads.clone())
    }

    /// The address rules in force.
    pub(crate) fn rules(&self) -> watch::Receiver<AddressRules> {
        self.known_rules.subscribe()
    }

    /// What can't be used now.
    pub(crate) fn problems(&self) -> watch::Receiver<Vec<Problem>> {
        self.problems.subscribe()
    }

    /// Reads what changes, and everything when `asked`, until `stop` turns true or its sender is
    /// gone.
    pub(crate) async fn run(
        mut self,
        mut watch: Option<Watch>,
        asked: Arc<Notify>,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            self.follow(&mut watch);
            tokio::select! {
                () = asked.notified() => self.read_all(),
                Some(Wish { id, done }) = self.wishes.recv() => {
                    let is_in_force = self.read_made(&id);
                    // Whoever asked may have left.
                    let _ = done.send(is_in_force);
                }
                () = changed(&mut watch) => {
                    tokio::time::sleep(SETTLE).await;
                    watch.iter_mut().for_each(Watch::forget);
                    self.read(Reading::News);
                }
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Everything, the operator's file and the audit file too.
    fn read_all(&mut self) {
        tracing::info!("SIGHUP: everything is read again");
        self.standing.clear();
        if let Err(failure) = (self.reread.believable)() {
            self.stands("the files", failure, "what was read last is in force");
            self.standing.iter().for_each(Problem::log);
            self.problems.send_replace(self.standing.clone());
            return self.metrics.reloaded(true);
        }
        if let Err(failure) = self.read_operator() {
            self.stands("the operator's file", failure, "what it said last is in force");
        }
        if let Err(failure) = self.audit.open(&self.settings.audit) {
            self.stands("the audit file", failure, "the old one is written on");
        }
        self.standing.iter().for_each(Problem::log);
        self.read(Reading::All);
    }

    fn read_operator(&mut self) -> Result<(), Failure> {
        let new = (self.reread.settings)().map_err(Failure::input)?;
        let rules = address_rules(&new.addresses, &new.environments, &self.made()?)?;
        refuse_unhidden(&new, &self.settings, &self.reread.may_name)?;
        for name in self.settings.differs_for_a_restart(&new) {
            tracing::warn!("[{name}] has changed: a restart puts it in force");
        }
        new.warn_of_dangers();
        self.rule_by(rules);
        self.settings.addresses = new.addresses;
        self.settings.environments = new.environments;
        self.settings.audit = new.audit;
        Ok(())
    }

    /// Where clients of environments made through the API come from.
    fn made(&self) -> Result<Vec<IpNet>, Failure> {
        made_addresses(&self.settings, self.gateway.credentials()).map_err(Failure::start)
    }

    fn rule_by(&mut self, rules: AddressRules) {
        self.endpoints.replace_rules(rules.clone());
        self.known_rules.send_replace(rules.clone());
        self.rules = rules;
    }

    /// The API has changed an environment. Whether what the store says of it is in force.
    fn read_made(&mut self, id: &EnvironmentId) -> bool {
        let Settings { addresses, environments, .. } = &self.settings;
        let rules = self.made().and_then(|made| address_rules(addresses, environments, &made));
        let is_ruled = rules.is_ok();
        match rules {
            Ok(rules) => self.rule_by(rules),
            Err(failure) => {
                tracing::error!(why = failure.message(), "the old address rules stay in force");
            }
        }
        self.put_in_force(Reading::ForApi);
        is_ruled && !self.problems.borrow().iter().any(|problem| problem.is_of_made(id))
    }

    fn stands(&mut self, what: &str, failure: Failure, instead: &'static str) {
        let details = failure.message().into_iter().map(str::to_owned).collect();
        let place = PathBuf::from(what);
        self.standing.push(Problem { place, details, instead, refuses_start: false });
    }

    /// The environments' files; their policies are in force when this returns.
    fn read(&mut self, reading: Reading) {
        let environments = self.put_in_force(reading);
        let problems = self.problems.borrow().len();
        self.metrics.reloaded(problems > 0);
        tracing::info!(environments, problems, "environment files were read");
    }

    /// The same without a word: nobody changed anything.
    fn read_quietly(&mut self) {
        self.put_in_force(Reading::News);
    }

    fn put_in_force(&mut self, reading: Reading) -> usize {
        let sources = &self.settings.environments;
        let Generation { environments, gone, mut problems } =
            self.in_force.read(sources, &self.rules, reading != Reading::News);
        let count = environments.iter().len();
        self.gateway.replace_environments(environments);
        for environment in gone {
            tracing::warn!(environment = %environment.id(), "it is gone: all is denied to it");
            environment.retire(self.rules.clone());
        }
        let known = self.problems.borrow().clone();
        let is_told = |one: &&Problem| reading == Reading::All || !known.contains(one);
        problems.iter().filter(is_told).for_each(Problem::log);
        problems.extend(self.standing.iter().cloned());
        let is_mended = |old: &&Problem| !problems.iter().any(|new| new.place == old.place);
        for mended in known.iter().filter(is_mended) {
            tracing::info!(file = %mended.place.display(), "it is good again, or gone");
        }
        self.problems.send_replace(problems);
        let (wanted, files) = (self.in_force.wanted(), self.settings.environments.clone());
        let named = self.in_force.named();
        self.orders.send_replace(Orders { wanted, files, named });
        count
    }
}
