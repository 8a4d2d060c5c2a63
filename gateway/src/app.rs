//! How do settings become a running gateway, and how does it end?
//!
//! `bind` everything, or nothing starts; then `start` the threads, `drain`, `join`. Every worker is
//! a thread with a runtime of its own that accepts from the same sockets, so that a connection
//! lives and dies on one core. Audit lines, reloading and the management API have a thread each.

mod bind;
mod running;

use std::path::PathBuf;
use std::sync::Arc;

use outgate_certs::Leaves;
use outgate_proxy::{AuditSink, AuditWriter, Gateway, Listener, Parts, Refusals, Resolver};
use serde::Serialize;

use self::bind::Sockets;
pub(crate) use self::running::Running;
use crate::audit::AuditOutput;
use crate::ca;
use crate::config::{BindAddress, ConnectRefusals, Settings};
use crate::environments::{Generation, InForce, address_rules};
use crate::failure::Failure;
use crate::management::{Management, ManagementKey};
use crate::metrics::Metrics;
use crate::reload::{Loaded, Reloader, Reread};
use crate::state_dir;

/// A gateway whose every address is bound, and that serves none of them yet.
pub(crate) struct App {
    gateway: Arc<Gateway>,
    listeners: Vec<Listener>,
    explicit: Vec<BindAddress>,
    management: Management,
    key: ManagementKey,
    audit: (AuditWriter, AuditOutput),
    reloader: Reloader,
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
        state_dir::open(&settings.state_dir).map_err(Failure::start)?;
        settings.warn_of_dangers();
        let authority = Arc::new(ca::authority(&settings)?);
        let leaves = Leaves::new(authority, settings.limits.leaves).map_err(Failure::start)?;
        let rules = address_rules(&settings.addresses, &settings.environments)?;
        let (in_force, Generation { environments, problems, .. }) =
            InForce::load(&settings, &rules, ca::origin_roots(&settings)?)?;
        let output = AuditOutput::open(&settings.audit)?;
        let key = ManagementKey::load_or_create(&settings.state_dir).map_err(Failure::start)?;

        let sockets = Sockets::bind(&settings, &environments)?;
        let management = Management::bind(&settings.management).map_err(Failure::start)?;

        let (audit, writer) = AuditSink::new(settings.limits.audit_wait);
        let gateway = Gateway::new(Parts {
            limits: settings.limits.clone(),
            environments,
            leaves,
            resolver,
            audit,
            refusals: settings.connect_refusals.into(),
        });
        let own = sockets.addresses.iter().chain([management.address()]);
        gateway.bound(own.filter_map(BindAddress::tcp).collect());
        let (metrics, ca) = (Metrics::new(), ca::certificate_path(&settings)?);
        let loaded = Loaded { settings, rules, in_force, problems };
        let reloader =
            Reloader::new(reread, loaded, Arc::clone(&gateway), output.next(), metrics.clone());
        Ok(App {
            gateway,
            listeners: sockets.listeners,
            explicit: sockets.addresses,
            management,
            key,
            audit: (writer, output),
            reloader,
            metrics,
            ca,
        })
    }

    /// Where the explicit proxy really listens.
    pub(crate) fn explicit(&self) -> &[BindAddress] {
        &self.explicit
    }

    /// The line that tells a supervisor that every listener is bound (SPEC 11).
    pub(crate) fn ready(&self) -> Ready {
        Ready {
            event: "ready",
            explicit: self.explicit.iter().map(|bind| bind.absolute().to_string()).collect(),
            socks: [],
            transparent: [],
            dns: [],
            management: self.management.address().absolute().to_string(),
            ca: self.ca.clone(),
        }
    }
}

/// The ready line; the ways in that later work builds are there already, as empty lists.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    event: &'static str,
    explicit: Vec<String>,
    socks: [String; 0],
    transparent: [String; 0],
    dns: [String; 0],
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
