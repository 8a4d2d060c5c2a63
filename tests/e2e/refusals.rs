//! Does a client that is refused read why, and no more than that?

#[path = "refusals/scene.rs"]
mod scene;

use std::collections::BTreeSet;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_policy::Reason;
use outgate_tests::prelude::*;

use scene::{Refused, Scene, request};

/// What later work makes reachable, and what `audit.rs` drives with a sink that is full.
const ELSEWHERE: [Reason; 6] = [
    Reason::PlaceholderNotTrusted,
    Reason::EchInPassthrough,
    Reason::BodyTooLarge,
    Reason::EncodedBody,
    Reason::CredentialTemporarilyUnavailable,
    Reason::NotReady,
];

/// Every reason that one environment can meet, each by the shortest way to it.
fn drive(scene: &Scene) -> Vec<(Reason, Refused)> {
    let long = format!("X: {}\r\n", "x".repeat(9000));
    let api = "Host: api.example.com\r\n";
    vec![
        (Reason::DomainNotAllowed, scene.connect("evil.example.test:443")),
        (Reason::DomainNotAllowed, scene.get("http://evil.example.test/")),
        (Reason::DeniedByEntry, scene.connect("denied.example.test:443")),
        (Reason::PortNotAllowed, scene.connect("api.example.com:8443")),
        (Reason::MethodNotAllowed, scene.ask(&request("PUT", "http://methods.example.test/"))),
        (Reason::PathNotAllowed, scene.get("http://paths.example.test/secret")),
        (Reason::AmbiguousPath, scene.get("http://paths.example.test/public/../secret")),
        (Reason::AddressNotAllowed, scene.connect("private.example.test:443")),
        (Reason::AddressNotAllowed, scene.get("http://private.example.test/")),
        (Reason::InjectionNeedsTls, scene.get("http://api.example.com/")),
        (Reason::CredentialUnavailable, scene.get("https://credential.example.test/")),
        (Reason::MalformedRequest, scene.ask("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")),
        (Reason::MalformedRequest, scene.ask("GET http://api.example.com/ HTTP/9.9\r\n\r\n")),
        (Reason::MalformedRequest, scene.ask(&format!("CONNECT / HTTP/1.1\r\n{api}\r\n"))),
        (Reason::MalformedHost, scene.connect("evil..example.test:443")),
        (Reason::MalformedHost, scene.get("http://2130706433/")),
        (Reason::MalformedPort, scene.connect("api.example.com")),
        (Reason::MalformedPort, scene.get("http://api.example.com:0/")),
        (Reason::TraceRefused, scene.ask(&request("TRACE", "https://api.example.com/"))),
        (
            Reason::ConnectInTunnel,
            scene.in_tunnel(&format!("CONNECT api.example.com:443 HTTP/1.1\r\n{api}\r\n")),
        ),
        (Reason::RequestTimeout, scene.ask("GET http://api.example.com/ HTTP/1.1\r\nHost: ")),
        (Reason::RequestTimeout, scene.in_tunnel("GET / HTTP/1.1\r\nHost: ")),
        (
            Reason::NameMismatch,
            scene.in_tunnel("GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"),
        ),
        (
            Reason::NameMismatch,
            scene.ask("CONNECT api.example.com:443 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"),
        ),
        (
            Reason::HeadTooLarge,
            scene.ask(&format!("GET http://api.example.com/ HTTP/1.1\r\n{api}{long}\r\n")),
        ),
        (Reason::OriginDns, scene.get("http://nowhere.example.test/")),
        (Reason::OriginDns, scene.connect("nowhere.example.test:443")),
        (Reason::OriginConnect, scene.get("http://closed.example.test/")),
        (Reason::OriginTls, scene.get("https://spoiled.example.test/")),
        (Reason::OriginProtocol, scene.get("http://garbled.example.test/")),
        (Reason::OriginTimeout, scene.get("http://silent.example.test/")),
    ]
}

#[test]
fn every_refusal_has_the_shape_of_the_contract_and_tells_nothing_of_the_inside() {
    isolated(|| {
        let mut scene = Scene::new();
        let internals = scene.internals();
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut expected = Vec::new();
        for (reason, refused) in drive(&scene) {
            refused.check(reason, &internals, &scene.secret);
            reached.insert(reason.code());
            expected.push(reason.code());
        }
        let control = scene.gateway.curl("https://api.example.com/").run();
        assert_eq!(control.status, 200, "{control:?}");
        let audit = scene.gateway.final_audit();
        let told: Vec<&str> = audit.iter().filter_map(|line| line["reason"].as_str()).collect();
        assert_eq!(told, expected, "one audit line each, with the same code");
        let others = [
            Reason::NetworkDisabled,
            Reason::ProtocolNotAllowed,
            Reason::ProxyAuthenticationRequired,
            Reason::TooManyConnections,
        ];
        let known = reached.into_iter().chain(others.iter().chain(&ELSEWHERE).map(|r| r.code()));
        let all: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(known.collect::<BTreeSet<_>>(), all, "a reason that no test drives");
    });
}

#[test]
fn a_refused_connect_has_its_code_as_reason_phrase_whatever_the_reason() {
    isolated(|| {
        let scene = Scene::new();
        for authority in [
            "evil.example.test:443",
            "api.example.com:8443",
            "denied.example.test:443",
            "private.example.test:443",
            "nowhere.example.test:443",
            "evil..example.test:443",
            "api.example.com",
            "/",
        ] {
            let refused = scene.connect(authority);
            assert_eq!(Some(refused.phrase.as_str()), refused.head.value("outgate-reason"));
            assert_eq!(refused.head.value("connection"), Some("close"), "{authority}");
        }
        let shown = scene.gateway.curl("https://evil.example.test/").run();
        assert_eq!((shown.connect_status, shown.exit_code), (403, 56), "{shown:?}");
        assert!(shown.heads[0].start_line.ends_with("403 domain_not_allowed"), "{shown:?}");
    });
}

#[test]
fn a_refusal_that_an_entry_would_lift_names_the_environment_and_the_entry() {
    isolated(|| {
        let scene = Scene::new();
        let body: serde_json::Value =
            serde_json::from_str(&scene.connect("evil.example.test:443").body).expect("JSON");
        assert_eq!(
            body["error"]["message"],
            "evil.example.test is not in network.allowlist of environment env_xyz789"
        );
        assert_eq!(
            body["error"]["details"],
            json!([{"reason": "domain_not_allowed", "domain": "evil.example.test",
                    "fix": {"domain": "evil.example.test"}}])
        );
    });
}

#[test]
fn a_disabled_network_is_refused_as_such_by_every_door() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        for network in [json!("disabled"), json!({"allowlist": "disabled"})] {
            let gateway = world.gateway(json!({"network": network}));
            for request in [
                "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
                "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
            ] {
                let mut client = gateway.client();
                client.send(request);
                Refused::read(&mut client, "CONNECT").check(
                    Reason::NetworkDisabled,
                    &[],
                    &canary(40),
                );
            }
            assert_eq!(gateway.wait_audit(2).len(), 2);
        }
        assert_eq!((api.connections(), world.dns.asked("api.example.com")), (0, 0));
    });
}

#[test]
fn what_is_neither_tls_nor_http_is_closed_without_a_word() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let mut gateway =
            world.gateway(json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}));
        let openings: [&[u8]; 3] = [b"SSH-2.0-x\r\n", b"AMQP\0\0\x09\x01", &[0; 40]];
        for opening in openings {
            let mut client = gateway.client().connect_tunnel("api.example.com:443");
            client.send(opening);
            assert!(client.is_closed(), "{opening:?}");
        }
        assert_eq!(api.connections(), 0);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 3, "{audit:#?}");
        for line in audit {
            assert_eq!((&line["kind"], &line["verdict"]), (&json!("tunnel"), &json!("deny")));
            assert_eq!(line["reason"], "protocol_not_allowed");
        }
    });
}

#[test]
fn a_client_of_no_environment_is_asked_who_it_is_and_may_answer_on_the_same_connection() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let token = canary(40);
        fs::write(network::folder().join("token"), &token).expect("the folder is writable");
        fs::write(network::folder().join("one.json"), "{}").expect("the folder is writable");
        let folder = network::folder().display().to_string();
        let gateway = world
            .gateway_builder()
            .listeners_from_configuration()
            .configuration(&format!(
                "[[environment]]\nfile = \"{folder}/one.json\"\ntoken_file = \"{folder}/token\"\n\
                 [[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n"
            ))
            .start();
        let mut client = gateway.client();
        let connect = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n";
        client.send(format!("{connect}\r\n"));
        let refused = Refused::read(&mut client, "CONNECT");
        refused.check(Reason::ProxyAuthenticationRequired, &[folder], &token);
        assert_eq!(refused.phrase, "proxy_authentication_required");
        assert_ne!(refused.head.value("connection"), Some("close"));
        let claim = STANDARD.encode(format!("one:{token}"));
        client.send(format!("{connect}Proxy-Authorization: Basic {claim}\r\n\r\n"));
        assert_eq!(client.try_read_response("CONNECT").expect("an answer").status, 200);
        let wrong = STANDARD.encode(format!("one:{}", canary(40)));
        let mut guesser = gateway.client();
        guesser.send(format!("{connect}Proxy-Authorization: Basic {wrong}\r\n\r\n"));
        Refused::read(&mut guesser, "CONNECT").check(
            Reason::ProxyAuthenticationRequired,
            &[wrong],
            &token,
        );
        assert_secret_absent(gateway.output(), &token);
    });
}

#[test]
fn repeats_no_more_than_64_bytes_of_what_came() {
    isolated(|| {
        let scene = Scene::new();
        let z = "z".repeat(3000);
        let api = "Host: api.example.com\r\n";
        for request in [
            request("GET", &format!("http://{z}/")),
            request("GET", &format!("http://api.example.com:{z}/")),
            request("GET", &format!("{z}://api.example.com/")),
            request("GET", &format!("http://{z}@api.example.com/")),
            request("GET", &format!("http://paths.example.test/{z}")),
            request("GET", &format!("http://paths.example.test//{z}")),
            request(&z, "http://methods.example.test/"),
            format!("GET http://api.example.com/ HTTP/1.1\r\nHost: {z}\r\n\r\n"),
            format!("GET /{z} HTTP/1.1\r\n{api}\r\n"),
            format!("GET http://api.example.com/ HTTP/1.1\r\n{api}Expect: {z}\r\n\r\n"),
            format!("POST http://api.example.com/ HTTP/1.1\r\n{api}Transfer-Encoding: {z}\r\n\r\n"),
            format!("GET http://api.example.com/ HTTP/{z}\r\n{api}\r\n"),
            format!("GET http://api.example.com/ HTTP/1.1\r\n{api}{z}\r\n\r\n"),
            format!("CONNECT {z}:443 HTTP/1.1\r\n\r\n"),
            format!("CONNECT api.example.com:{z} HTTP/1.1\r\n\r\n"),
            format!("CONNECT api.example.com:443 HTTP/1.1\r\nHost: {z}\r\n\r\n"),
        ] {
            let refused = scene.ask(&request);
            assert!((400..500).contains(&refused.status), "{request}: {}", refused.body);
            let shown = format!("{:?}{}{}", refused.head, refused.phrase, refused.body);
            assert!(longest_run(&shown) <= 64, "{shown}");
        }
    });
}

#[test]
fn the_readme_lists_every_code_as_the_program_has_it() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"))
        .expect("README.md is there");
    let table = readme
        .split_once("<!-- refusals -->")
        .and_then(|(_, rest)| rest.split_once("<!-- /refusals -->"))
        .map(|(table, _)| table)
        .expect("README.md marks its table of refusals");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = Reason::ALL
        .iter()
        .map(|reason| {
            format!("| `{}` | {} | {} |", reason.code(), reason.status(), reason.summary())
        })
        .collect();
    assert_eq!(rows, expected, "the table must be:\n{}", expected.join("\n"));
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != 'z').map(str::len).max().unwrap_or(0)
}
