//! Are values of stored credentials looked for, and said to have come back?

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

use crate::scene::{Made, store};
use crate::{NAME, stars};

/// An origin that shows the request's target and headers.
fn echoing(world: &World) -> Origin {
    world.https(NAME).script(scripts::echo()).start()
}

#[test]
fn the_bare_value_of_every_kind_is_masked_and_its_place_is_said() {
    isolated(|| {
        let world = world!();
        let _origin = echoing(&world);
        let secret = format!("{}/+&=%", canary(30));
        let kinds = [
            (json!({"type": "bearer_token", "token": secret}), "authorization"),
            (
                json!({"type": "bearer_token", "token": secret, "header_name": "X-Key", "prefix": ""}),
                "x-key",
            ),
            (json!({"type": "basic", "username": "me", "password": secret}), "authorization"),
            (json!({"type": "api_key_query", "name": "k y", "key": secret}), "query:k y"),
        ];
        for (mut credential, place) in kinds {
            let mut gateway = world.gateway(json!({"network": {"allowlist": [
                {"domain": NAME, "credential": "main", "scrub": true},
            ]}}));
            credential["id"] = json!("main");
            store(&gateway, &credential);
            let said = gateway.curl("https://api.example.com/p").run();
            assert_eq!(said.status, 200, "{said:?}");
            assert_secret_absent(&said.body, &secret);
            assert!(said.text().contains("*******"), "{}", said.text());
            let audit = gateway.final_audit();
            let line = audit.iter().find(|line| line["kind"] == "request").expect("a line");
            assert_eq!(line["reflected"], json!([place]), "{line}");
            assert_secret_absent(gateway.output(), &secret);
        }
    });
}

#[test]
fn the_bare_value_behind_a_prefix_of_any_words_is_masked() {
    isolated(|| {
        let world = world!();
        let secret = canary(30);
        let shown = format!("your token is {secret}");
        let _origin = world.https(NAME).respond(scripts::ok(&shown)).start();
        for (header, prefix) in [
            ("Authorization", "Bearer"),
            ("Authorization", "Token abc"),
            ("X-Key", "one of many words, and each of them is longer than a value"),
        ] {
            let gateway = world.gateway(json!({"network": {"allowlist": [
                {"domain": NAME, "credential": "main", "scrub": true},
            ]}}));
            store(
                &gateway,
                &json!({"id": "main", "type": "bearer_token", "token": secret,
                        "header_name": header, "prefix": prefix}),
            );
            let said = gateway.curl("https://api.example.com/").run();
            assert_eq!(said.text(), format!("your token is {}", stars(&secret)), "{prefix}");
        }
        let scheme = format!("Our own scheme {secret}");
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": NAME, "transform": {"Authorization": scheme}, "scrub": true},
        ]}}));
        let said = gateway.curl("https://api.example.com/").run();
        assert_eq!(said.text(), format!("your token is {}", stars(&secret)));
    });
}

#[test]
fn what_an_origin_reads_out_of_basic_is_masked_too() {
    isolated(|| {
        let world = world!();
        let password = canary(30);
        let shown = format!("you are me:{password}, your password is {password}");
        let _origin = world.https(NAME).respond(scripts::ok(&shown)).start();
        let pair = STANDARD.encode(format!("me:{password}"));
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": NAME, "transform": {"Authorization": format!("Basic {pair}")}, "scrub": true},
        ]}}));
        let said = gateway.curl("https://api.example.com/").run();
        let due = format!("you are me:{0}, your password is {0}", stars(&password));
        assert_eq!(said.text(), due);
    });
}

#[test]
fn what_stands_for_a_placeholder_comes_back_as_nothing() {
    isolated(|| {
        let world = world!();
        let _origin = echoing(&world);
        let gateway = world.gateway_builder().start();
        let value = canary(40);
        store(
            &gateway,
            &json!({"id": "key", "type": "environment_variable", "value": value,
                    "injection_location": ["header", "query"]}),
        );
        let made = Made::new(
            &gateway,
            &json!({"env": {"KEY": {"credential": "key"}},
                    "network": {"allowlist": [{"domain": NAME, "scrub": true}]}}),
        );
        let placeholder = made.placeholder("KEY");
        let url = format!("https://api.example.com/?k={placeholder}");
        let header = |curl: Curl| curl.header("x-key", &format!("key {placeholder}"));
        let user = format!("x:{placeholder}");
        let asking = [
            (made.curl(&url), json!(["query"])),
            (header(made.curl("https://api.example.com/")), json!(["x-key"])),
            (
                made.curl("https://api.example.com/").argument("--user").argument(user),
                json!(["authorization"]),
            ),
            (made.curl("https://api.example.com/"), json!(null)),
        ];
        for (at, (asking, places)) in asking.into_iter().enumerate() {
            let said = asking.run();
            assert_eq!(said.status, 200, "{said:?}");
            assert_secret_absent(&said.body, &value);
            // The first line tells of the credential.
            let line = &gateway.wait_audit(at + 2)[at + 1];
            assert_eq!(line["environment_id"], made.id());
            assert_eq!(line["reflected"], places, "{line}");
        }
    });
}

#[test]
fn a_token_that_was_refused_is_masked_in_the_answer_to_the_next_one() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let calls = AtomicUsize::new(0);
        let (one, two) = (canary(40), canary(40));
        let tokens = [one.clone(), two.clone()];
        let auth = world.https("auth.example.test").script(move |connection: &mut Connection| {
            while connection.request().is_some() {
                let token = &tokens[calls.fetch_add(1, Ordering::SeqCst).min(1)];
                let body = format!(
                    r#"{{"access_token": "{token}", "token_type": "Bearer", "expires_in": 60}}"#
                );
                connection.send(scripts::ok(body));
            }
        });
        let auth = auth.start();
        let (refused, good) = (one.clone(), format!("Bearer {two}"));
        let api = world.https(NAME).script(move |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                let body = format!("not {refused} but {good}");
                if request.header("authorization") == Some(&*good) {
                    connection.send(scripts::ok(body));
                } else {
                    connection.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
                }
            }
        });
        let api = api.start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": NAME, "credential": "main", "scrub": true},
        ]}}));
        store(
            &gateway,
            &json!({"id": "main", "type": "oauth2", "client_id": "c", "client_secret": "s",
                    "refresh_token": "r", "token_url": "https://auth.example.test/token"}),
        );
        let said = gateway.curl("https://api.example.com/").run();
        assert_eq!((said.status, api.requests().len(), auth.requests().len()), (200, 2, 2));
        assert_eq!(said.text(), format!("not {} but Bearer {}", stars(&one), stars(&two)));
    });
}

#[test]
fn what_was_put_into_a_body_is_masked_too() {
    isolated(|| {
        let world = world!();
        let repeating = |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                connection.send(scripts::ok(request.body));
            }
        };
        let _origin = world.https(NAME).script(Box::new(repeating)).start();
        let gateway = world.gateway_builder().start();
        let value = canary(40);
        store(
            &gateway,
            &json!({"id": "key", "type": "environment_variable", "value": value,
                    "injection_location": "body"}),
        );
        let entry = json!({"domain": NAME, "scrub": true, "websocket_text": true});
        let made = Made::new(
            &gateway,
            &json!({"env": {"KEY": {"credential": "key"}}, "network": {"allowlist": [entry]}}),
        );
        let placeholder = made.placeholder("KEY");
        let ask = || made.curl("https://api.example.com/");
        // Read whole before it is sent, and as it streams.
        for (at, length) in [100, 3 << 20].into_iter().enumerate() {
            let text = format!("{}{placeholder}!", "x".repeat(length));
            let said = ask().header("content-type", "text/plain").body(text).run();
            assert_eq!(said.status, 200, "{at}");
            assert_eq!(said.text(), format!("{}{}!", "x".repeat(length), stars(&value)));
            let line = &gateway.wait_audit(at + 2)[at + 1];
            assert_eq!(line["reflected"], json!(["body"]), "{line}");
        }
        // What comes back over a WebSocket could not be masked.
        let upgrade = ask().argument("--http1.1").header("connection", "upgrade");
        let upgrade = upgrade.header("upgrade", "websocket").header("sec-websocket-version", "13");
        let refused = upgrade.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==").run();
        assert_eq!((refused.status, refused.reason()), (403, Some("protocol_not_allowed")));
    });
}
