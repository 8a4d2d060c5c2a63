//! What changes meanwhile?

use std::thread::Scope;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::load::{Change, Load};
use super::scene::{API, Scene, environment};
use super::*;

/// What there is between two changes of a kind.
#[derive(Clone, Copy)]
pub(super) struct Pauses {
    rotation: Duration,
    reload: Duration,
    tool_call: Duration,
    environment: Duration,
}

/// More often than any operator, for as long as it takes.
pub(super) const OFTEN: Pauses = Pauses {
    rotation: Duration::from_millis(250),
    reload: Duration::from_millis(500),
    tool_call: Duration::from_millis(250),
    environment: Duration::from_millis(500),
};

/// A policy a hundred times a second, a credential ten times.
pub(super) const STORM: Pauses = Pauses {
    rotation: Duration::from_millis(100),
    reload: Duration::from_millis(10),
    tool_call: Duration::from_millis(100),
    environment: Duration::from_millis(200),
};

/// The credential is rotated, the policy changes, tools are called and environments come and go
/// until the load is over.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    scene: &'scope Scene,
    load: &'scope Load,
    pauses: Pauses,
) {
    let Pauses { rotation, reload, tool_call, environment } = pauses;
    scope.spawn(move || repeat(load, rotation, |turn| rotate(scene, load, turn)));
    scope.spawn(move || repeat(load, reload, |turn| change_policy(scene, turn)));
    scope.spawn(move || repeat(load, tool_call, |_| call_a_tool(scene, load)));
    scope.spawn(move || repeat(load, environment, |_| come_and_go(scene, load)));
}

fn repeat(load: &Load, every: Duration, mut change: impl FnMut(u64)) {
    let _guard = load.ends_with_a_panic();
    for turn in 1.. {
        if load.is_over() {
            return;
        }
        change(turn);
        thread::sleep(every);
    }
}

fn rotate(scene: &Scene, load: &Load, turn: u64) {
    let new = json!({"token": scene.value(turn)});
    done(&scene.gateway.api("PATCH", "/v1beta/credentials/key", &new));
    load.did(Change::Rotation);
}

/// Good ones, and now and then one that changes nothing.
fn change_policy(scene: &Scene, turn: u64) {
    match turn % 10 {
        9 => scene.gateway.set_environment_text("{\"network\": {"),
        _ => scene.gateway.set_environment(&environment(turn.is_multiple_of(2))),
    }
    // At once: a file that changes is looked at a moment later.
    scene.gateway.reload();
}

fn call_a_tool(scene: &Scene, load: &Load) {
    let door = "/v1/environments/soak/hooks/pre_tool_execution";
    let event = json!({"tool_call": {"name": "view_file", "args": {"path": "/x"}}});
    let answer = done(&scene.gateway.api("POST", door, &event));
    assert_eq!(answer["outcomes"][0]["outcome"], "allow", "{answer}");
    load.did(Change::ToolCall);
}

/// An environment is made, used and deleted; its clients are nobody's then.
fn come_and_go(scene: &Scene, load: &Load) {
    let gateway = &scene.gateway;
    let wanted = json!({"network": {"allowlist": [{"domain": API, "credential": "key"}]}});
    let made = done(&gateway.api("POST", "/v1beta/environments", &wanted));
    let id = made["id"].as_str().expect("an id");
    let who = format!("{id}:{}", made["proxy_token"].as_str().expect("a token"));
    let mut client = tunnel(scene, &who, API).unwrap_or_else(|status| panic!("{status}"));
    client = client.tls(&Hello::to(API));
    let number = load.number();
    let asks = format!("GET /get/{number} HTTP/1.1\r\nHost: {API}\r\n\r\n");
    assert_eq!(client.exchange(asks).status, 200);
    done(&gateway.api("DELETE", &format!("/v1beta/environments/{id}"), &Value::Null));
    assert_eq!(tunnel(scene, &who, API).err(), Some(407));
    load.did(Change::Stranger);
    assert!(!gateway.metrics().contains(id), "no series outlives its environment");
}

fn tunnel(scene: &Scene, who: &str, name: &str) -> Result<RawClient, u16> {
    let mut client = RawClient::connect(scene.with_tokens(), scene.gateway.ca());
    let token = STANDARD.encode(who);
    client.send(format!(
        "CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\
         Proxy-Authorization: Basic {token}\r\n\r\n"
    ));
    let answer = client.try_read_response("CONNECT").expect("an answer");
    if answer.status == 200 { Ok(client) } else { Err(answer.status) }
}

fn done(answer: &Response) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}
