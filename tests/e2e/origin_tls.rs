//! Is an origin met as its entry says, and only that one?

#[path = "origin_tls/certificate.rs"]
mod certificate;
#[path = "origin_tls/changed.rs"]
mod changed;
#[path = "origin_tls/files.rs"]
mod files;
#[path = "origin_tls/key_exchange.rs"]
mod key_exchange;

use std::fs;
use std::path::{Path, PathBuf};

use outgate_tests::gateway;
use outgate_tests::prelude::*;
use serde_json::Value;

const API: &str = "api.example.com";
const OK: &str = "a.ok.example.test";
const URL: &str = "https://api.example.com/";

/// A folder with an environment file, and what it names.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir_in(network::folder()).expect("the test's folder").keep();
        Place { folder }
    }

    /// A certificate of ours by the trusted root, as NAME.pem and NAME.key.
    fn identity(&self, world: &World, name: &str) {
        world.pki.leaf("gateway.corp.test").for_clients_only().issue().write(&self.folder, name);
    }

    fn copy(&self, from: &Path, name: &str) {
        fs::copy(from, self.folder.join(name)).expect("the folder is writable");
    }

    /// [`API`] with this `origin`, and [`OK`] without.
    fn says(&self, origin: &Value) -> PathBuf {
        self.writes(&json!({"network": {"allowlist": [
            {"domain": API, "origin": origin}, {"domain": OK},
        ]}}))
    }

    /// In one step, as an editor writes.
    fn writes(&self, environment: &Value) -> PathBuf {
        let file = self.folder.join("env_test.json");
        let new = self.folder.join("new");
        fs::write(&new, environment.to_string()).expect("the folder is writable");
        fs::rename(&new, &file).expect("the folder is writable");
        file
    }

    /// Another gateway each time, in another folder than that of the file.
    fn gateway(&self, world: &World, origin: &Value) -> gateway::Builder {
        let file = self.says(origin);
        world.gateway_builder().argument("--environment").argument(file)
    }
}

fn status(gateway: &Gateway, url: &str) -> (u16, Option<String>) {
    let answer = gateway.curl(url).run();
    (answer.status, answer.reason().map(str::to_owned))
}

fn refused() -> (u16, Option<String>) {
    (502, Some("origin_tls".to_owned()))
}
