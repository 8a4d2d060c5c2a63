//! Do the gateway's own requests go the way of a client's, and under the same rules?
//!
//! The gateway is part of the test here: nothing outside can ask it for a request of its own.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as Sent, StatusCode, header};
use outgate_certs::{Authority, Leaves, OriginRoots};
use outgate_policy::{AddressRules, Denial, Reason, compile};
use outgate_proxy::{
    AuditSink, ContentError, Egress, Environment, Environments, Gateway as Inner, Limits, Parts,
    Purpose, Refusals, Resolver, Snapshot, Upstream,
};
use outgate_tests::prelude::*;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::timeout;

const API: &str = "api.example.com";

/// A gateway within the test, and one environment.
struct Scene {
    runtime: Runtime,
    egress: Option<Egress>,
    environment: Arc<Environment>,
    audit: Written,
    writer: Option<JoinHandle<()>>,
}

/// What came of a request.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Scene {
    fn new(world: &World, environment: &Value) -> Self {
        let folder = network::folder().join("authority");
        let authority = Arc::new(Authority::open_or_create(&folder).expect("a CA"));
        let mut roots = OriginRoots::none();
        roots.add_pem(world.pki.roots()).expect("roots");
        let limits = Limits::default();
        let compiled = compile(&environment.to_string(), "env_test").expect("a valid document");
        let policy = Arc::new(compiled.policy);
        let snapshot =
            Snapshot { policy, addresses: AddressRules::default(), profiles: Arc::default() };
        let environment = Environment::new(&compiled.id, snapshot, &roots, &limits);
        let (audit, writer) = AuditSink::new(limits.audit_wait);
        let written = Written::default();
        let out = written.clone();
        let writer = thread::spawn(move || writer.run(out, |_| {}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let entered = runtime.enter();
        let store = outgate_credentials::LocalStore::in_memory().expect("a store");
        let credentials = outgate_credentials::Credentials::open(Arc::new(store));
        let gateway = Inner::new(Parts {
            credentials: credentials.expect("no credentials"),
            leaves: Leaves::new(authority, 10).expect("a key"),
            resolver: Resolver::system(&limits),
            limits,
            environments: Environments::default(),
            audit,
            refusals: Refusals::Status,
            upstream: Upstream::Direct,
            captures_ipv6: false,
        });
        drop(entered);
        Scene {
            runtime,
            egress: Some(Egress::new(gateway, Purpose::Hook)),
            environment: Arc::new(environment.expect("TLS configurations")),
            audit: written,
            writer: Some(writer),
        }
    }

    fn send(&self, request: Sent<Bytes>) -> Result<Answer, Denial> {
        let egress = self.egress.as_ref().expect("not over yet");
        self.runtime.block_on(async {
            let answer = egress.send(&self.environment, request).await?;
            let (head, content) = answer.into_parts();
            let body = content.collect(1 << 20).await.expect("a whole answer");
            Ok(Answer { status: head.status, headers: head.headers, body })
        })
    }

    fn refusal(&self, request: Sent<Bytes>) -> Denial {
        self.send(request).expect_err("it must not be sent")
    }

    /// Every audit line, once no more can come.
    fn audit(mut self) -> Vec<Value> {
        drop(self.egress.take());
        // Connections in the pool have tasks of their own there.
        drop(self.runtime);
        self.writer.take().expect("once").join().expect("no panic");
        let written = self.audit.0.lock().expect("no panic");
        let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).expect("a line is JSON")).collect()
    }
}

fn get(url: &str) -> Sent<Bytes> {
    Sent::get(url).body(Bytes::new()).expect("a request")
}

fn post(url: &str, body: impl Into<Bytes>) -> Sent<Bytes> {
    Sent::post(url).body(body.into()).expect("a request")
}

#[test]
fn a_request_is_injected_sent_and_told_of_as_a_clients() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).script(scripts::echo()).start();
        let secret = canary(32);
        let scene = Scene::new(
            &world,
            &json!({"network": {"allowlist": [
                {"domain": API, "transform": {"Authorization": format!("Bearer {secret}")}}
            ]}}),
        );
        let mut request = post("https://api.example.com/v1/events?x=1", "{\"tool_call\": {}}");
        for (name, value) in [
            (header::AUTHORIZATION, "mine"),
            (header::CONTENT_TYPE, "application/json"),
            (header::EXPECT, "100-continue"),
            (header::UPGRADE, "websocket"),
            (header::CONNECTION, "upgrade, x-hop"),
            (HeaderName::from_static("x-hop"), "gone"),
        ] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let answer = scene.send(request).expect("sent");
        assert_eq!((answer.status, answer.headers.get("alt-svc")), (StatusCode::OK, None));
        let echoed: Value = serde_json::from_slice(&answer.body).expect("an echo");
        assert_eq!(echoed["body"], "{\"tool_call\": {}}");
        // The same connection serves the next.
        let bodiless = post("https://API.example.com.:443/v1/events", Bytes::new());
        assert_eq!(scene.send(bodiless).expect("sent").status, StatusCode::OK);
        let requests = api.requests();
        assert_eq!((requests.len(), api.connections()), (2, 1));
        assert_eq!(requests[0].target, "/v1/events?x=1");
        assert_eq!(requests[0].head.values("authorization"), [format!("Bearer {secret}").as_str()]);
        for gone in ["expect", "upgrade", "x-hop", "connection"] {
            assert!(requests[0].head.values(gone).is_empty(), "{gone}");
        }
        let audit = scene.audit();
        assert_eq!(audit.len(), 2, "{audit:#?}");
        let line = &audit[0];
        for (field, value) in [
            ("kind", json!("request")),
            ("ingress", json!("hook")),
            ("environment_id", json!("env_test")),
            ("method", json!("POST")),
            ("domain", json!(API)),
            ("path", json!("/v1/events")),
            ("verdict", json!("allow")),
            ("injected", json!(["authorization"])),
            ("status", json!(200)),
            ("bytes_up", json!(17)),
        ] {
            assert_eq!(line[field], value, "{field}");
        }
        assert_eq!(line.get("client"), None);
        assert_secret_absent(format!("{audit:?}"), &secret);
    });
}

#[test]
fn an_answer_is_scrubbed_as_a_clients() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).script(scripts::echo()).start();
        let secret = canary(32);
        let scene = |scrub: bool| {
            let transform = json!({"X-Api-Key": secret});
            let entry = json!({"domain": API, "transform": transform, "scrub": scrub});
            Scene::new(&world, &json!({"network": {"allowlist": [entry]}}))
        };
        let asked = || post("https://api.example.com/v1/events", "{}");
        let control = scene(false).send(asked()).expect("sent");
        assert!(String::from_utf8_lossy(&control.body).contains(&secret), "{control:?}");
        let scene = scene(true);
        let answer = scene.send(asked()).expect("sent");
        assert_secret_absent(&answer.body, &secret);
        assert_eq!(answer.body.len(), control.body.len());
        assert_eq!(scene.audit()[0]["reflected"], json!(["x-api-key"]));
    });
}

#[test]
fn what_a_client_may_not_send_is_not_sent() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let evil = world.https("evil.example.test").start();
        world.name("inside.example.com", "10.0.0.9");
        let inside = world.silent("10.0.0.9:443");
        let scene = Scene::new(
            &world,
            &json!({"network": {"allowlist": [
                {"domain": API, "methods": ["POST"]}, {"domain": "inside.example.com"},
                {"domain": "absent.example.com"}
            ]}}),
        );
        let mut mismatched = post("https://api.example.com/", "x");
        mismatched
            .headers_mut()
            .insert(header::HOST, HeaderValue::from_static("evil.example.test"));
        let mut connect = Sent::new(Bytes::new());
        *connect.method_mut() = Method::CONNECT;
        *connect.uri_mut() = "api.example.com:443".parse().expect("an authority");
        let refused = [
            (get("https://evil.example.test/"), Reason::DomainNotAllowed),
            (get("https://api.example.com/"), Reason::MethodNotAllowed),
            (post("https://api.example.com:8443/", "x"), Reason::PortNotAllowed),
            (post("http://api.example.com/", "x"), Reason::ProtocolNotAllowed),
            (get("https://inside.example.com/"), Reason::AddressNotAllowed),
            (get("https://localhost/"), Reason::AddressNotAllowed),
            (get("https://127.0.0.1/"), Reason::DomainNotAllowed),
            (get("https://absent.example.com/"), Reason::OriginDns),
            (get("https://user@api.example.com/"), Reason::MalformedHost),
            (get("/relative"), Reason::MalformedRequest),
            (mismatched, Reason::NameMismatch),
            (connect, Reason::ConnectInTunnel),
        ];
        let expected: Vec<_> = refused.iter().map(|(_, reason)| reason.code()).collect();
        for (request, reason) in refused {
            let shown = request.uri().to_string();
            assert_eq!(scene.refusal(request).reason, reason, "{shown}");
        }
        assert_eq!((api.connections(), evil.connections(), inside.connections()), (0, 0, 0));
        let audit = scene.audit();
        let told: Vec<_> = audit.iter().map(|line| line["reason"].as_str().expect("why")).collect();
        assert_eq!(told, expected);
    });
}

#[test]
fn a_redirect_is_an_answer() {
    isolated(|| {
        let world = world!();
        let moved = "HTTP/1.1 302 Found\r\nLocation: https://evil.example.test/\r\n\
                     Content-Length: 0\r\n\r\n";
        let api = world.https(API).respond(moved).start();
        let evil = world.https("evil.example.test").start();
        let scene = Scene::new(&world, &json!({"network": {"allowlist": [{"domain": "*"}]}}));
        let answer = scene.send(get("https://api.example.com/")).expect("sent");
        assert_eq!(answer.status, StatusCode::FOUND);
        assert_eq!((api.requests().len(), evil.connections()), (1, 0));
    });
}

#[test]
fn an_answer_is_taken_up_to_a_bound_and_as_long_as_the_caller_waits() {
    isolated(|| {
        let world = world!();
        let endless = scripts::slow(scripts::ok(vec![b'x'; 5000]), 1000, Duration::from_millis(20));
        let _api = world.https(API).script(endless).start();
        let _ok = world.https("a.ok.example.test").script(scripts::truncated(100, 10)).start();
        world.name("chunked.example.com", "11.22.33.77");
        let chunks = scripts::chunked(&["12345", "678"], &[]);
        let _chunked = world.https("chunked.example.com").script(chunks).start();
        let late = scripts::respond_after(Duration::from_secs(30), scripts::ok("late"));
        let _silent = world.https("evil.example.test").script(late).start();
        let scene = Scene::new(&world, &json!({"network": {"allowlist": [{"domain": "*"}]}}));
        let egress = scene.egress.clone().expect("not over yet");
        scene.runtime.block_on(async {
            let collect = async |url: &str, most: usize| {
                let answer = egress.send(&scene.environment, get(url)).await.expect("sent");
                answer.into_body().collect(most).await
            };
            let api = "https://api.example.com/";
            assert!(matches!(collect(api, 4999).await, Err(ContentError::TooLong(4999))));
            assert_eq!(collect(api, 5000).await.expect("whole").len(), 5000);
            let chunked = "https://chunked.example.com/";
            assert!(matches!(collect(chunked, 7).await, Err(ContentError::TooLong(7))));
            assert_eq!(collect(chunked, 8).await.expect("whole"), "12345678");
            let broken = collect("https://a.ok.example.test/", 5000).await;
            assert!(matches!(broken, Err(ContentError::BrokenOff(_))), "{broken:?}");
            let silent = egress.send(&scene.environment, get("https://evil.example.test/"));
            assert!(timeout(Duration::from_millis(200), silent).await.is_err());
        });
        drop(egress);
        let audit = scene.audit();
        assert_eq!(audit.len(), 6, "{audit:#?}");
        assert!([0, 2, 4, 5].iter().all(|at| audit[*at]["error"].is_string()), "{audit:#?}");
    });
}
