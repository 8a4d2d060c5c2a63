//! What is there to be refused, and how is a refusal read?

use outgate_policy::Reason;
use outgate_tests::http::Head;
use outgate_tests::prelude::*;

const LIMITS: &str = "[limits]\nrequest_head = \"500ms\"\nrequest_head_bytes = 8192\n\
                      response_head = \"700ms\"\n";

/// A refusal as any client reads it.
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) phrase: String,
    pub(super) head: Head,
    pub(super) body: String,
}

/// One gateway with something to refuse for every reason that one environment can meet.
pub(super) struct Scene {
    _world: World,
    _origins: Vec<Origin>,
    pub(super) gateway: Gateway,
    pub(super) secret: String,
}

impl Scene {
    pub(super) fn new() -> Self {
        let world = world!();
        let secret = canary(40);
        for (name, address) in [
            ("private.example.test", "10.1.2.3"),
            ("closed.example.test", "11.22.33.70"),
            ("spoiled.example.test", "11.22.33.71"),
            ("garbled.example.test", "11.22.33.72"),
            ("silent.example.test", "11.22.33.73"),
        ] {
            world.name(name, address);
        }
        let spoiled = world.pki.leaf("spoiled.example.test").self_signed().issue();
        let origins = vec![
            world.https("api.example.com").start(),
            world.https("spoiled.example.test").identity(spoiled).start(),
            world.http("garbled.example.test").respond("SMTP READY\r\n\r\n").start(),
            world
                .http("silent.example.test")
                .script(|connection| while !connection.bytes().is_empty() {})
                .start(),
        ];
        let gateway = world
            .gateway_builder()
            .configuration(LIMITS)
            .environment(&environment(&secret))
            .start();
        Self { _world: world, _origins: origins, gateway, secret }
    }

    pub(super) fn ask(&self, request: &str) -> Refused {
        let mut client = self.gateway.client();
        client.send(request);
        let method = if request.starts_with("CONNECT") { "CONNECT" } else { "GET" };
        Refused::read(&mut client, method)
    }

    pub(super) fn get(&self, url: &str) -> Refused {
        self.ask(&request("GET", url))
    }

    pub(super) fn connect(&self, authority: &str) -> Refused {
        self.ask(&format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"))
    }

    pub(super) fn in_tunnel(&self, request: &str) -> Refused {
        let mut client = self.gateway.client().connect_tunnel("api.example.com:80");
        client.send(request);
        Refused::read(&mut client, "GET")
    }

    pub(super) fn internals(&self) -> Vec<String> {
        let explicit = self.gateway.explicit();
        let places = ["11.22.33.", "10.1.2.3", "127.0.0.53", "resolv.conf", ".rs:", "management"];
        let own = [
            network::folder().display().to_string(),
            explicit.to_string(),
            format!(":{}", explicit.port()),
        ];
        places.iter().map(|text| (*text).to_owned()).chain(own).collect()
    }
}

impl Refused {
    pub(super) fn read(client: &mut RawClient, method: &str) -> Self {
        let response = client
            .try_read_response(method)
            .unwrap_or_else(|fault| panic!("no refusal that a client could read: {fault}"));
        Self {
            status: response.status,
            phrase: response.reason.clone(),
            body: response.text(),
            head: response.head,
        }
    }

    /// SPEC 9.
    pub(super) fn check(&self, reason: Reason, internals: &[String], secret: &str) {
        let shown = format!("{:?} {}", self.head, self.body);
        assert_eq!(self.head.value("outgate-reason"), Some(reason.code()), "{shown}");
        assert_eq!(self.status, reason.status(), "{shown}");
        assert_eq!(self.phrase, reason.code(), "{shown}");
        assert_eq!(self.head.value("content-type"), Some("application/json"), "{shown}");
        let body: serde_json::Value = serde_json::from_str(&self.body).expect("JSON");
        let error = &body["error"];
        assert_eq!(error["code"], reason.status(), "{shown}");
        assert_eq!(error["status"], reason.status_name(), "{shown}");
        assert!(error["message"].as_str().is_some_and(|text| text.len() > 10), "{shown}");
        assert_eq!(error["details"].as_array().map(Vec::len), Some(1), "{shown}");
        assert_eq!(error["details"][0]["reason"], reason.code(), "{shown}");
        for internal in internals {
            assert!(!shown.contains(internal.as_str()), "{internal} is in {shown}");
        }
        assert_secret_absent(&shown, secret);
        let offers = self.head.values("proxy-authenticate").len();
        assert_eq!(offers, usize::from(reason.status() == 407), "{shown}");
    }
}

fn environment(secret: &str) -> serde_json::Value {
    json!({"environment_id": "env_xyz789", "network": {"allowlist": [
        {"domain": "api.example.com", "transform": {"Authorization": format!("Bearer {secret}")}},
        {"domain": "denied.example.test", "deny": true},
        {"domain": "methods.example.test", "methods": ["GET"]},
        {"domain": "paths.example.test", "paths": ["/public/**"]},
        {"domain": "credential.example.test", "credential": "absent"},
        {"domain": "nowhere.example.test"},
        {"domain": "private.example.test"},
        {"domain": "closed.example.test"},
        {"domain": "spoiled.example.test"},
        {"domain": "garbled.example.test"},
        {"domain": "silent.example.test"},
    ]}})
}

pub(super) fn request(method: &str, url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}
