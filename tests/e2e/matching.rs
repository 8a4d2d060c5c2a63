//! Which entry decides for a request, and whose secret goes with it?

use outgate_tests::prelude::*;
use serde_json::Value;

/// Names that all lead to one TLS origin and one plain one, with certificates for all of them.
struct Scene {
    _origins: [Origin; 2],
    gateway: Gateway,
    world: World,
}

impl Scene {
    fn new(names: &[&str], allowlist: &Value) -> Self {
        let world = world!();
        for name in names {
            world.name(name, "11.22.33.90");
        }
        let identity = world.pki.leaf(names[0]).names(names).issue();
        let https = world.https(names[0]).identity(identity).start();
        let http = world.http(names[0]).start();
        let gateway = world.gateway(json!({"network": {"allowlist": allowlist}}));
        Self { _origins: [https, http], gateway, world }
    }

    /// The reason by every door, which must be the same one; `None` when the origin answers.
    fn reason(&self, host: &str) -> Option<String> {
        let all = Door::ALL.map(|door| {
            let answer = door.get(&self.gateway, host);
            assert!(answer.status == 200 || answer.status == 403, "{door:?} {host} {answer:?}");
            answer.header("outgate-reason").map(str::to_owned)
        });
        assert!(all.iter().all(|reason| *reason == all[0]), "{host}: {all:?}");
        all[0].clone()
    }

    fn assert_reasons(&self, expected: &[(&str, Option<&str>)]) {
        for (host, reason) in expected {
            assert_eq!(self.reason(host).as_deref(), *reason, "{host}");
            if *reason == Some("domain_not_allowed") {
                assert_eq!(self.world.dns.asked(host), 0, "{host} was looked up");
            }
        }
        let lines = expected.len() * Door::ALL.len();
        assert_eq!(self.gateway.wait_audit(lines).len(), lines);
    }
}

const NOT_ALLOWED: Option<&str> = Some("domain_not_allowed");

#[test]
fn a_star_covers_every_depth_and_not_the_apex_or_a_longer_word() {
    isolated(|| {
        let names = ["x.ok.example.test", "a.b.ok.example.test", "api.example.com"];
        let list = json!([{"domain": "*.ok.example.test"}, {"domain": "api.example.com"}]);
        Scene::new(&names, &list).assert_reasons(&[
            ("x.ok.example.test", None),
            ("a.b.ok.example.test", None),
            ("api.example.com", None),
            ("ok.example.test", NOT_ALLOWED),
            ("evilok.example.test", NOT_ALLOWED),
            ("notok.example.test", NOT_ALLOWED),
            ("x.ok.example.test.evil.example.test", NOT_ALLOWED),
            ("ok.example.test.evil.example.test", NOT_ALLOWED),
            ("xapi.example.com", NOT_ALLOWED),
            ("x.api.example.com", NOT_ALLOWED),
            ("api.example.com.evil.example.test", NOT_ALLOWED),
            ("example.com", NOT_ALLOWED),
            ("com", NOT_ALLOWED),
        ]);
    });
}

#[test]
fn an_empty_list_allows_nothing_and_an_absent_one_the_public_web() {
    isolated(|| {
        let world = world!();
        let api = [world.https("api.example.com").start(), world.http("api.example.com").start()];
        let connections = || api.iter().map(Origin::connections).sum::<usize>();
        let nothing = [
            (json!({"network": {"allowlist": []}}), "domain_not_allowed"),
            (json!({"network": "disabled"}), "network_disabled"),
            (json!({"network": {"alowlist": [{"domain": "*"}]}}), "domain_not_allowed"),
            (json!({"network": {}}), "domain_not_allowed"),
            (json!({"network": null}), "domain_not_allowed"),
            (json!({"network": {"allowlist": [null]}}), "domain_not_allowed"),
            (json!({"network": {"allowlist": [{"domain": ""}]}}), "domain_not_allowed"),
        ];
        for (environment, reason) in nothing {
            let gateway = world.gateway(environment.clone());
            for door in Door::ALL {
                let refused = door.get(&gateway, "api.example.com");
                assert_eq!(refused.header("outgate-reason"), Some(reason), "{environment}");
            }
        }
        assert_eq!((connections(), world.dns.asked("api.example.com")), (0, 0));
        let open = world.gateway(json!({}));
        for door in Door::ALL {
            assert_eq!(door.get(&open, "api.example.com").status, 200, "{door:?}");
        }
        let other = Door::ConnectTls.get_port(&open, "api.example.com", 8443);
        assert_eq!(other.header("outgate-reason"), Some("port_not_allowed"));
    });
}

#[test]
fn a_port_is_part_of_the_permission() {
    isolated(|| {
        let world = world!();
        let port = 20_000 + u16::from(canary(1).as_bytes()[0]) * 64;
        let silent = [22, 25, 8443].map(|port| world.silent(&format!("11.22.33.44:{port}")));
        let origins = [443, 80].map(|port| world.https("api.example.com").port(port).start());
        let listed = world.https("a.ok.example.test").port(port).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": "api.example.com"},
            {"domain": "a.ok.example.test", "ports": [port]},
            {"domain": format!("*.ok.example.test:{}", port + 1)},
        ]}}));
        let refused = |host, port, fix: Value| {
            for door in Door::ALL {
                let answer = door.get_port(&gateway, host, port);
                assert_eq!(
                    answer.header("outgate-reason"),
                    Some("port_not_allowed"),
                    "{host}:{port}"
                );
                assert_eq!(answer.json()["error"]["details"][0]["fix"], fix);
            }
        };
        for wrong in [22, 25, 8443] {
            let fix = json!({"domain": "api.example.com", "ports": [wrong]});
            refused("api.example.com", wrong, fix);
        }
        // The narrower entry alone decides.
        for wrong in [443, port + 1] {
            let fix = json!({"domain": "a.ok.example.test", "ports": [wrong]});
            refused("a.ok.example.test", wrong, fix);
        }
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        for origin in &origins {
            let port = origin.address().port();
            let answer = Door::ConnectTls.get_port(&gateway, "api.example.com", port);
            assert_eq!(answer.status, 200, "{port} {answer:?}");
        }
        for door in Door::TLS {
            let answer = door.get_port(&gateway, "a.ok.example.test", port);
            assert_eq!(answer.status, 200, "{door:?} {answer:?}");
        }
        assert!(listed.connections() > 0);
        assert_eq!(gateway.wait_audit(24).len(), 24);
    });
}

#[test]
fn of_overlapping_entries_the_narrower_wins_then_the_later() {
    isolated(|| {
        let [narrow, wide, later] = [canary(24), canary(24), canary(24)];
        let names = ["api.example.com", "b.example.com", "twice.example.net", "no.example.com"];
        let scene = Scene::new(
            &names,
            &json!([
                {"domain": "api.example.com", "transform": {"X-Key": narrow}},
                {"domain": "*.example.com", "transform": {"X-Key": wide, "X-Team": "wide"}},
                {"domain": "twice.example.net", "transform": {"X-Key": wide, "X-Only": "first"}},
                {"domain": "twice.example.net", "transform": {"x-kEY": later}},
                {"domain": "no.example.com", "deny": true},
            ]),
        );
        let expected = [
            ("api.example.com", &narrow, ("x-team", "wide")),
            ("b.example.com", &wide, ("x-team", "wide")),
            ("twice.example.net", &later, ("x-only", "first")),
        ];
        for door in Door::TLS {
            for (host, key, (other, value)) in &expected {
                let answer = door.get(&scene.gateway, host);
                assert_eq!(answer.status, 200, "{door:?} {host} {answer:?}");
                let headers = scripts::echoed_headers(&answer);
                assert_eq!(headers["x-key"], [(*key).clone()], "{door:?} {host}");
                assert_eq!(headers[*other], [*value], "{door:?} {host}");
            }
        }
        // Over plain HTTP nothing is injected, so nothing goes.
        let plain = Door::AbsoluteHttp.get(&scene.gateway, "api.example.com");
        assert_eq!(plain.header("outgate-reason"), Some("injection_needs_tls"));
        assert_eq!(scene.reason("no.example.com").as_deref(), Some("denied_by_entry"));
        for secret in [narrow, wide, later] {
            assert_secret_absent(scene.gateway.output(), &secret);
        }
        assert_eq!(scene.gateway.wait_audit(11).len(), 11);
    });
}

#[test]
fn a_path_that_can_be_read_in_two_ways_is_judged_in_none() {
    isolated(|| {
        let list = json!([{"domain": "api.example.com", "paths": ["/v1/public/*"]}]);
        let scene = Scene::new(&["api.example.com"], &list);
        let get = |target: &str| {
            let host = "Host: api.example.com";
            let mut tunnel = scene.gateway.client().connect_tunnel("api.example.com:80");
            let inside = tunnel.exchange(format!("GET {target} HTTP/1.1\r\n{host}\r\n\r\n"));
            let url = format!("http://api.example.com{target}");
            let mut client = scene.gateway.client();
            let outside = client.exchange(format!("GET {url} HTTP/1.1\r\n{host}\r\n\r\n"));
            let both = [&inside, &outside].map(|answer| answer.header("outgate-reason"));
            assert_eq!(both[0], both[1], "{target}");
            (both[0].map(str::to_owned), inside)
        };
        for target in [
            "/v1/public/../secret",
            "/v1/public/%2e%2e/secret",
            "/v1/public/%2E./secret",
            "/v1//public/x",
            "/v1/public;a/../../secret",
            "/v1/public\\..\\secret",
            "/v1/public%5c..%5csecret",
            "/v1/public/x%00",
            "/v1/public/./x",
            "//v1/public/x",
            "/v1/public%2f..%2fsecret",
        ] {
            assert_eq!(get(target).0.as_deref(), Some("ambiguous_path"), "{target}");
        }
        for target in ["/v1/public%2Fx", "/v1/secret", "/v1/public", "/"] {
            assert_eq!(get(target).0.as_deref(), Some("path_not_allowed"), "{target}");
        }
        for target in ["/v1/public/x", "/v1/p%75blic/%7Ex?q=/../y", "/v1/public/a%2Fb"] {
            let (reason, answer) = get(target);
            assert_eq!(reason, None, "{target}");
            assert_eq!(answer.json()["target"], target, "bytes judged are bytes sent");
        }
        assert_eq!(scene.gateway.wait_audit(36).len(), 36);
    });
}

#[test]
fn a_star_alone_is_every_public_name_and_nothing_of_this_machine() {
    isolated(|| {
        let world = world!();
        let local = world.silent("127.0.0.1:443");
        for name in ["localhost", "x.localhost", "ip6-localhost", "localhost.localdomain"] {
            world.dns.name(name, &["11.22.33.44"]);
        }
        for name in ["metadata.google.internal", "gateway"] {
            world.dns.name(name, &["169.254.169.254"]);
        }
        let identity = world.pki.leaf("11.22.33.44").issue();
        let api = world.https("api.example.com").identity(identity).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": "*"}]}}));
        let expected = [
            ("127.0.0.1", "address_not_allowed"),
            ("localhost", "address_not_allowed"),
            ("LOCALHOST.", "address_not_allowed"),
            ("x.localhost", "address_not_allowed"),
            ("ip6-localhost", "address_not_allowed"),
            ("localhost.localdomain", "address_not_allowed"),
            ("metadata.google.internal", "address_not_allowed"),
            ("gateway", "domain_not_allowed"),
            ("1.0.0.127.in-addr.arpa", "address_not_allowed"),
        ];
        for (host, reason) in expected {
            for door in Door::ALL {
                let refused = door.get(&gateway, host);
                assert_eq!(refused.header("outgate-reason"), Some(reason), "{door:?} {host}");
            }
        }
        assert_eq!((local.connections(), api.connections()), (0, 0));
        assert_eq!(world.dns.asked("localhost") + world.dns.asked("x.localhost"), 0);
        for door in Door::TLS {
            assert_eq!(door.get(&gateway, "11.22.33.44").status, 200, "{door:?}");
        }
        assert_eq!(gateway.wait_audit(38).len(), 38);
    });
}

#[test]
fn curl_shows_why_a_connect_was_refused_and_does_not_hang() {
    isolated(|| {
        let scene = Scene::new(&["api.example.com"], &json!([{"domain": "api.example.com"}]));
        let answer = scene.gateway.curl("https://evil.example.test/").max_time(5).run();
        assert_eq!((answer.connect_status, answer.exit_code), (403, 56), "{answer:?}");
        assert_eq!(answer.reason(), Some("domain_not_allowed"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(answer.heads[0].start_line.ends_with("403 domain_not_allowed"), "{answer:?}");
        let plain = scene.gateway.curl("http://evil.example.test/").run();
        assert_eq!((plain.status, plain.reason()), (403, Some("domain_not_allowed")));
        assert_eq!(plain.json()["error"]["details"][0]["domain"], "evil.example.test");
    });
}
