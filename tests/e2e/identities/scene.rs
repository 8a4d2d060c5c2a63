//! Which two environments share one gateway, and how does each prove itself?

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

pub(super) const API: &str = "api.example.com";
pub(super) const OK: &str = "a.ok.example.test";

/// Environments e1 and e2, each with a secret for the same origin and a token of its own; only e1
/// may go to [`OK`].
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) api: Origin,
    pub(super) secrets: [String; 2],
    pub(super) tokens: [String; 2],
}

impl Scene {
    pub(super) fn new() -> Self {
        let world = world!();
        let api = world.https(API).start();
        let (secrets, tokens) = ([canary(40), canary(40)], [canary(32), canary(32)]);
        let entry = |secret: &str| {
            let value = format!("Bearer {secret}");
            json!({"domain": API, "transform": {"Authorization": value}})
        };
        let entries = [
            json!([entry(&secrets[0]), {"domain": "*.ok.example.test"}]),
            json!([entry(&secrets[1])]),
        ];
        for (number, (list, token)) in entries.iter().zip(&tokens).enumerate() {
            let file = |kind| network::folder().join(format!("e{}.{kind}", number + 1));
            let environment = json!({"network": {"allowlist": list}});
            fs::write(file("json"), environment.to_string()).expect("writable");
            fs::write(file("token"), token).expect("writable");
        }
        Self { world, api, secrets, tokens }
    }

    /// The operator's file: these listeners, and both environments with what else each has.
    pub(super) fn file(listeners: &[&str], environments: [&str; 2]) -> String {
        let folder = network::folder();
        let folder = folder.display();
        let mut file = String::new();
        for listener in listeners {
            file += &format!("[[listener]]\nkind = \"explicit\"\n{listener}\n");
        }
        for (number, more) in environments.iter().enumerate() {
            let number = number + 1;
            let more = more.replace("TOKEN", &format!("token_file = \"{folder}/e{number}.token\""));
            file += &format!("[[environment]]\nfile = \"{folder}/e{number}.json\"\n{more}\n");
        }
        file
    }

    pub(super) fn start(&self, listeners: &[&str], environments: [&str; 2]) -> Gateway {
        let file = Self::file(listeners, environments);
        self.world.gateway_builder().configuration(&file).listeners_from_configuration().start()
    }

    pub(super) fn header(&self, number: usize) -> String {
        authorization(&format!("e{number}:{}", self.tokens[number - 1]))
    }

    /// Goes to the origin as the environment of this number, or is not let in, through every door
    /// that leads over TLS.
    pub(super) fn assert_is(
        &self,
        who: Option<usize>,
        client: impl Fn() -> RawClient,
        lines: &str,
    ) {
        for door in Door::TLS {
            let before = self.api.connections();
            let answer = door.ask(client(), API, door.port(), lines);
            match who {
                Some(number) => {
                    assert_eq!(answer.status, 200, "{door:?} {lines:?} {answer:?}");
                    let sent = scripts::echoed_headers(&answer);
                    let value = format!("Bearer {}", self.secrets[number - 1]);
                    assert_eq!(sent["authorization"], [value], "{door:?} {lines:?}");
                    assert!(!sent.contains_key("proxy-authorization"), "{door:?} {lines:?}");
                }
                None => {
                    assert_unauthenticated(&answer);
                    assert_eq!(self.api.connections(), before, "{door:?} {lines:?}");
                }
            }
        }
    }

    pub(super) fn assert_tokens_unsaid(&self, gateway: &Gateway) {
        for secret in self.tokens.iter().chain(&self.secrets) {
            assert_secret_absent(gateway.output(), secret);
        }
    }
}

pub(super) fn authorization(claim: &str) -> String {
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(claim))
}

pub(super) fn assert_unauthenticated(answer: &Response) {
    assert_eq!(answer.status, 407, "{answer:?}");
    assert_eq!(answer.header("outgate-reason"), Some("proxy_authentication_required"));
    assert_eq!(answer.header("proxy-authenticate"), Some("Basic realm=\"outgate\""));
}
