//! A gateway with credentials for bodies, and its one environment, known by its address.

use std::fs;

use outgate_tests::prelude::*;
use serde_json::Value;

pub(crate) const API: &str = "api.example.com";

pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    answer: Value,
}

/// A variable `KEY` for bodies, its value to go where the allowlist names.
pub(crate) fn key(value: &str) -> Value {
    json!({"id": "key", "type": "environment_variable", "value": value,
           "injection_location": "body", "placeholder_prefix": "ghp_"})
}

impl Scene {
    /// Each credential is a variable of its id in capitals; `api.example.com` is named, every other
    /// domain allowed.
    pub(crate) fn new(world: &World, credentials: &[Value]) -> Self {
        Self::with(world, credentials, "")
    }

    pub(crate) fn with(world: &World, credentials: &[Value], configuration: &str) -> Self {
        let gateway = world.gateway_builder().configuration(configuration).start();
        let mut variables = serde_json::Map::new();
        for credential in credentials {
            let id = credential["id"].as_str().expect("an id");
            done(&gateway, "POST", "credentials", credential);
            variables.insert(id.to_uppercase(), json!({"credential": id}));
        }
        let environment = json!({
            "source_addresses": ["127.0.0.1/32"],
            "env": variables,
            "network": {"allowlist": [
                {"domain": API},
                {"domain": "a.ok.example.test", "allow_plaintext": true},
                {"domain": "*"},
            ]},
        });
        let answer = done(&gateway, "POST", "environments", &environment);
        Self { gateway, answer }
    }

    pub(crate) fn id(&self) -> &str {
        self.answer["id"].as_str().expect("an id")
    }

    pub(crate) fn placeholder(&self, variable: &str) -> String {
        let placeholder = &self.answer["env"][variable]["placeholder"];
        placeholder.as_str().expect("a placeholder").to_owned()
    }

    /// A client in a tunnel to `api.example.com`.
    pub(crate) fn client(&self) -> RawClient {
        self.gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to(API))
    }

    /// Fails unless this request is refused so.
    pub(crate) fn refuses(&self, request: impl AsRef<[u8]>, status: u16, reason: &str) {
        let mut client = self.client();
        client.send(request.as_ref());
        let answer = client.read_response();
        let shown = request.as_ref();
        let shown = shown[..shown.len().min(300)].escape_ascii();
        let said = (answer.status, answer.header("outgate-reason"));
        assert_eq!(said, (status, Some(reason)), "{shown}: {}", answer.text());
    }

    /// The audit lines of requests, once there are so many.
    pub(crate) fn audit(&self, count: usize) -> Vec<Value> {
        let requests = || {
            let lines = self.gateway.audit().into_iter();
            lines.filter(|line| line["kind"] == "request").collect::<Vec<_>>()
        };
        assert!(wait_until(Duration::from_secs(10), || requests().len() >= count));
        requests()
    }
}

/// Asks the management API, where the answer has to be a yes.
pub(crate) fn done(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    done_at(gateway, method, &format!("/v1beta/{path}"), body)
}

/// The same of any path.
pub(crate) fn done_at(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = gateway.management(format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len(),
    ));
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
    answer.json()
}

/// A POST with a length.
pub(crate) fn post(fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head =
        format!("POST /p HTTP/1.1\r\nHost: {API}\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// The head of a POST in chunks.
pub(crate) fn chunked_head(fields: &str) -> String {
    format!("POST /p HTTP/1.1\r\nHost: {API}\r\n{fields}Transfer-Encoding: chunked\r\n\r\n")
}

pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

pub(crate) const JSON: &str = "Content-Type: application/json\r\n";
