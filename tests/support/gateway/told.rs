//! What does the gateway tell of itself?

use std::fs;

use serde_json::Value;

use super::Gateway;
use crate::http::Response;

impl Gateway {
    /// The status of `/readyz` and what it says.
    ///
    /// # Panics
    /// When the management socket doesn't answer with JSON.
    pub fn readiness(&self) -> (u16, Value) {
        let answer =
            self.management("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        (answer.status, answer.json())
    }

    /// The problems that `/readyz` names.
    ///
    /// # Panics
    /// As [`Gateway::readiness`].
    pub fn problems(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().expect("problems are texts").to_owned();
        self.readiness().1["problems"]
            .as_array()
            .map_or_else(Vec::new, |all| all.iter().map(text).collect())
    }

    /// What the management API answers to a request with its key and this body.
    ///
    /// # Panics
    /// When there is no key, or no answer.
    pub fn api(&self, method: &str, path: &str, body: &Value) -> Response {
        let key =
            fs::read_to_string(self.state().join("management.key")).expect("the key is there");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.management(format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            key.trim(),
            body.len(),
        ))
    }

    /// The text of `/metrics`.
    ///
    /// # Panics
    /// When it is refused.
    pub fn metrics(&self) -> String {
        let answer = self.api("GET", "/metrics", &Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text()
    }

    /// The value of one series of `/metrics`, written as it stands there; 0 where it doesn't.
    ///
    /// # Panics
    /// As [`Gateway::metrics`].
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().expect("values are numbers"))
    }
}
