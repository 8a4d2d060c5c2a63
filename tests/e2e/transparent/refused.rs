//! What is refused is told where the client can read it, and where it can't it is closed.

use std::time::Instant;

use super::*;

#[test]
fn a_client_of_a_refused_host_reads_why_inside_its_tls() {
    isolated(|| {
        let environment = json!({"network": {"allowlist": [
            {"domain": API}, {"domain": "*.ok.example.test"},
        ]}});
        let scene = Scene::new(&environment);
        scene.world.name("private.ok.example.test", "10.0.0.9");
        let evil = scene.start(scene.world.https(EVIL));
        for (url, status, reason) in [
            ("https://evil.example.test/", 403, "domain_not_allowed"),
            ("https://private.ok.example.test/", 403, "address_not_allowed"),
            ("https://nowhere.ok.example.test/", 502, "origin_dns"),
            ("https://api.example.com:8080/", 403, "port_not_allowed"),
            ("http://evil.example.test/", 403, "domain_not_allowed"),
            ("http://nowhere.ok.example.test/", 502, "origin_dns"),
            ("http://localhost.localdomain/", 403, "address_not_allowed"),
        ] {
            let answer = scene.curl(url);
            assert_eq!(
                (answer.status, answer.reason()),
                (status, Some(reason)),
                "{url} {answer:?}"
            );
        }
        assert_eq!(evil.connections(), 0);
        let audit = scene.gateway.wait_audit(7);
        assert_eq!(audit.len(), 7, "{audit:#?}");
        for line in &audit {
            assert_eq!(
                (&line["kind"], &line["ingress"]),
                (&json!("request"), &json!("transparent"))
            );
        }
    });
}

#[test]
fn a_disabled_network_says_so() {
    isolated(|| {
        let scene = Scene::new(&json!({"network": "disabled"}));
        for url in ["https://api.example.com/", "http://api.example.com/"] {
            let answer = scene.curl(url);
            assert_eq!((answer.status, answer.reason()), (403, Some("network_disabled")));
        }
        assert_eq!(scene.world.dns.questions().len(), 0);
    });
}

#[test]
fn handshakes_of_refused_names_have_a_budget() {
    isolated(|| {
        let limits = "[limits]\nrefused_handshakes_per_second = 2\n";
        let scene = Scene::with(&allowing(&[API]), limits);
        let _api = scene.start(scene.world.https(API));
        let faults = || {
            let refused = |number: usize| {
                let name = format!("n{number}.example.test");
                scene.elsewhere(443).try_tls(&Hello::to(&name)).err()
            };
            (0..10).filter_map(refused).collect::<Vec<_>>()
        };
        let denied = TlsFault::Alert(AlertDescription::AccessDenied);
        let spent = wait_until(Duration::from_secs(10), || {
            let faults = faults();
            assert!(faults.iter().all(|fault| *fault == denied), "{faults:?}");
            faults.len() >= 6
        });
        assert!(spent, "ten in a second are more than two");
        assert_eq!(scene.curl("https://api.example.com/").status, 200);
    });
}

#[test]
fn an_address_that_stands_for_no_name_is_refused() {
    isolated(|| {
        let scene = Scene::new(&json!({}));
        let unknown = "198.19.255.250";
        let nameless = Hello::to(unknown).without_server_name();
        let mut client = scene.client(&format!("{unknown}:443")).tls(&nameless);
        let refused = client.exchange(get(unknown));
        assert_eq!(refused.header("outgate-reason"), Some("address_not_allowed"), "{refused:?}");
        let refused = scene.curl_without_host(unknown);
        assert_eq!(refused.reason(), Some("address_not_allowed"), "{refused:?}");
        assert_eq!(scene.world.dns.questions().len(), 0);
    });
}

#[test]
fn the_gateways_own_port_leads_nowhere() {
    isolated(|| {
        let scene = Scene::new(&json!({}));
        let dialled = network::connection_attempts();
        let refuse = |address: &str, line: usize, reason: &str| {
            // The sandbox's own loopback is not the gateway's.
            let mut client = match address.starts_with("127.") {
                true => RawClient::connect(address.parse().expect("one"), scene.gateway.ca()),
                false => scene.client(address),
            };
            let pending = client.begin_tls(&Hello::to(API));
            client.send(&pending.client_hello);
            assert!(client.is_closed(), "{address}");
            let line = scene.line(line);
            assert_eq!((&line["kind"], &line["reason"]), (&json!("tunnel"), &json!(reason)));
        };
        refuse("10.20.1.1:443", 1, "address_not_allowed");
        // What is opened for the first connection of all may stay.
        let descriptors = scene.gateway.descriptors();
        refuse("11.22.33.1:443", 2, "address_not_allowed");
        refuse("127.0.0.1:443", 3, "proxy_authentication_required");
        refuse("10.20.1.1:80", 4, "address_not_allowed");
        let closed = || scene.gateway.descriptors() <= descriptors;
        assert!(wait_until(Duration::from_secs(10), closed), "of a connection to itself");
        // That of this test from its own loopback.
        assert_eq!(network::connection_attempts() - dialled, 1);
    });
}

#[test]
fn who_belongs_to_nobody_is_closed_at_once() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let api = scene.start(scene.world.https(API));
        // Not by the interface of the sandbox.
        let elsewhere = "55.1.2.3:443".parse().expect("an address");
        let mut client = RawClient::connect(elsewhere, scene.gateway.ca());
        client.send(get(API));
        assert!(client.is_closed());
        let line = scene.line(1);
        assert_eq!(line["reason"], "proxy_authentication_required", "{line}");
        assert_eq!((line.get("environment_id"), api.connections()), (None, 0));
    });
}

#[test]
fn connections_have_a_bound() {
    isolated(|| {
        let scene = Scene::with(&allowing(&[API]), "[limits]\nconnections = 2\n");
        let _api = scene.start(scene.world.https(API));
        let tls = || scene.elsewhere(443).tls(&Hello::to(API));
        let (one, two) = (tls(), tls());
        assert!(scene.elsewhere(443).is_closed(), "a third is one too many");
        assert_eq!(scene.gateway.wait_audit(1)[0]["reason"], "too_many_connections");
        drop((one, two));
        let answered = || scene.curl("https://api.example.com/").status == 200;
        assert!(wait_until(Duration::from_secs(5), answered), "their places are free again");
    });
}

#[test]
fn silence_and_other_protocols_end_in_time_with_a_line_each() {
    isolated(|| {
        let limits = "[limits]\nclient_handshake = \"500ms\"\n";
        let scene = Scene::with(&allowing(&[API, API_ADDRESS]), limits);
        let api = scene.start(Origin::http(&format!("{API_ADDRESS}:443")));
        let openings: [(&str, &[u8], Option<&str>); 6] = [
            (API_ADDRESS, b"SSH-2.0-x\r\n", Some("protocol_not_allowed")),
            (API_ADDRESS, b"", None),
            (API_ADDRESS, b"\x16\x03\x01\x02\x00\x01", None),
            (API_ADDRESS, b"\x16\x03\x01\xff\xff", Some("malformed_request")),
            ("55.1.2.3", b"SSH-2.0-x\r\n", Some("domain_not_allowed")),
            ("55.1.2.3", b"", Some("domain_not_allowed")),
        ];
        for (number, (address, opening, reason)) in openings.into_iter().enumerate() {
            let begun = Instant::now();
            let mut client = scene.client(&format!("{address}:443"));
            client.send(opening);
            let end = client.read_some().unwrap_or_default();
            assert!(end.first().is_none_or(|first| *first == 21), "{end:?}");
            assert!(begun.elapsed() < Duration::from_secs(5));
            let line = scene.line(number + 1);
            assert_eq!(line.get("reason").and_then(|reason| reason.as_str()), reason, "{line}");
            assert!(line["error"].is_string(), "{line}");
        }
        assert_eq!(api.connections(), 0);
    });
}
