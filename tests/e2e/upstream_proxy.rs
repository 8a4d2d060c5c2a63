//! Does everything leave through the operator's upstream proxy, and nothing that may not?

#[path = "upstream_proxy/asked.rs"]
mod asked;
#[path = "upstream_proxy/by_name.rs"]
mod by_name;
#[path = "upstream_proxy/everything.rs"]
mod everything;
#[path = "upstream_proxy/itself.rs"]
mod itself;
#[path = "upstream_proxy/led.rs"]
mod led;
#[path = "upstream_proxy/loops.rs"]
mod loops;
#[path = "upstream_proxy/refused.rs"]
mod refused;
#[path = "upstream_proxy/sandbox.rs"]
mod sandbox;

use outgate_tests::gateway;
use outgate_tests::prelude::*;
use outgate_tests::upstream_proxy::{Reply, UpstreamProxy};
use serde_json::Value;

const API: &str = "api.example.com";
/// Private, as proxies of companies are.
const PROXY: &str = "10.9.8.7:3128";

/// The part of the operator's file.
fn upstream(url: &str, more: &str) -> String {
    format!("[upstream]\nproxy = {url:?}\n{more}\n")
}

fn allowing(names: &[&str]) -> Value {
    let entries: Vec<_> = names.iter().map(|name| json!({"domain": name})).collect();
    json!({"network": {"allowlist": entries}})
}

/// A gateway behind the proxy at [`PROXY`].
fn behind(world: &World, environment: &Value) -> gateway::Builder {
    let file = upstream(&format!("http://{PROXY}"), "");
    world.gateway_builder().configuration(&file).environment(environment)
}
