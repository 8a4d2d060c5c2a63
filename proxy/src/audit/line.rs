//! What does one audit line look like?
//!
//! Field names are those of the contract; absent fields are left out. serde_json escapes the C0
//! controls; DEL, C1 and the two line separators, which terminals and viewers act on, are escaped
//! on top of that.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{HeaderName, Method, Version};
use outgate_credentials::scrub::Place;
use outgate_policy::{CredentialId, EnvironmentId, Host, Reason, Scheme};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use smallvec::SmallVec;

/// Longest path kept.
pub(super) const PATH_BYTES: usize = 512;
/// Longest method kept.
const METHOD_BYTES: usize = 32;

/// Whether a line tells of a request or of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Request,
    Tunnel,
    Hook,
    Credential,
}

/// What the two legs spoke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Protocols {
    /// Between client and gateway.
    pub(crate) client: Option<Version>,
    /// Between gateway and origin.
    pub(crate) origin: Option<Version>,
}

/// Durations since the start of the record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) connect: Option<Duration>,
    pub(super) tls: Option<Duration>,
    pub(super) first_byte: Option<Duration>,
    pub(super) total: Duration,
}

/// Everything a line may say.
pub(super) struct Line {
    pub(super) time: jiff::Timestamp,
    pub(super) kind: Kind,
    pub(super) id: RecordId,
    pub(super) environment: Option<EnvironmentId>,
    pub(super) ingress: &'static str,
    pub(super) client: Option<IpAddr>,
    pub(super) method: Option<Method>,
    pub(super) scheme: Option<Scheme>,
    pub(super) host: Option<Host>,
    pub(super) port: Option<u16>,
    pub(super) path: Option<String>,
    pub(super) denied: bool,
    pub(super) reason: Option<Reason>,
    pub(super) entry: Option<usize>,
    pub(super) injected: SmallVec<[HeaderName; 2]>,
    pub(super) credentials: SmallVec<[CredentialId; 1]>,
    pub(super) reflected: SmallVec<[Place; 1]>,
    pub(super) status: Option<u16>,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) times: Times,
    pub(super) address: Option<SocketAddr>,
    pub(super) http: Protocols,
    pub(super) error: Option<String>,
    pub(super) hook: Option<HookOutcome>,
}

/// What became of one handler of a hook.
#[derive(Clone, Debug, Serialize)]
pub struct HookOutcome {
    /// The run, as the answer names it.
    pub run: String,
    /// `pre_tool_execution` or `post_tool_execution`.
    pub event: &'static str,
    /// The group, or the file that can't be read.
    pub group: String,
    /// Its place in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// `command` or `http`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// How it ended.
    pub outcome: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Whether the call is denied by it.
    #[serde(skip)]
    pub denied: bool,
    /// How long it took.
    #[serde(skip)]
    pub took: Duration,
}

/// A number that no other record of this machine has: a random start of the process, then a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId {
    pub(super) process: u64,
    pub(super) count: u64,
}

impl Line {
    /// A line that tells no more than that something began.
    pub(super) fn begun(kind: Kind, id: RecordId, ingress: &'static str) -> Box<Line> {
        Box::new(Line {
            time: jiff::Timestamp::now(),
            kind,
            id,
            environment: None,
            ingress,
            client: None,
            method: None,
            scheme: None,
            host: None,
            port: None,
            path: None,
            denied: false,
            reason: None,
            entry: None,
            injected: SmallVec::new(),
            credentials: SmallVec::new(),
            reflected: SmallVec::new(),
            status: None,
            bytes_up: 0,
            bytes_down: 0,
            times: Times::default(),
            address: None,
            http: Protocols::default(),
            error: None,
            hook: None,
        })
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("time", &format_args!("{:.3}", self.time))?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("id", &format_args!("{:016x}-{:x}", self.id.process, self.id.count))?;
        entry(&mut map, "environment_id", self.environment.as_ref().map(EnvironmentId::as_str))?;
        map.serialize_entry("ingress", self.ingress)?;
        entry(&mut map, "client", self.client)?;
        entry(&mut map, "method", self.method.as_ref().map(|m| cut(m.as_str(), METHOD_BYTES)))?;
        entry(&mut map, "scheme", self.scheme.map(Scheme::as_str))?;
        if let Some(host) = &self.host {
            map.serialize_entry("domain", &format_args!("{host}"))?;
        }
        entry(&mut map, "port", self.port)?;
        entry(&mut map, "path", self.path.as_deref())?;
        if let Some(hook) = &self.hook {
            return self.serialize_hook(hook, map);
        }
        map.serialize_entry("verdict", if self.denied { "deny" } else { "allow" })?;
        entry(&mut map, "reason", self.reason.map(Reason::code))?;
        entry(&mut map, "entry", self.entry)?;
        if !self.injected.is_empty() {
            let names = self.injected.iter().map(HeaderName::as_str);
            map.serialize_entry("injected", &names.collect::<SmallVec<[&str; 4]>>()[..])?;
        }
        if !self.credentials.is_empty() {
            let ids = self.credentials.iter().map(CredentialId::as_str);
            map.serialize_entry("credentials", &ids.collect::<SmallVec<[&str; 4]>>()[..])?;
        }
        if !self.reflected.is_empty() {
            let places = self.reflected.iter().map(Place::to_string);
            map.serialize_entry("reflected", &places.collect::<SmallVec<[String; 1]>>()[..])?;
        }
        entry(&mut map, "status", self.status)?;
        map.serialize_entry("bytes_up", &self.bytes_up)?;
        map.serialize_entry("bytes_down", &self.bytes_down)?;
        map.serialize_entry("milliseconds", &self.times)?;
        entry(&mut map, "address", self.address)?;
        if self.http != Protocols::default() {
            map.serialize_entry("http", &self.http)?;
        }
        entry(&mut map, "error", self.error.as_deref())?;
        map.end()
    }
}

impl Line {
    fn serialize_hook<M: SerializeMap>(
        &self,
        hook: &HookOutcome,
        mut map: M,
    ) -> Result<M::Ok, M::Error> {
        map.serialize_entry("verdict", if hook.denied { "deny" } else { "allow" })?;
        map.serialize_entry("hook", hook)?;
        map.serialize_entry("milliseconds", &self.times)?;
        map.end()
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        entry(&mut map, "connect", self.connect.map(milliseconds))?;
        entry(&mut map, "tls", self.tls.map(milliseconds))?;
        entry(&mut map, "first_byte", self.first_byte.map(milliseconds))?;
        map.serialize_entry("total", &milliseconds(self.total))?;
        map.end()
    }
}

impl Serialize for Protocols {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        entry(&mut map, "client", self.client.map(version))?;
        entry(&mut map, "origin", self.origin.map(version))?;
        map.end()
    }
}

/// Appends `line` and a line feed to `to`.
pub(super) fn write(line: &Line, to: &mut Vec<u8>) {
    let mut text = serde_json::Serializer::new(&mut *to);
    // Writing to memory can't fail, and every key is a string.
    if let Err(error) = line.serialize(&mut text) {
        tracing::error!(%error, "an audit line could not be written");
    }
    to.push(b'\n');
}

/// `text` up to `bytes`, cut between characters, with what terminals act on made visible.
pub(super) fn printable(text: &str, bytes: usize) -> String {
    let acts = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    let mut printable = String::with_capacity(text.len().min(bytes));
    for c in cut(text, bytes).chars() {
        if acts(c) {
            printable.extend(c.escape_unicode());
        } else {
            printable.push(c);
        }
    }
    printable
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn entry<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &'static str,
    value: Option<T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, &value),
        None => Ok(()),
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_micros() as f64) / 1000.0
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    }
}
