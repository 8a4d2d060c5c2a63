//! What is the prober told?

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::witness::{Objects, Witness};
use crate::run::Prepared;

/// Of a kind; a machine may have thousands.
const MOST: usize = 64;

/// Where programs of a host are spoken to that could do everything for a sandbox.
const WELL_KNOWN: [&str; 8] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/stdout",
    "/tmp/.X11-unix/X0",
];

/// All of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Brief {
    pub(super) canary: String,
    /// Where the witness listens.
    pub(super) tcp: Vec<SocketAddr>,
    pub(super) udp: Vec<SocketAddr>,
    /// Where others of the host listen on loopback.
    pub(super) neighbours: Vec<SocketAddr>,
    pub(super) named_sockets: Vec<PathBuf>,
    pub(super) abstract_sockets: Vec<Vec<u8>>,
    /// The witness's in the state folder, and the gateway's own.
    pub(super) management: Vec<PathBuf>,
    pub(super) state_dir: PathBuf,
    pub(super) state_canary: PathBuf,
    /// The environment file and the operator's.
    pub(super) operator_files: Vec<PathBuf>,
    /// Files with the canary in folders that a sandbox has anew.
    pub(super) shared: Vec<PathBuf>,
    pub(super) set_id: Option<PathBuf>,
    /// A process outside.
    pub(super) bystander: u32,
    pub(super) objects: Objects,
    /// A name that the environment allows on port 443, if there is one.
    pub(super) allowed: Option<String>,
}

impl Brief {
    /// Of what the witness has in place and what goes on at the host.
    pub(super) fn new(witness: &Witness, prepared: &Prepared<'_>) -> io::Result<Brief> {
        let (tcp, udp) = witness.addresses();
        let files = witness.files();
        let management = prepared.settings.management.unix();
        let management: Vec<_> =
            files.sockets("management").into_iter().chain(management).collect();
        let (named, nameless) = sockets_of_host();
        let well_known = WELL_KNOWN.map(PathBuf::from);
        let named = files.sockets("named-sockets").into_iter().chain(named).chain(well_known);
        let named: BTreeSet<_> = named.filter(|socket| !management.contains(socket)).collect();
        let own = witness.abstract_name().to_vec();
        let nameless: BTreeSet<_> = [own].into_iter().chain(nameless).collect();
        let state_dir = fs::canonicalize(&prepared.settings.state_dir)?;
        let config = prepared.args.operator.config.as_deref();
        let operator_files = config.into_iter().chain([prepared.environment()]);
        Ok(Brief {
            canary: witness.canary.clone(),
            neighbours: neighbours(&tcp),
            tcp,
            udp,
            named_sockets: named.into_iter().collect(),
            abstract_sockets: nameless.into_iter().collect(),
            management,
            state_dir,
            state_canary: files.state_canary(),
            operator_files: operator_files.map(Path::to_owned).collect(),
            shared: files.shared(),
            set_id: files.set_id(),
            bystander: witness.process(),
            objects: witness.objects(),
            allowed: None,
        })
    }
}

/// The first name that an HTTPS request may be made to, as the environment's text has it.
pub(super) fn allowed_name(environment: &str) -> Option<String> {
    let document: Value = serde_json::from_str(environment).ok()?;
    let Some(network) = document.get("network") else { return Some("verify.example".to_owned()) };
    let entries = network.get("allowlist")?.as_array()?;
    let names = entries.iter().filter(|entry| is_plain_https(entry)).filter_map(|entry| {
        let domain = entry.get("domain")?.as_str()?;
        let name = match domain.strip_prefix("*.") {
            Some(suffix) => format!("outgate-verify.{suffix}"),
            None if domain == "*" => "verify.example".to_owned(),
            None => domain.to_owned(),
        };
        name.parse::<IpAddr>().is_err().then_some(name)
    });
    names.into_iter().next()
}

fn is_plain_https(entry: &Value) -> bool {
    let is = |key: &str, value: &str| entry.get(key).is_none_or(|it| it == value);
    let ports = entry.get("ports").and_then(Value::as_array);
    is("protocol", "http")
        && is("tls", "intercept")
        && entry.get("deny").is_none_or(|deny| deny == false)
        && ports.is_none_or(|ports| ports.iter().any(|port| port == 443))
}

/// What the kernel lists as listening where loopback reaches it.
fn neighbours(known: &[SocketAddr]) -> Vec<SocketAddr> {
    let tables = [
        ("/proc/net/tcp", IpAddr::from(Ipv4Addr::LOCALHOST)),
        ("/proc/net/tcp6", IpAddr::from(Ipv6Addr::LOCALHOST)),
    ];
    let mut found = Vec::new();
    for (table, loopback) in tables {
        let text = fs::read_to_string(table).unwrap_or_default();
        found
            .extend(text.lines().filter_map(listening).map(|port| SocketAddr::new(loopback, port)));
    }
    found.retain(|address| !known.contains(address));
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    found
}

/// `sl local_address rem_address st …`: the port, where the state is that of a listener (proc(5)).
fn listening(line: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, state) = (fields.next()?, fields.nth(1)?);
    let port = local.rsplit(':').next()?;
    (state == "0A").then(|| u16::from_str_radix(port, 16).ok())?
}

/// With a path, and without one.
fn sockets_of_host() -> (Vec<PathBuf>, Vec<Vec<u8>>) {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let (mut named, mut nameless) = (Vec::new(), Vec::new());
    for name in text.lines().filter_map(listening_socket) {
        match name.strip_prefix('@') {
            Some(name) => nameless.push(name.as_bytes().to_vec()),
            None => named.push(PathBuf::from(name)),
        }
    }
    named.truncate(MOST);
    nameless.truncate(MOST);
    (named, nameless)
}

/// `Num RefCount Protocol Flags Type St Inode Path`: the path of one that accepts connections.
/// Small numbers of inodes have blanks before them, and paths may have some.
fn listening_socket(line: &str) -> Option<&str> {
    let mut rest = line;
    let mut fields = [""; 7];
    for field in &mut fields {
        (*field, rest) = rest.trim_start().split_once(' ')?;
    }
    (fields[3] == "00010000").then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_name_that_https_may_go_to() {
        let name =
            |entries: &str| allowed_name(&format!("{{\"network\": {{\"allowlist\": {entries}}}}}"));
        assert_eq!(name("[]"), None);
        assert_eq!(name("\"disabled\""), None);
        assert_eq!(name(r#"[{"domain": "192.0.2.9"}, {"domain": "a.b"}]"#).unwrap(), "a.b");
        assert_eq!(name(r#"[{"domain": "*.a.b"}]"#).unwrap(), "outgate-verify.a.b");
        let others = r#"[{"domain": "a.b", "ports": [22], "protocol": "tcp"},
            {"domain": "c.d", "deny": true}, {"domain": "e.f", "tls": "passthrough"},
            {"domain": "g.h", "ports": [8443]}]"#;
        assert_eq!(name(others), None);
        assert_eq!(allowed_name("{}").unwrap(), "verify.example");
    }

    #[test]
    fn reads_sockets_from_the_kernel_s_table() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01    12 /a b/c";
        assert_eq!(listening_socket(line), Some("/a b/c"));
        assert_eq!(listening_socket(&line.replace("00010000", "00000000")), None);
        assert_eq!(
            listening_socket("Num       RefCount Protocol Flags    Type St Inode Path"),
            None
        );
    }

    #[test]
    fn reads_listeners_from_the_kernel_s_table() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000";
        assert_eq!(listening(line), Some(8080));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
    }
}
