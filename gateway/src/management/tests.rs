//! Does the API answer over a real Unix socket as SPEC 8 says?

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outgate_certs::{Authority, Leaves};
use outgate_credentials::LocalStore;
use outgate_proxy::{Environments, Limits, Parts, Refusals, Resolver, Upstream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime;

use super::*;

/// A management listener on a socket in a folder of its own.
struct Running {
    folder: TempDir,
    full: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    ended: std::thread::JoinHandle<()>,
}

/// Of a gateway that serves nothing.
fn changed(folder: &std::path::Path) -> Changed {
    let limits = Limits::default();
    let authority = Arc::new(Authority::open_or_create(folder).unwrap());
    let store = LocalStore::in_memory().unwrap();
    let credentials = Credentials::open(Arc::new(store)).unwrap();
    let (audit, writer) = AuditSink::new(limits.audit_wait);
    std::thread::spawn(move || writer.run(std::io::sink(), |_| {}));
    let gateway = Gateway::new(Parts {
        leaves: Leaves::new(authority, 1).unwrap(),
        resolver: Resolver::from_hosts("", &limits).unwrap(),
        limits,
        environments: Environments::default(),
        credentials: credentials.clone(),
        audit: audit.clone(),
        refusals: Refusals::Status,
        upstream: Upstream::Direct,
        captures_ipv6: false,
    });
    let rules = watch::channel(AddressRules::default()).1;
    Changed { credentials, audit, gateway, rules, rereads: None }
}

impl Running {
    fn start() -> Running {
        let folder = tempfile::tempdir().unwrap();
        let address = BindAddress::Unix(folder.path().join("m.sock"));
        let management = Management::bind(&address).unwrap();
        let key = ManagementKey::load_or_create(folder.path()).unwrap();
        let full = Arc::new(AtomicBool::new(false));
        let sink = Arc::clone(&full);
        let broken = Arc::clone(&full);
        let shown = Shown {
            missing: Arc::new(move || match sink.load(Ordering::Relaxed) {
                true => vec!["audit"],
                false => Vec::new(),
            }),
            problems: Arc::new(move || match broken.load(Ordering::Relaxed) {
                true => vec!["one.json can't be used".to_owned()],
                false => Vec::new(),
            }),
            metrics: Arc::new(|| "outgate_environments 7\n".to_owned()),
            hooks: Arc::new(|id, _, _| Box::pin(async { Err(Unasked::NoEnvironment(id)) })),
        };
        let changed = changed(folder.path());
        let (stop, stopped) = watch::channel(false);
        let ended = std::thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(management.serve(key, shown, changed, stopped)).unwrap();
        });
        Running { folder, full, stop, ended }
    }

    fn key(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("management.key")).unwrap()
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.path().join("m.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// The status and the body of the answer to one request.
    fn ask(&self, line: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let mut stream = self.connect();
        let mut head = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

#[test]
fn probes_need_no_key() {
    let running = Running::start();
    assert_eq!(running.ask("GET /healthz", &[]), (200, json!({"healthy": true})));
    assert_eq!(running.ask("GET /readyz", &[]), (200, json!({"ready": true})));
}

#[test]
fn says_what_is_missing_when_not_ready() {
    let running = Running::start();
    running.full.store(true, Ordering::Relaxed);
    let problems = ["one.json can't be used"];
    let missing = json!({"ready": false, "missing": ["audit"], "problems": problems});
    assert_eq!(running.ask("GET /readyz", &[]), (503, missing));
    assert_eq!(running.ask("GET /healthz", &[]).0, 200);
}

#[test]
fn everything_else_needs_the_key_even_to_learn_that_it_is_not_there() {
    let running = Running::start();
    let key = running.key();
    for line in ["GET /v1beta/nothing", "GET /", "POST /healthz", "DELETE /readyz", "GET //"] {
        let (status, body) = running.ask(line, &[]);
        assert_eq!((status, &body["error"]["status"]), (401, &json!("UNAUTHENTICATED")), "{line}");
        assert_eq!(body["error"]["code"], 401);
        let (status, body) = running.ask(line, &[("X-Goog-Api-Key", &key)]);
        assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")), "{line}");
    }
}

#[test]
fn a_wrong_or_doubled_key_is_none() {
    let running = Running::start();
    let key = running.key();
    let twice = [("x-goog-api-key", key.as_str()), ("x-goog-api-key", key.as_str())];
    let near = format!("{key}x");
    for headers in [&[("x-goog-api-key", near.as_str())][..], &[("x-goog-api-key", "")], &twice] {
        let (status, body) = running.ask("GET /v1beta/environments", headers);
        assert_eq!(status, 401, "{headers:?}");
        assert!(!body.to_string().contains(&key));
    }
}

#[test]
fn the_socket_file_goes_with_the_gateway() {
    let running = Running::start();
    running.ask("GET /healthz", &[]);
    running.stop.send(true).unwrap();
    running.ended.join().unwrap();
    assert!(!running.folder.path().join("m.sock").exists());
}

#[test]
fn binds_loopback_and_says_where() {
    let any: BindAddress = "127.0.0.1:0".parse().unwrap();
    let bound = Management::bind(&any).unwrap();
    let BindAddress::Tcp(address) = bound.address() else { panic!("not TCP") };
    assert_ne!(address.port(), 0);
    assert!(Management::bind(bound.address()).is_err());
}
