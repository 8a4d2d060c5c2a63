//! Where does a connection go whose client knows of no gateway?

#[path = "transparent/clear.rs"]
mod clear;
#[path = "transparent/refused.rs"]
mod refused;
#[path = "transparent/scene.rs"]
mod scene;
#[path = "transparent/spliced.rs"]
mod spliced;

use outgate_tests::client::ClientHello;
use outgate_tests::prelude::*;
use rustls::AlertDescription;

use scene::{API_ADDRESS, EVIL_ADDRESS, Scene, allowing};

const API: &str = "api.example.com";
const OK: &str = "a.ok.example.test";
const EVIL: &str = "evil.example.test";

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn tls_goes_to_the_host_that_its_sni_names() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let api = scene.start(scene.world.https(API));
        let answer = scene.curl("https://api.example.com/x?y");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(api.requests()[0].target, "/x?y");
        let line = scene.line(1);
        assert_eq!((&line["kind"], &line["ingress"]), (&json!("request"), &json!("transparent")));
        assert_eq!((&line["domain"], &line["port"]), (&json!(API), &json!(443)));
        assert_eq!(line["address"], format!("{API_ADDRESS}:443"));
        assert_eq!((&line["environment_id"], &line["client"]), (&json!("e1"), &json!("10.20.1.2")));
    });
}

#[test]
fn http2_and_what_is_injected_go_there_too() {
    isolated(|| {
        let secret = canary(32);
        let entry = json!({"domain": API, "transform": {"X-Key": secret}});
        let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
        let api = scene.start(scene.world.https(API));
        let hello = Hello::to(API).alpn(&["h2"]);
        assert_eq!(scene.elsewhere(443).tls(&hello).alpn().as_deref(), Some("h2"));
        let mut client = scene.elsewhere(443).tls(&Hello::to(API));
        let sent = scripts::echoed_headers(&client.exchange(get(API)));
        assert_eq!(sent["x-key"], std::slice::from_ref(&secret));
        assert_eq!(api.connections(), 1);
        assert_secret_absent(scene.gateway.output(), &secret);
    });
}

#[test]
fn the_address_that_the_client_believes_in_is_not_dialled_for_a_name() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API, OK]));
        let api = scene.start(scene.world.https(API));
        let evil = scene.start(scene.world.https(EVIL));
        let mut client = scene.client(&format!("{EVIL_ADDRESS}:443")).tls(&Hello::to(API));
        assert_eq!(client.exchange(get(API)).status, 200);
        assert_eq!((api.connections(), evil.connections()), (1, 0));
        // The connection is to the name of its SNI, though both are allowed.
        for host in [EVIL, OK] {
            let mut client = scene.elsewhere(443).tls(&Hello::to(API));
            assert_eq!(client.exchange(get(host)).status, 421);
        }
        assert_eq!(api.requests().len(), 1);
    });
}

#[test]
fn without_sni_it_is_the_name_that_the_gateways_dns_gave_the_address_out_for() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API, OK]));
        let api = scene.start(scene.world.https(API));
        let given = scene.look_up(API);
        let nameless = Hello::to(API).without_server_name();
        let mut client = scene.client(&format!("{given}:443")).tls(&nameless);
        assert_eq!(client.exchange(get(API)).status, 200);
        let handshake = api.records()[0].handshake().expect("over").expect("done");
        assert_eq!(handshake.server_name.as_deref(), Some(API));
        // SNI comes first: clients know more of the name than an address does.
        let ok = scene.start(scene.world.https(OK));
        let mut client = scene.client(&format!("{given}:443")).tls(&Hello::to(OK));
        assert_eq!(client.exchange(get(OK)).status, 200);
        assert_eq!((api.connections(), ok.connections()), (1, 1));
    });
}

#[test]
fn without_any_name_it_is_the_address_under_the_rules_for_addresses() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API_ADDRESS]));
        let leaf = scene.world.pki.leaf(API).names(&[API_ADDRESS]).issue();
        let api = scene.start(scene.world.https(API).identity(leaf));
        let nameless = Hello::to(API_ADDRESS).without_server_name();
        let mut client = scene.client(&format!("{API_ADDRESS}:443")).tls(&nameless);
        let answer = client.exchange(get(API_ADDRESS));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(api.connections(), 1);
        // Nothing named it, and no entry names the address.
        let nameless = Hello::to(EVIL_ADDRESS).without_server_name();
        let mut client = scene.client(&format!("{EVIL_ADDRESS}:443")).tls(&nameless);
        let refused = client.exchange(get(EVIL_ADDRESS));
        assert_eq!(refused.header("outgate-reason"), Some("domain_not_allowed"), "{refused:?}");
    });
}

#[test]
fn a_server_name_that_is_no_name_is_refused_before_any_look_up() {
    isolated(|| {
        let scene = Scene::new(&json!({}));
        let long = "a".repeat(64) + ".example.com";
        let names: [(&[&[u8]], &str); 9] = [
            (&[b"api.example.com", b"evil.example.test"], "malformed_request"),
            (&[b""], "malformed_host"),
            (&[b"a\0b"], "malformed_host"),
            (&[b"evil.example.test\0.api.example.com"], "malformed_host"),
            (&[b"*.example.com"], "malformed_host"),
            (&[long.as_bytes()], "malformed_host"),
            (&["\u{430}pi.example.com".as_bytes()], "malformed_host"),
            (&[b"127.1"], "malformed_host"),
            (&[b"11.22.33.6"], "name_mismatch"),
        ];
        for (number, (names, reason)) in names.into_iter().enumerate() {
            let mut client = scene.elsewhere(443);
            let pending = client.begin_tls(&Hello::to(API));
            let hello = ClientHello::parse(&pending.client_hello).with_server_names(names);
            client.send(hello.to_record());
            assert_eq!(client.read_some().expect("an alert").first(), Some(&21), "{names:?}");
            let line = scene.line(number + 1);
            assert_eq!((&line["kind"], &line["reason"]), (&json!("tunnel"), &json!(reason)));
        }
        assert_eq!(scene.world.dns.questions().len(), 0);
    });
}

#[test]
fn a_hello_in_any_pieces_names_the_same_host() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let api = scene.start(scene.world.https(API));
        for lengths in [&[5][..], &[1, 1, 1], &[40, 60], &[4]] {
            let mut client = scene.elsewhere(443);
            let pending = client.begin_tls(&Hello::to(API));
            client.send(ClientHello::parse(&pending.client_hello).to_records(lengths));
            let mut client = client.complete_tls(pending).expect("a handshake");
            assert_eq!(client.exchange(get(API)).status, 200, "{lengths:?}");
        }
        let mut client = scene.elsewhere(443);
        let pending = client.begin_tls(&Hello::to(API));
        client.send_in_pieces(&pending.client_hello, 1, Duration::from_micros(500));
        assert!(client.complete_tls(pending).is_ok());
        // An innocent outer name is all the name there is.
        let mut client = scene.elsewhere(443).tls(&Hello::to(API).ech_grease());
        assert_eq!(client.exchange(get(API)).status, 200);
        assert_eq!(api.requests().len(), 5);
    });
}

#[test]
fn ipv6_is_led_here_as_well() {
    isolated(|| {
        let listener = "[[listener]]\nkind = \"transparent\"\nbind = \"[::]:8443\"\n\
                        environment = \"e2\"\n";
        let path = network::folder().join("e2.json");
        let environment = json!({"network": {"allowlist": [{"domain": API, "ports": [8443]}]}});
        std::fs::write(&path, environment.to_string()).expect("writable");
        let known = format!("[[environment]]\nfile = {path:?}\ninterface = \"lo\"\n{listener}");
        let scene = Scene::with(&json!({"network": "disabled"}), &known);
        let api = scene.start(scene.world.https(API).port(8443));
        for (number, address) in ["[2606:4700::1111]:8443", "55.1.2.3:8443"].iter().enumerate() {
            let address = address.parse().expect("an address");
            let client = RawClient::connect(address, scene.gateway.ca());
            let answer = client.tls(&Hello::to(API)).exchange(get("api.example.com:8443"));
            assert_eq!(answer.status, 200, "{answer:?}");
            let line = scene.line(number + 1);
            assert_eq!((&line["environment_id"], &line["port"]), (&json!("e2"), &json!(8443)));
        }
        assert_eq!(api.requests().len(), 2);
        // The listener itself, under each of its families.
        for (number, address) in ["[::1]:8443", "127.0.0.1:8443"].iter().enumerate() {
            let address = address.parse().expect("an address");
            assert!(RawClient::connect(address, scene.gateway.ca()).is_closed());
            assert_eq!(scene.line(number + 3)["reason"], "address_not_allowed");
        }
    });
}
