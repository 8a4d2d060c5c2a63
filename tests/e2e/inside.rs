//! With `[refusals] connect = "inside"`, is a refused CONNECT told why inside TLS, and only told?

use std::time::Instant;

use outgate_tests::prelude::*;
use rustls::AlertDescription;

const EVIL: &str = "evil.example.test";

struct Scene {
    world: World,
    evil: Vec<Origin>,
    gateway: Gateway,
}

impl Scene {
    fn new(limits: &str) -> Self {
        let world = world!();
        world.name("private.ok.example.test", "10.0.0.9");
        let evil = vec![
            world.https(EVIL).start(),
            world.http(EVIL).start(),
            world.https("private.ok.example.test").start(),
        ];
        let gateway = world
            .gateway_builder()
            .configuration(&format!("[refusals]\nconnect = \"inside\"\n{limits}"))
            .environment(&json!({"network": {"allowlist": [
                {"domain": "api.example.com"}, {"domain": "*.ok.example.test"},
            ]}}))
            .start();
        Self { world, evil, gateway }
    }

    fn assert_nothing_left(&self) {
        assert!(self.evil.iter().all(|origin| origin.connections() == 0));
    }
}

#[test]
fn the_reason_is_in_the_answer_to_the_request() {
    isolated(|| {
        let scene = Scene::new("");
        let refused = [
            (EVIL, 403, "domain_not_allowed"),
            ("private.ok.example.test", 403, "address_not_allowed"),
            ("nowhere.ok.example.test", 502, "origin_dns"),
        ];
        for (host, status, reason) in refused {
            let answer = scene.gateway.curl(&format!("https://{host}/")).run();
            assert_eq!((answer.connect_status, answer.status), (200, status), "{answer:?}");
            assert_eq!(answer.reason(), Some(reason));
            assert_eq!(answer.json()["error"]["details"][0]["domain"], host);
            let plain = Door::ConnectPlain.get(&scene.gateway, host);
            assert_eq!((plain.status, plain.header("outgate-reason")), (status, Some(reason)));
        }
        scene.assert_nothing_left();
        let _api = scene.world.https("api.example.com").start();
        assert_eq!(scene.gateway.curl("https://api.example.com/").run().status, 200);
        let audit = scene.gateway.wait_audit(7);
        assert_eq!(audit.len(), 7);
        assert!(audit.iter().all(|line| line["kind"] == "request"), "{audit:#?}");
    });
}

#[test]
fn what_is_malformed_or_unknown_is_still_told_at_once() {
    isolated(|| {
        let scene = Scene::new("");
        for (target, status) in [("evil..example.test:443", 400), ("evil.example.test", 400)] {
            let refused = scene.gateway.client().try_connect_tunnel(target).err();
            assert_eq!(refused.map(|refusal| refusal.status), Some(status), "{target}");
        }
        let mut client = scene.gateway.client();
        client.send(
            "CONNECT evil.example.test:443 HTTP/1.1\r\nHost: evil.example.test\r\n\
             Proxy-Authorization: Basic eDp5\r\n\r\n",
        );
        assert_eq!(client.try_read_response("CONNECT").expect("a refusal").status, 407);
        scene.assert_nothing_left();
    });
}

#[test]
fn a_refused_tunnel_leads_nowhere_whatever_is_said_in_it() {
    isolated(|| {
        let scene = Scene::new("");
        let tunnel = || scene.gateway.client().connect_tunnel("evil.example.test:443");
        let other = tunnel().try_tls(&Hello::to("api.example.com")).err();
        assert_eq!(other, Some(TlsFault::Alert(AlertDescription::UnrecognisedName)));
        let mut tls = tunnel().tls(&Hello::to(EVIL));
        let answer = tls.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(answer.status, 421, "{answer:?}");
        let mut client = tunnel();
        client.send("SSH-2.0-x\r\n");
        assert!(client.is_closed());
        // A client that doesn't like the certificate leaves the tunnel's own line.
        let shown =
            scene.gateway.curl("https://evil.example.test/").ca(scene.world.pki.roots()).run();
        assert_eq!(shown.exit_code, 60, "{shown:?}");
        scene.assert_nothing_left();
        let reasons =
            ["name_mismatch", "name_mismatch", "protocol_not_allowed", "domain_not_allowed"];
        let audit = scene.gateway.wait_audit(4);
        let told: Vec<_> = audit.iter().map(|line| line["reason"].clone()).collect();
        assert_eq!(told, reasons);
        assert!(audit.iter().all(|line| line["verdict"] == "deny"), "{audit:#?}");
    });
}

#[test]
fn a_refused_tunnel_answers_each_of_its_requests() {
    isolated(|| {
        let scene = Scene::new("");
        let mut tunnel =
            scene.gateway.client().connect_tunnel("evil.example.test:443").tls(&Hello::to(EVIL));
        for path in ["/", "/again"] {
            let answer =
                tunnel.exchange(format!("GET {path} HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"));
            assert_eq!(answer.header("outgate-reason"), Some("domain_not_allowed"), "{answer:?}");
        }
        scene.assert_nothing_left();
        assert_eq!(scene.gateway.wait_audit(2).len(), 2);
    });
}

#[test]
fn certificates_for_refused_names_have_a_budget() {
    isolated(|| {
        let scene = Scene::new("[limits]\nrefused_handshakes_per_second = 3\n");
        let hello = Hello::to(EVIL);
        let handshake = || {
            let tunnel = scene.gateway.client().connect_tunnel("evil.example.test:443");
            tunnel.try_tls(&hello).err()
        };
        let started = Instant::now();
        let faults: Vec<_> = (0..12).map(|_| handshake()).collect();
        let seconds = 1 + usize::try_from(started.elapsed().as_secs()).expect("few");
        let done = faults.iter().filter(|fault| fault.is_none()).count();
        assert!((3..=3 * (seconds + 1)).contains(&done), "{done} in {seconds} s");
        let expected = TlsFault::Alert(AlertDescription::AccessDenied);
        assert!(faults.iter().flatten().all(|fault| *fault == expected), "{faults:?}");
        assert!(faults.iter().flatten().count() > 0);
        // It is nobody else's trouble, and over in a second.
        let _api = scene.world.https("api.example.com").start();
        assert_eq!(scene.gateway.curl("https://api.example.com/").run().status, 200);
        assert!(wait_until(Duration::from_secs(5), || handshake().is_none()));
        scene.assert_nothing_left();
        let audit = scene.gateway.wait_audit(13);
        let refused = audit.iter().filter(|line| line["reason"] == "domain_not_allowed").count();
        assert_eq!(refused, audit.len() - 1, "{audit:#?}");
    });
}
