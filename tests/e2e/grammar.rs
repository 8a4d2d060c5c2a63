//! What may the target of a request look like, and what is too odd to be judged?

use outgate_tests::prelude::*;

const API: &str = "api.example.com";

/// An open network, but for one name: whatever gets past the grammar would be dialled.
struct Scene {
    world: World,
    origins: Vec<Origin>,
    loopback: Vec<SilentListener>,
    gateway: Gateway,
}

impl Scene {
    fn new() -> Self {
        let world = world!();
        let origins = ["api.example.com", "evil.example.test"]
            .iter()
            .flat_map(|name| [world.https(name).start(), world.http(name).start()])
            .collect();
        let loopback = ["127.0.0.1:443", "127.0.0.1:80", "[::1]:443", "[::1]:80"]
            .map(|address| world.silent(address))
            .into();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": "*"}, {"domain": "evil.example.test", "deny": true},
        ]}}));
        Self { world, origins, loopback, gateway }
    }

    fn assert_nothing_left(&self) {
        let origins = self.origins.iter().map(Origin::connections).sum::<usize>();
        let loopback = self.loopback.iter().map(SilentListener::connections).sum::<usize>();
        assert_eq!((origins, loopback), (0, 0));
        assert_eq!(self.world.dns.questions(), [], "nothing was even looked up");
    }

    /// Refused with one of these reasons by every door, nothing looked up.
    fn assert_refused(&self, hosts: &[&str], reasons: &[&str]) {
        for host in hosts {
            for door in Door::ALL {
                let refused = door.get(&self.gateway, host);
                let reason = refused.header("outgate-reason").unwrap_or("none");
                assert!(reasons.contains(&reason), "{door:?} {host:?}: {refused:?}");
            }
        }
        self.assert_nothing_left();
    }

    /// Every door leads to the origin, and one line was written for each request so far.
    fn assert_control_and_audit(&mut self, refused: usize) {
        for door in Door::ALL {
            let answer = door.get(&self.gateway, API);
            assert_eq!(answer.status, 200, "{door:?} {answer:?}");
        }
        let audit = self.gateway.final_audit();
        assert_eq!(audit.len(), refused + Door::ALL.len());
        let denied = audit.iter().filter(|line| line["verdict"] == "deny").count();
        assert_eq!(denied, refused);
    }
}

/// Refused by our own grammar, or by that of the library below it.
const MALFORMED: [&str; 3] = ["malformed_host", "malformed_port", "malformed_request"];

#[test]
fn dots_and_case_lead_past_no_rule() {
    isolated(|| {
        let mut scene = Scene::new();
        let spellings = ["EVIL.Example.TEST", "evil.example.test.", "eViL.example.test."];
        scene.assert_refused(&spellings, &["denied_by_entry"]);
        let odd = [
            "evil.example.test..",
            ".api.example.com",
            "api..example.com",
            ".",
            "..",
            "-.example.com",
        ];
        scene.assert_refused(&odd, &MALFORMED);
        let too_long = format!("{}.example.com", "a".repeat(64));
        let longer = vec!["a".repeat(49); 6].join(".");
        scene.assert_refused(&[&too_long, &longer], &["malformed_host"]);
        scene.assert_control_and_audit((spellings.len() + odd.len() + 2) * 4);
    });
}

#[test]
fn brackets_belong_around_an_ipv6_address_only() {
    isolated(|| {
        let mut scene = Scene::new();
        let odd = [
            "[api.example.com]",
            "[evil.example.test]",
            "[::1",
            "[::1]x",
            "[::1]:443:80",
            "[fe80::1%25lo]",
            "[fe80::1%lo]",
            "[]",
            "[127.0.0.1]",
            "[[::1]]",
            "::1",
            "2001:db8::1",
            "api.example.com]",
            "[2606:4700::1111].example.com",
        ];
        scene.assert_refused(&odd, &MALFORMED);
        scene.assert_control_and_audit(odd.len() * 4);
    });
}

#[test]
fn user_information_blanks_and_escapes_are_no_part_of_a_host() {
    isolated(|| {
        let mut scene = Scene::new();
        let odd = [
            "api.example.com@evil.example.test",
            "api.example.com:80@evil.example.test",
            "user:pass@api.example.com",
            "@api.example.com",
            "evil.example.test\\@api.example.com",
            "api.example.com\\.evil.example.test",
            "%61pi.example.com",
            "evil.example.test%00.example.com",
            "evil.example.test\0.example.com",
            "evil.example.test\t.example.com",
            "evil.example.test .example.com",
            "evil.example.test\r.example.com",
            "b\u{fc}cher.example.com",
            "\u{430}pi.example.com",
            "api.example.com;a",
            "api'b$.example.com",
            "~",
            "a,b.example.com",
            "a*b.example.com",
            "*.example.com",
            "*",
        ];
        scene.assert_refused(&odd, &MALFORMED);
        let mut client = scene.gateway.client().connect_tunnel("api.example.com:80");
        let refused =
            client.exchange("GET / HTTP/1.1\r\nHost: api.example.com@evil.example.test\r\n\r\n");
        assert_eq!(refused.header("outgate-reason"), Some("malformed_host"));
        assert_eq!(scene.origins.iter().map(Origin::connections).sum::<usize>(), 0);
        scene.assert_control_and_audit(odd.len() * 4 + 1);
    });
}

#[test]
fn a_port_is_written_in_one_way() {
    isolated(|| {
        let mut scene = Scene::new();
        let ports = [
            "0",
            "0443",
            "+443",
            "-1",
            "65536",
            "65979",
            "0x1bb",
            "",
            "443:80",
            "4 43",
            "99999999999",
        ];
        let doors = |port: &str| {
            [
                format!("CONNECT {API}:{port} HTTP/1.1\r\nHost: {API}\r\n\r\n"),
                format!("GET http://{API}:{port}/ HTTP/1.1\r\nHost: {API}\r\n\r\n"),
                format!("GET https://{API}:{port}/ HTTP/1.1\r\nHost: {API}\r\n\r\n"),
                format!("GET http://{API}/ HTTP/1.1\r\nHost: {API}:{port}\r\n\r\n"),
            ]
        };
        for request in ports.iter().flat_map(|port| doors(port)) {
            let mut client = scene.gateway.client();
            client.send(&request);
            let refused = client.try_read_response("CONNECT").expect("a refusal");
            assert_eq!(refused.status, 400, "{request:?} {refused:?}");
        }
        scene.assert_nothing_left();
        scene.assert_control_and_audit(ports.len() * 4);
    });
}

#[test]
fn request_targets_have_the_form_of_their_door() {
    isolated(|| {
        let mut scene = Scene::new();
        let lines = [
            "OPTIONS *",
            "GET *",
            "GET api.example.com:443",
            "GET /",
            "GET //api.example.com/",
            "GET ftp://api.example.com/",
            "GET ws://api.example.com/",
            "GET file:///etc/passwd",
            "GET http:///",
            "GET http://",
            "GET http:api.example.com",
            "CONNECT /",
            "CONNECT *",
            "CONNECT http://api.example.com/",
            "CONNECT https://api.example.com:443/",
            "CONNECT api.example.com",
            "CONNECT api.example.com:443/",
            "CONNECT a@api.example.com:443",
            "CONNECT :443",
        ];
        for line in lines {
            let mut client = scene.gateway.client();
            client.send(format!("{line} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
            let refused = client.try_read_response("CONNECT").expect("a refusal");
            assert_eq!(refused.status, 400, "{line}: {refused:?}");
        }
        scene.assert_nothing_left();
        scene.assert_control_and_audit(lines.len());
    });
}

#[test]
fn two_slashes_in_a_tunnel_begin_a_path() {
    isolated(|| {
        let scene = Scene::new();
        let mut tunnel = scene.gateway.client().connect_tunnel("api.example.com:80");
        for target in ["//evil.example.test/", "/\\evil.example.test/", "/@evil.example.test/"] {
            let answer = tunnel.exchange(format!("GET {target} HTTP/1.1\r\nHost: {API}\r\n\r\n"));
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.json()["target"], target);
        }
        for target in ["*", "api.example.com:80", "evil.example.test/"] {
            let mut tunnel = scene.gateway.client().connect_tunnel("api.example.com:80");
            let refused = tunnel.exchange(format!("GET {target} HTTP/1.1\r\nHost: {API}\r\n\r\n"));
            assert_eq!(refused.status, 400, "{target}: {refused:?}");
        }
        assert_eq!(scene.world.dns.asked("evil.example.test"), 0);
        assert_eq!(scene.gateway.wait_audit(6).len(), 6);
    });
}

#[test]
fn an_international_name_is_its_a_labels() {
    isolated(|| {
        let world = world!();
        let name = "xn--bcher-kva.example.test";
        world.name(name, "11.22.33.88");
        let origins = [world.https(name).start(), world.http(name).start()];
        let list = json!([{"domain": "B\u{dc}CHER.example.test"}]);
        let gateway = world.gateway(json!({"network": {"allowlist": list}}));
        for door in Door::ALL {
            assert_eq!(door.get(&gateway, name).status, 200, "{door:?}");
            // The same letters without their dots, and a look-alike of Cyrillic letters.
            for other in ["bucher.example.test", "xn--bher-0ra631c.example.test"] {
                let refused = door.get(&gateway, other);
                assert_eq!(refused.status, 403, "{door:?} {other} {refused:?}");
            }
        }
        assert!(origins.iter().all(|origin| origin.connections() > 0));
        assert_eq!(gateway.wait_audit(12).len(), 12);
    });
}
