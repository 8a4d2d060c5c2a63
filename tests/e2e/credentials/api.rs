//! Does the API do what it is told, in the form that Google's SDKs know?

use outgate_tests::prelude::*;

use super::scene::{Made, ask, ask_at, done, store};

#[test]
fn credentials_are_written_and_never_read_back() {
    isolated(|| {
        let gateway = world!().gateway_builder().start();
        let secret = canary(40);
        let made = done(
            &gateway,
            "POST",
            "credentials",
            &json!({"id": "a", "type": "bearer_token", "token": secret, "prefix": "token"}),
        );
        assert_eq!(
            (&made["id"], &made["type"], &made["status"]),
            (&json!("a"), &json!("bearer_token"), &json!("active"))
        );
        assert_eq!(made["create_time"], made["update_time"]);
        let keys = made.as_object().map(|fields| fields.len());
        assert_eq!(keys, Some(5), "{made}");
        assert_eq!(done(&gateway, "GET", "credentials/a", &json!(null)), made);
        let masked = done(
            &gateway,
            "PATCH",
            "credentials/a?update_mask=prefix",
            &json!({"token": "x y\n", "prefix": ""}),
        );
        assert_ne!(masked["update_time"], made["update_time"]);
        for id in ["c", "b", "d"] {
            store(
                &gateway,
                &json!({"id": id, "type": "basic", "username": "u", "password": secret}),
            );
        }
        let first = done(&gateway, "GET", "credentials?page_size=3", &json!(null));
        let next = first["next_page_token"].as_str().expect("there is more");
        let rest = done(
            &gateway,
            "GET",
            &format!("credentials?page_size=3&page_token={next}"),
            &json!(null),
        );
        let ids = |page: &serde_json::Value| -> Vec<String> {
            let list = page["credentials"].as_array().expect("a list");
            list.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
        };
        assert_eq!(
            (ids(&first), ids(&rest)),
            (vec!["a".into(), "b".into(), "c".into()], vec!["d".into()])
        );
        assert_eq!(rest.get("next_page_token"), None);
        assert_eq!(done(&gateway, "DELETE", "credentials/a", &json!(null)), json!({}));
        for page in [first, rest, masked] {
            assert_secret_absent(page.to_string(), &secret);
        }
    });
}

#[test]
fn a_no_has_googles_form_and_repeats_no_value() {
    isolated(|| {
        let gateway = world!().gateway_builder().start();
        let secret = canary(40);
        let good = json!({"id": "a", "type": "bearer_token", "token": secret});
        store(&gateway, &good);
        let table = [
            ("POST", "credentials", good, 409, "ALREADY_EXISTS"),
            (
                "POST",
                "credentials",
                json!({"id": "b", "type": "bearer_token", "token": format!("{secret}\n")}),
                400,
                "INVALID_ARGUMENT",
            ),
            ("POST", "credentials", json!({"id": "b", "type": secret}), 400, "INVALID_ARGUMENT"),
            (
                "POST",
                "credentials",
                json!({"id": "b", "type": "bearer_token", "token": [secret]}),
                400,
                "INVALID_ARGUMENT",
            ),
            ("POST", "credentials", json!([secret]), 400, "INVALID_ARGUMENT"),
            (
                "PATCH",
                "credentials/a",
                json!({"type": "basic", "password": secret}),
                400,
                "INVALID_ARGUMENT",
            ),
            ("PATCH", "credentials/x", json!({"token": secret}), 404, "NOT_FOUND"),
            ("GET", "credentials/x", json!(null), 404, "NOT_FOUND"),
            ("GET", "credentials?page_size=x", json!(null), 400, "INVALID_ARGUMENT"),
            ("DELETE", "credentials/x", json!(null), 404, "NOT_FOUND"),
            ("PUT", "credentials/a", json!(null), 404, "NOT_FOUND"),
            ("PUT", "credentials", json!(null), 404, "NOT_FOUND"),
            ("PUT", "environments", json!(null), 404, "NOT_FOUND"),
            ("GET", "credentials/%ff", json!(null), 400, "INVALID_ARGUMENT"),
            ("GET", "environments/%ff", json!(null), 400, "INVALID_ARGUMENT"),
            ("POST", "credentials", json!(" ".repeat(8 << 20)), 413, "INVALID_ARGUMENT"),
            ("GET", "environments/x", json!(null), 404, "NOT_FOUND"),
            ("POST", "environments", json!({"environment_id": "a"}), 400, "INVALID_ARGUMENT"),
            (
                "POST",
                "environments",
                json!({"network": {"allowlist": [{"domian": secret}]}}),
                400,
                "INVALID_ARGUMENT",
            ),
            (
                "POST",
                "environments",
                json!({"env": {"K": {"credential": "a"}}}),
                400,
                "INVALID_ARGUMENT",
            ),
        ];
        for (method, path, body, code, status) in table {
            let answer = ask(&gateway, method, path, &body);
            assert_eq!(answer.status, code, "{method} {path}: {}", answer.text());
            let error = &answer.json()["error"];
            assert_eq!((&error["code"], &error["status"]), (&json!(code), &json!(status)));
            assert_secret_absent(answer.text(), &secret);
        }
        assert_secret_absent(gateway.output(), &secret);
    });
}

#[test]
fn an_environment_made_here_is_in_force_at_once_and_after_a_restart() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let mut gateway = world.gateway_builder().start();
        let secret = canary(40);
        let network = json!({"allowlist": [
            {"domain": "api.example.com", "transform": {"Authorization": secret}}]});
        let made = Made::new(&gateway, &json!({"network": network}));
        assert_eq!(
            made.answer["network"]["allowlist"][0]["transform"],
            json!({"Authorization": null})
        );
        assert_eq!(made.answer["status"], "active");
        assert_eq!(made.curl("https://api.example.com/").run().status, 200);
        assert_eq!(
            made.curl("https://a.ok.example.test/").run().reason(),
            Some("domain_not_allowed")
        );
        let path = format!("environments/{}", made.id());
        let shown = done(&gateway, "GET", &path, &json!(null));
        assert_eq!(shown.get("proxy_token"), None);
        assert_secret_absent(shown.to_string(), &secret);
        // What is read can be written back: a null keeps its value.
        let mut network = shown["network"].clone();
        network["allowlist"].as_array_mut().expect("a list").push(json!({"domain": "b.test"}));
        done(&gateway, "PATCH", &path, &json!({"network": network}));
        assert_eq!(made.curl("https://api.example.com/").run().status, 200);
        let none =
            json!({"network": {"allowlist": [{"domain": "b.test", "transform": {"X": null}}]}});
        assert_eq!(ask(&gateway, "PATCH", &path, &none).status, 400);
        let (state, answer) = (gateway.state().to_owned(), made.answer);
        assert_eq!(gateway.stop(), 0);
        let again = world.gateway_builder().state(&state).start();
        let made = Made { gateway: &again, answer };
        assert_eq!(made.curl("https://api.example.com/").run().status, 200);
        let listed = done(&again, "GET", "environments", &json!(null));
        assert_eq!(listed["environments"][0]["id"], made.id());
        done(&again, "DELETE", &path, &json!(null));
        assert_eq!(made.curl("http://api.example.com/").run().status, 407);
        assert_eq!(ask(&again, "GET", &path, &json!(null)).status, 404);
        let seen = origin.requests();
        assert!(seen.iter().all(|one| one.header("authorization") == Some(secret.as_str())));
        assert_eq!(seen.len(), 3);
    });
}

#[test]
fn addresses_that_are_another_environment_s_are_refused() {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.json");
        std::fs::write(&path, "{}").expect("writable");
        let file =
            format!("[[environment]]\nfile = {path:?}\nsource_addresses = [\"10.20.0.0/24\"]\n");
        let gateway = world.gateway_builder().configuration(&file).start();
        let made = |blocks: &[&str]| {
            ask(&gateway, "POST", "environments", &json!({"source_addresses": blocks}))
        };
        assert_eq!(made(&["10.21.0.0/30"]).status, 200);
        for blocks in [&["10.20.0.7"][..], &["10.20.0.0/16"], &["10.22.0.1", "10.21.0.2"]] {
            let refused = made(blocks);
            assert_eq!(refused.status, 409, "{blocks:?}: {}", refused.text());
            assert_eq!(refused.json()["error"]["status"], "ALREADY_EXISTS");
        }
        assert_eq!(made(&["0.0.0.0/0"]).status, 400);
        assert_eq!(made(&["10.21.0.4"]).status, 200);
        let both = std::thread::scope(|scope| {
            let asking = [(), ()].map(|()| scope.spawn(|| made(&["10.23.0.1"]).status));
            asking.map(|one| one.join().expect("no panic"))
        });
        assert_eq!(both.iter().sum::<u16>(), 200 + 409, "one of two at the same time");
    });
}

#[test]
fn what_would_happen_to_a_request_is_told_without_sending_it() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").start();
        let gateway = world.gateway(json!({"environment_id": "e1", "network": {"allowlist": [
            {"domain": "api.example.com", "methods": ["GET"],
             "transform": {"Authorization": "Bearer hunter2"}},
        ]}}));
        let asked = |body| ask_at(&gateway, "POST", "/v1/explain", &body);
        let get = asked(json!({"environment_id": "e1", "url": "https://api.example.com/a"}));
        let allowed = get.json();
        assert_eq!((get.status, &allowed["verdict"]), (200, &json!("allow")), "{allowed}");
        assert_eq!(allowed["domain"], "api.example.com");
        assert_eq!(allowed["injected"], json!(["authorization"]));
        assert!(!allowed.to_string().contains("hunter2"));
        let post =
            json!({"environment_id": "e1", "method": "POST", "url": "https://api.example.com/a"});
        assert_eq!(asked(post).json()["reason"], "method_not_allowed");
        for (status, body) in [
            (404, json!({"environment_id": "e2", "url": "https://api.example.com/"})),
            (400, json!({"environment_id": "e1", "url": "api.example.com"})),
            (400, json!({"environment_id": "e1"})),
            (400, json!({"environment_id": "e1", "url": "https://a.test/", "metod": "GET"})),
        ] {
            assert_eq!(asked(body.clone()).status, status, "{body}");
        }
        assert_eq!(origin.connections(), 0);
    });
}
