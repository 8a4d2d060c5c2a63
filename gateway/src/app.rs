//! How do settings become a running gateway, and how does it end?
//!
//! `bind` everything, or nothing starts; then `start` the threads, `drain`, `join`. Every worker is
//! a thread with a runtime of its own that accepts from the same sockets, so that a connection
//! lives and dies on one core. Audit lines, reloading and the management API have a thread each.

mod bind;
mod mesh;
mod running;

use std::path::PathBuf;
use std::sync::Arc;

use outgate_certs::{Authority, Leaves};
use outgate_credentials::Credentials;
use outgate_proxy::{
    AuditSink, AuditWriter, Environments, Gateway, Listener, Parts, Refusals, Resolver,
    TokenEndpoints,
};
use serde::Serialize;

pub(crate) use self::bind::Sockets;
pub(crate) use self::running::Running;
use crate::audit::AuditOutput;
use crate::ca;
use crate::config::{BindAddress, ConnectRefusals, Settings, Way};
use crate::environments::{Generation, InForce, address_rules, made_addresses};
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::management::{Management, ManagementKey};
use crate::metrics::Metrics;
use crate::reload::{Loaded, Reloader, Reread};
use crate::state_dir;
use crate::store;

/// A gateway whose every address is bound, and that serves none of them yet.
pub(crate) struct App {
    gateway: Arc<Gateway>,
    authority: Arc<Authority>,
    sockets: Sockets,
    management: Management,
    key: ManagementKey,
    audit: (AuditWriter, AuditOutput),
    reloader: Reloader,
    hooks: Arc<Hooks>,
    metrics: Metrics,
    ca: PathBuf,
}

impl App {
    /// Reads what `settings` name, and binds every address. What may change later is read again as
    /// `reread` has it.
    pub(crate) fn bind(
        settings: Settings,
        reread: Reread,
        resolver: Resolver,
    ) -> Result<App, Failure> {
        App::over(settings, reread, resolver, |settings, environments, credentials| {
            store::warn_of_unreadable(credentials, |_| "until it is there");
            Sockets::bind(settings, environments)
        })
    }

    /// The same with sockets from elsewhere, asked for once the environments are known.
    pub(crate) fn over(
        settings: Settings,
        reread: Reread,
        resolver: Resolver,
        sockets: impl FnOnce(&Settings, &Environments, &Credentials) -> Result<Sockets, Failure>,
    ) -> Result<App, Failure> {
        mesh::refuse()?;
        state_dir::open(&settings.state_dir).map_err(Failure::start)?;
        settings.warn_of_dangers();
        let authority = Arc::new(ca::authority(&settings)?);
        let leaves =
            Leaves::new(Arc::clone(&authority), settings.limits.leaves).map_err(Failure::start)?;
        let credentials = store::open(&settings.state_dir, &settings.store_key)?;
        let made = made_addresses(&settings, &credentials).map_err(Failure::start)?;
        let rules = address_rules(&settings.addresses, &settings.environments, &made)?;
        let roots = ca::origin_roots(&settings)?;
        let may_name = Arc::clone(&reread.may_name);
        let (in_force, Generation { environments, problems, .. }) =
            InForce::load(&settings, &rules, roots.clone(), credentials.clone(), may_name)?;
        let output = AuditOutput::open(&settings.audit)?;
        let key = ManagementKey::load_or_create(&settings.state_dir).map_err(Failure::start)?;

        let sockets = sockets(&settings, &environments, &credentials)?;
        let management = Management::bind(&settings.management).map_err(Failure::start)?;

        let (audit, writer) = AuditSink::new(settings.limits.audit_wait);
        let gateway = Gateway::new(Parts {
            limits: settings.limits.clone(),
            environments,
            leaves,
            resolver,
            credentials: credentials.clone(),
            audit,
            refusals: settings.connect_refusals.into(),
            upstream: settings.upstream.open(&roots).map_err(Failure::start)?,
            captures_ipv6: sockets.listeners.iter().any(Listener::captures_ipv6),
        });
        let endpoints = TokenEndpoints::new(&gateway, rules.clone(), &roots);
        let endpoints = Arc::new(endpoints.map_err(Failure::start)?);
        credentials.connect(endpoints.clone());
        tell_own_addresses(&gateway, sockets.addresses().chain([management.address()]))?;
        let (metrics, ca) = (Metrics::new(), ca::certificate_path(&settings)?);
        let started = settings.clone();
        let loaded = Loaded { settings, rules, in_force, endpoints, problems };
        let reloader =
            Reloader::new(reread, loaded, Arc::clone(&gateway), output.next(), metrics.clone());
        let hooks = Arc::new(Hooks::new(Arc::clone(&gateway), &started, reloader.orders()));
        Ok(App {
            gateway,
            authority,
            sockets,
            management,
            key,
            audit: (writer, output),
            reloader,
            hooks,
            metrics,
            ca,
        })
    }

    /// Where the explicit proxy really listens.
    pub(crate) fn explicit(&self) -> impl Iterator<Item = &BindAddress> {
        self.sockets.of(Way::Explicit)
    }

    /// Who is asked about tool calls.
    pub(crate) fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.hooks)
    }

    fn addresses(&self, way: Way) -> Vec<String> {
        self.sockets.of(way).map(|bind| bind.absolute().to_string()).collect()
    }

    /// The line that tells a supervisor that every listener is bound (SPEC 11).
    pub(crate) fn ready(&self) -> Ready {
        Ready {
            event: "ready",
            explicit: self.addresses(Way::Explicit),
            socks: self.addresses(Way::Socks),
            transparent: self.addresses(Way::Transparent),
            dns: self.addresses(Way::Dns),
            management: self.management.address().absolute().to_string(),
            ca: self.ca.clone(),
        }
    }
}

/// Has the gateway dial none of its `own` addresses.
fn tell_own_addresses<'a>(
    gateway: &Gateway,
    own: impl Iterator<Item = &'a BindAddress>,
) -> Result<(), Failure> {
    gateway.bound(own.filter_map(BindAddress::tcp).collect());
    if gateway.is_its_own_upstream() {
        return Err(Failure::start(
            "[upstream] proxy is a listener of this gateway itself: nothing would ever leave",
        ));
    }
    Ok(())
}

/// The ready line.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    event: &'static str,
    explicit: Vec<String>,
    socks: Vec<String>,
    transparent: Vec<String>,
    dns: Vec<String>,
    management: String,
    ca: PathBuf,
}

impl From<ConnectRefusals> for Refusals {
    fn from(refusals: ConnectRefusals) -> Refusals {
        match refusals {
            ConnectRefusals::Status => Refusals::Status,
            ConnectRefusals::Inside => Refusals::Inside,
        }
    }
}
