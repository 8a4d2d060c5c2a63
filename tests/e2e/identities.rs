//! Whose traffic is it, and can a client pass for another environment's?

#[path = "identities/scene.rs"]
mod scene;

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

use scene::{API, OK, Scene, assert_unauthenticated, authorization};

fn from<'a>(source: &'a str, gateway: &'a Gateway) -> impl Fn() -> RawClient + 'a {
    let source = source.parse().expect("an address");
    move || RawClient::connect_from(source, gateway.explicit(), gateway.ca())
}

fn second_listener(gateway: &Gateway) -> SocketAddr {
    gateway.ready()["explicit"][1].as_str().expect("a second one").parse().expect("an address")
}

#[test]
fn a_token_tells_the_environment_and_is_not_passed_on() {
    isolated(|| {
        let scene = Scene::new();
        let mut gateway = scene.start(&["bind = \"127.0.0.1:0\""], ["TOKEN", "TOKEN"]);
        let client = || gateway.client();
        scene.assert_is(Some(1), client, &scene.header(1));
        scene.assert_is(Some(2), client, &scene.header(2));
        let spelled = scene.header(1).replace("Basic", "bAsIc").replace("Proxy-A", "proxy-a");
        scene.assert_is(Some(1), client, &spelled);
        scene.assert_tokens_unsaid(&gateway);
        let audit = gateway.final_audit();
        let ids: Vec<_> = audit.iter().map(|line| line["environment_id"].clone()).collect();
        assert_eq!(ids, ["e1", "e1", "e2", "e2", "e1", "e1"]);
    });
}

#[test]
fn a_client_that_proves_nothing_is_not_let_in() {
    isolated(|| {
        let scene = Scene::new();
        let mut gateway = scene.start(&["bind = \"127.0.0.1:0\""], ["TOKEN", "TOKEN"]);
        let token = &scene.tokens[0];
        let claims = [
            String::new(),
            authorization("e1:"),
            authorization("e1"),
            authorization(&format!("e1:{}", canary(32))),
            authorization(&format!("e1:{}", &token[..31])),
            authorization(&format!("e1:{token}x")),
            authorization(&format!("e2:{token}")),
            authorization(&format!("E1:{token}")),
            authorization(&format!("nobody:{token}")),
            authorization(&format!(":{token}")),
            format!("Proxy-Authorization: Bearer {token}\r\n"),
            format!("Proxy-Authorization: Basic e1:{token}\r\n"),
            format!("Proxy-Authorization: {token}\r\n"),
            format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("e1:{token}"))),
            scene.header(1) + &scene.header(2),
            scene.header(1) + &scene.header(1),
        ];
        for claim in &claims {
            scene.assert_is(None, || gateway.client(), claim);
        }
        assert_eq!(scene.api.connections(), 0);
        scene.assert_is(Some(1), || gateway.client(), &scene.header(1));
        scene.assert_tokens_unsaid(&gateway);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), (claims.len() + 1) * 2);
        for line in &audit[..claims.len() * 2] {
            assert_eq!(line["reason"], "proxy_authentication_required", "{line}");
            assert_eq!(line.get("environment_id"), None, "nobody knows whose it is: {line}");
        }
    });
}

#[test]
fn a_token_counts_for_its_own_request_only() {
    isolated(|| {
        let scene = Scene::new();
        let gateway = scene.start(&["bind = \"127.0.0.1:0\""], ["TOKEN", "TOKEN"]);
        let mut client = gateway.client();
        let request =
            |lines: &str| format!("GET https://{API}/ HTTP/1.1\r\nHost: {API}\r\n{lines}\r\n");
        let one = request(&scene.header(1));
        client.send_in_pieces(&one, 3, Duration::from_millis(1));
        assert_eq!(client.read_response().status, 200);
        assert_unauthenticated(&client.exchange(request("")));
        assert_unauthenticated(&client.exchange(request(&scene.header(2))));
        assert_eq!(client.exchange(&one).status, 200);
        let requests = scene.api.requests();
        assert_eq!(requests.len(), 2);
        let expected = format!("Bearer {}", scene.secrets[0]);
        for sent in requests {
            assert_eq!(sent.header("authorization"), Some(expected.as_str()));
            assert_eq!(sent.header("proxy-authorization"), None);
        }
        assert_eq!(gateway.wait_audit(4).len(), 4);
    });
}

#[test]
fn a_client_that_waits_to_be_asked_for_its_token_may_answer_on_the_same_connection() {
    isolated(|| {
        let scene = Scene::new();
        let gateway = scene.start(&["bind = \"127.0.0.1:0\""], ["TOKEN", "TOKEN"]);
        let mut client = gateway.client();
        client.send("CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n");
        let asked = client.try_read_response("CONNECT").expect("an answer");
        assert_unauthenticated(&asked);
        assert_eq!(asked.header("connection"), None, "the client is to ask again");
        let answer = Door::ConnectTls.ask(client, API, 443, &scene.header(1));
        assert_eq!(answer.status, 200, "{answer:?}");
        // As a person would: curl offers nothing first when it is to choose the scheme.
        let answer = gateway
            .curl("https://api.example.com/")
            .argument("--proxy-anyauth")
            .argument("--proxy-user")
            .argument(format!("e2:{}", scene.tokens[1]))
            .run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = answer.text();
        assert!(text.contains(&scene.secrets[1]) && !text.contains(&scene.secrets[0]), "{text}");
        assert_eq!(gateway.wait_audit(4).len(), 4);
    });
}

#[test]
fn one_environments_permission_is_not_anothers() {
    isolated(|| {
        let scene = Scene::new();
        let ok = [scene.world.https(OK).start(), scene.world.http(OK).start()];
        let gateway = scene.start(&["bind = \"127.0.0.1:0\""], ["TOKEN", "TOKEN"]);
        for door in Door::ALL {
            let two = door.ask(gateway.client(), OK, door.port(), &scene.header(2));
            assert_eq!(two.header("outgate-reason"), Some("domain_not_allowed"), "{door:?}");
            assert!(two.text().contains("environment e2"), "{two:?}");
        }
        assert_eq!(ok.iter().map(Origin::connections).sum::<usize>(), 0);
        for door in Door::ALL {
            let one = door.ask(gateway.client(), OK, door.port(), &scene.header(1));
            assert_eq!(one.status, 200, "{door:?} {one:?}");
        }
        assert_eq!(gateway.wait_audit(8).len(), 8);
    });
}

#[test]
fn a_source_address_tells_the_environment_and_nothing_said_changes_it() {
    isolated(|| {
        let scene = Scene::new();
        let environments = [
            "source_addresses = [\"10.20.0.0/24\"]\nTOKEN",
            "source_addresses = [\"10.20.0.3\"]\nTOKEN",
        ];
        let gateway = scene.start(&["bind = \"127.0.0.1:0\""], environments);
        scene.assert_is(Some(1), from("10.20.0.2", &gateway), "");
        scene.assert_is(Some(1), from("10.20.0.2", &gateway), &scene.header(1));
        // The narrower block is the one that counts.
        scene.assert_is(Some(2), from("10.20.0.3", &gateway), "");
        scene.assert_is(None, from("10.20.0.2", &gateway), &scene.header(2));
        scene.assert_is(None, from("10.20.0.3", &gateway), &scene.header(1));
        scene.assert_is(None, from("10.20.0.2", &gateway), &authorization("e1:wrong"));
        scene.assert_is(None, from("10.20.1.2", &gateway), "");
        scene.assert_is(Some(2), from("10.20.1.2", &gateway), &scene.header(2));
        let forwarded = "X-Forwarded-For: 10.20.0.2\r\nForwarded: for=10.20.0.2\r\n";
        scene.assert_is(None, from("10.20.1.2", &gateway), forwarded);
    });
}

#[test]
fn a_listener_tells_the_environment_and_nothing_else_may_contradict_it() {
    isolated(|| {
        let scene = Scene::new();
        let socket = network::folder().join("e1.sock");
        let unix = format!("bind = \"unix:{}\"\nenvironment = \"e1\"", socket.display());
        let listeners = [
            "bind = \"127.0.0.1:0\"\nenvironment = \"e1\"",
            "bind = \"[::1]:0\"\nenvironment = \"e2\"",
            &unix,
        ];
        let gateway = scene.start(&listeners, ["TOKEN", "source_addresses = [\"10.20.0.3\"]"]);
        let two = || RawClient::connect(second_listener(&gateway), gateway.ca());
        scene.assert_is(Some(1), || gateway.client(), "");
        scene.assert_is(Some(1), || gateway.client(), &scene.header(1));
        scene.assert_is(Some(2), two, "");
        // e2 has no token: its name alone contradicts nothing.
        scene.assert_is(Some(2), two, &authorization("e2:"));
        scene.assert_is(None, || gateway.client(), &authorization("e2:"));
        scene.assert_is(None, two, &scene.header(1));
        scene.assert_is(None, from("10.20.0.3", &gateway), "");
        scene.assert_is(None, from("10.20.0.3", &gateway), &scene.header(1));
        let ok = scene.world.http(OK).start();
        let answer = Curl::new("http://a.ok.example.test/")
            .argument("--unix-socket")
            .argument(socket)
            .argument("--request-target")
            .argument("http://a.ok.example.test/")
            .run();
        assert_eq!((answer.status, ok.requests().len()), (200, 1), "{answer:?}");
    });
}

#[test]
fn a_listener_that_anybody_can_reach_proves_nothing_by_itself() {
    isolated(|| {
        let scene = Scene::new();
        let listener = "bind = \"11.22.33.99:8080\"\nenvironment = \"e1\"";
        let environments = [
            "source_addresses = [\"10.20.0.2\"]\nTOKEN",
            "source_addresses = [\"10.20.0.3\"]\nTOKEN",
        ];
        let gateway = scene.start(&[listener], environments);
        scene.assert_is(Some(1), from("10.20.0.2", &gateway), "");
        scene.assert_is(Some(1), from("10.20.0.9", &gateway), &scene.header(1));
        scene.assert_is(None, from("10.20.0.9", &gateway), "");
        scene.assert_is(None, from("10.20.0.9", &gateway), &authorization("e1:"));
        scene.assert_is(None, from("10.20.0.9", &gateway), &scene.header(2));
        scene.assert_is(None, from("10.20.0.3", &gateway), "");
        scene.assert_is(None, from("10.20.0.3", &gateway), &scene.header(1));
        scene.assert_is(None, from("127.0.0.1", &gateway), "");
        for (listener, environments) in [
            (listener, ["", "TOKEN"]),
            ("bind = \"0.0.0.0:8081\"", ["", ""]),
            ("bind = \"[::]:8081\"\nenvironment = \"e2\"", ["TOKEN", ""]),
        ] {
            let file = Scene::file(&[listener], environments);
            let builder = scene.world.gateway_builder().configuration(&file);
            let failed = builder.listeners_from_configuration().try_start().err();
            assert_eq!(failed.and_then(|failed| failed.code), Some(70), "{file}");
        }
    });
}
