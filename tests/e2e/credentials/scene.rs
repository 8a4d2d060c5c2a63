//! How does a test speak to the management API?

use std::fs;

use outgate_tests::prelude::*;
use serde_json::Value;

/// Sends a request with the key and a body, and reads the answer.
pub(super) fn ask(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Response {
    ask_at(gateway, method, &format!("/v1beta/{path}"), body)
}

/// The same of any path.
pub(super) fn ask_at(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Response {
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    gateway.management(format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len(),
    ))
}

/// The same, where the answer has to be a yes.
pub(super) fn done(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let answer = ask(gateway, method, path, body);
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
    answer.json()
}

/// Stores a credential.
pub(super) fn store(gateway: &Gateway, credential: &Value) {
    done(gateway, "POST", "credentials", credential);
}

/// An environment made through the API, and its clients' curl.
pub(super) struct Made<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) answer: Value,
}

impl<'a> Made<'a> {
    pub(super) fn new(gateway: &'a Gateway, environment: &Value) -> Made<'a> {
        let answer = done(gateway, "POST", "environments", environment);
        Made { gateway, answer }
    }

    pub(super) fn id(&self) -> &str {
        self.answer["id"].as_str().expect("an id")
    }

    pub(super) fn curl(&self, url: &str) -> Curl {
        let token = self.answer["proxy_token"].as_str().expect("a token");
        self.gateway.curl(url).argument("--proxy-user").argument(format!("{}:{token}", self.id()))
    }

    pub(super) fn placeholder(&self, variable: &str) -> String {
        let placeholder = &self.answer["env"][variable]["placeholder"];
        placeholder.as_str().expect("a placeholder").to_owned()
    }
}
