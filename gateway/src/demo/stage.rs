//! What does the demo need around it?
//!
//! A folder that vanishes afterwards, an origin, a service that is none of the sandbox's business,
//! a gateway in front of both, and a secret that only the gateway and the origin may see.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outgate_hooks::{Answer, Phase};
use outgate_policy::AddressConfig;
use outgate_proxy::{Limits, Resolver};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::curl::Curl;
use super::origin::Origin;
use crate::app::{App, Running};
use crate::config::{
    AuditFile, BindAddress, ClientListener, ConnectRefusals, EnvironmentSource, HooksSettings,
    KnownBy, Settings, StoreKeySource, UpstreamSettings, Way,
};
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::reload::{Reread, any_may_be_named};

/// What the origin answers to every request.
pub(super) const GREETING: &str = "hello from the origin";
/// What the service answers to whoever reaches it.
pub(super) const INSIDE: &str = "you are inside";

/// Long enough for a slow disk.
const AUDIT_WAIT: Duration = Duration::from_secs(5);

/// Everything, running.
pub(super) struct Stage {
    pub(super) origin: Origin,
    pub(super) service: Origin,
    pub(super) curl: Curl,
    /// The value of `Authorization`.
    pub(super) secret: String,
    pub(super) audit: PathBuf,
    pub(super) running: Running,
    pub(super) folder: TempDir,
    pub(super) hooks: Arc<Hooks>,
}

impl Stage {
    /// Sets it all up on 127.0.0.1.
    pub(super) fn set(path: Option<OsString>) -> Result<Stage, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("outgate-demo-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(Failure::start)?;
        let origin = Origin::https(&folder.path().join("origin"), GREETING)?;
        let service = Origin::plain(INSIDE)?;
        let secret = format!("Bearer {}", random_text()?);

        let settings = settings(folder.path(), &origin);
        fs::write(folder.path().join("hooks.json"), hooks_file(origin.port()).to_string())
            .map_err(Failure::start)?;
        let environment = environment(&secret, origin.port(), service.port());
        fs::write(folder.path().join("demo.json"), environment.to_string())
            .map_err(Failure::start)?;
        // In the place of DNS: every name of the demo leads to this machine.
        let hosts = "127.0.0.1 docs.example.test api.example.test internal.example.test\n";
        let resolver = Resolver::from_hosts(hosts, &settings.limits).map_err(Failure::start)?;

        let again = settings.clone();
        let reread = Reread {
            settings: Box::new(move || Ok(again.clone())),
            watch: true,
            believable: Box::new(|| Ok(())),
            may_name: any_may_be_named(),
        };
        let app = App::bind(settings, reread, resolver)?;
        let curl = Curl {
            proxy: app.explicit().map(|bind| format!("http://{bind}")).collect(),
            ca: folder.path().join("ca.pem"),
            path,
        };
        let hooks = app.hooks();
        let running = app.start()?;
        let audit = folder.path().join("audit.jsonl");
        Ok(Stage { origin, service, curl, secret, audit, running, folder, hooks })
    }

    /// A URL of the origin under one of its names.
    pub(super) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.origin.port())
    }

    /// What the hooks say of a tool call.
    pub(super) fn ask(&self, phase: Phase, event: &Value) -> Result<Answer, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
        let event = event.to_string();
        let asked = self.hooks.ask("demo", phase, event.as_bytes());
        runtime.block_on(asked).map_err(Failure::start)
    }

    /// The audit so far, once it has `count` lines: they are written just after the answers.
    pub(super) fn audit_lines(&self, count: usize) -> Result<String, Failure> {
        let deadline = Instant::now() + AUDIT_WAIT;
        loop {
            let text = fs::read_to_string(&self.audit).map_err(Failure::start)?;
            if text.lines().count() >= count || Instant::now() > deadline {
                return Ok(text);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What an operator would write in the environment's file.
fn environment(secret: &str, origin: u16, service: u16) -> Value {
    json!({
        "environment_id": "demo",
        "network": {"allowlist": [
            {"domain": "docs.example.test", "ports": [origin]},
            {"domain": "api.example.test", "ports": [origin], "transform": {"Authorization": secret}},
            {"domain": "internal.example.test", "ports": [service]},
        ]},
    })
}

/// A gate that is a command, and a log that is a URL.
fn hooks_file(origin: u16) -> Value {
    let gate = "case \"$(cat)\" in */private/*) echo '{\"decision\": \"deny\", \"reason\": \
                \"not for agents\"}';; *) echo '{\"decision\": \"allow\"}';; esac";
    let url = format!("https://api.example.test:{origin}/events");
    json!({
        "privacy-gate": {"pre_tool_execution": [
            {"matcher": "view_file", "hooks": [{"type": "command", "command": gate}]}]},
        "audit-logging": {"post_tool_execution": [
            {"matcher": "view_file", "hooks": [{"type": "http", "url": url}]}]},
    })
}

/// What an operator would write in their file: the one address that is opened is the origin's.
fn settings(folder: &Path, origin: &Origin) -> Settings {
    let here = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Settings {
        state_dir: folder.to_owned(),
        listeners: vec![ClientListener {
            way: Way::Explicit,
            bind: BindAddress::Tcp(here(0)),
            environment: None,
            implied: true,
        }],
        management: BindAddress::Unix(folder.join("management.sock")),
        environments: vec![EnvironmentSource::File {
            path: folder.join("demo.json"),
            known_by: KnownBy::default(),
        }],
        ca: None,
        addresses: AddressConfig {
            dangerously_allow: vec![here(origin.port())],
            ..AddressConfig::default()
        },
        made_environments: false,
        store_key: StoreKeySource::StateFolder,
        origin_roots: vec![folder.join("origin/ca.pem")],
        // curl shows the body of a refusal only where CONNECT itself succeeded.
        upstream: UpstreamSettings::Direct,
        connect_refusals: ConnectRefusals::Inside,
        hooks: HooksSettings {
            file: Some(folder.join("hooks.json")),
            // There is no sandbox here: the gate is the demo's own.
            dangerously_on_host: true,
            ..HooksSettings::default()
        },
        audit: AuditFile::Path(folder.join("audit.jsonl")),
        limits: Limits::default(),
    }
}

fn random_text() -> Result<String, Failure> {
    let mut bytes = [0; 12];
    rand::fill(&mut bytes).map_err(|_| Failure::start("the system gives no random bytes"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
