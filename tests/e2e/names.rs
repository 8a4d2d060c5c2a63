//! Is it one name all the way: CONNECT, SNI, Host, certificate, look-up?

use outgate_tests::prelude::*;
use rustls::AlertDescription;
use serde_json::Value;

const API: &str = "api.example.com";
const OTHER: &str = "a.ok.example.test";

/// How a client opens a tunnel to a name that it says itself.
#[derive(Clone, Copy, Debug)]
enum Way {
    Connect,
    Socks,
}

/// Two allowed origins with a secret each, and one that is not allowed.
struct Scene {
    world: World,
    origins: Vec<Origin>,
    gateway: Gateway,
    secrets: [String; 2],
}

impl Scene {
    fn new() -> Self {
        let world = world!();
        let secrets = [canary(40), canary(40)];
        let origins = [API, OTHER, "evil.example.test"].map(|name| world.https(name).start());
        let bearer = |secret: &str| json!({"Authorization": format!("Bearer {secret}")});
        let environment = json!({"network": {"allowlist": [
            {"domain": API, "transform": bearer(&secrets[0])},
            {"domain": "*.ok.example.test", "transform": bearer(&secrets[1])},
        ]}});
        let builder = world.gateway_builder().environment(&environment);
        let gateway = builder.argument("--socks=127.0.0.1:0").start();
        Self { world, origins: origins.into(), gateway, secrets }
    }

    fn tunnel(&self, way: Way) -> RawClient {
        self.open(way, API).tls(&Hello::to(API))
    }

    /// A tunnel to port 443 of this name, in which nothing was said yet.
    fn open(&self, way: Way, name: &str) -> RawClient {
        match way {
            Way::Connect => self.gateway.client().connect_tunnel(&format!("{name}:443")),
            Way::Socks => {
                let socks = self.gateway.ready()["socks"][0].as_str().expect("it listens");
                let mut client =
                    RawClient::connect(socks.parse().expect("an address"), self.gateway.ca());
                let length = u8::try_from(name.len()).expect("names are short");
                client.send([&[5, 1, 0, 5, 1, 0, 3, length], name.as_bytes(), &[1, 187]].concat());
                assert_eq!(client.read_exact(12)[..4], [5, 0, 5, 0], "{name}");
                client
            }
        }
    }

    /// No origin was dialled, and nobody heard of a secret.
    fn assert_nothing_left(&self) {
        for origin in &self.origins {
            assert_eq!(origin.connections(), 0, "{} was dialled", origin.address());
        }
        for secret in &self.secrets {
            assert_secret_absent(self.gateway.output(), secret);
        }
    }

    /// What is asked for as it should be works, with the one secret that belongs to it.
    fn assert_control(&self) {
        let answer = self.gateway.curl("https://api.example.com/control").run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let requests = self.origins[0].requests();
        let value = format!("Bearer {}", self.secrets[0]);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].head.values("authorization"), [value.as_str()]);
    }

    /// The reasons of every line but the control's, with what a line of this kind must have.
    fn refusals(&mut self, kind: &str) -> Vec<Value> {
        let mut audit = self.gateway.final_audit();
        assert_eq!(audit.pop().expect("the control's line")["verdict"], "allow");
        for line in &audit {
            assert_eq!((&line["kind"], &line["verdict"]), (&json!(kind), &json!("deny")), "{line}");
        }
        audit.iter().map(|line| line["reason"].clone()).collect()
    }
}

/// Each of them by each way.
fn by_all_ways<T: Copy, const N: usize>(all: [T; N]) -> impl Iterator<Item = (Way, T)> {
    [Way::Connect, Way::Socks].into_iter().flat_map(move |way| all.map(|one| (way, one)))
}

#[test]
fn a_host_other_than_the_tunnels_is_misdirected_and_gets_nothing() {
    isolated(|| {
        let mut scene = Scene::new();
        let others = [
            "evil.example.test",
            OTHER,
            "api.example.com:8443",
            "api.example.com:80",
            "api.example.com.evil.example.test",
            "11.22.33.44",
        ];
        for (way, host) in by_all_ways(others) {
            let mut tunnel = scene.tunnel(way);
            let refused = tunnel.exchange(format!("GET /k HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(refused.status, 421, "{way:?} {host}: {refused:?}");
            assert_eq!(refused.header("outgate-reason"), Some("name_mismatch"), "{host}");
        }
        scene.assert_nothing_left();
        scene.assert_control();
        assert_eq!(scene.refusals("request"), vec![json!("name_mismatch"); 2 * others.len()]);
    });
}

#[test]
fn an_absolute_target_inside_a_tunnel_is_held_to_the_tunnel_too() {
    isolated(|| {
        let mut scene = Scene::new();
        let requests = [
            ("http://api.example.com/a", "evil.example.test", "name_mismatch"),
            ("https://evil.example.test/a", API, "name_mismatch"),
            ("https://a.ok.example.test/a", OTHER, "name_mismatch"),
            ("https://api.example.com:8443/a", API, "name_mismatch"),
            ("http://api.example.com/a", API, "name_mismatch"),
            ("https://api.example.com@evil.example.test/", API, "malformed_host"),
            ("ftp://api.example.com/", API, "name_mismatch"),
        ];
        for (way, (target, host, reason)) in by_all_ways(requests) {
            let mut tunnel = scene.tunnel(way);
            let refused = tunnel.exchange(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(
                refused.header("outgate-reason"),
                Some(reason),
                "{way:?} {target} {refused:?}"
            );
        }
        scene.assert_nothing_left();
        let mut tunnel = scene.tunnel(Way::Socks);
        let answer = tunnel.exchange(
            "GET https://api.example.com/same?q=1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        );
        assert_eq!(answer.status, 200);
        let sent = &scene.origins[0].requests()[0];
        assert_eq!((sent.target.as_str(), sent.header("host")), ("/same?q=1", Some(API)));
        drop(tunnel);
        let reasons: Vec<_> = by_all_ways(requests).map(|(_, it)| json!(it.2)).collect();
        assert_eq!(scene.refusals("request"), reasons);
    });
}

#[test]
fn connect_inside_a_tunnel_is_refused_whatever_it_names() {
    isolated(|| {
        let mut scene = Scene::new();
        let targets = ["evil.example.test:443", "a.ok.example.test:443", "api.example.com:443"];
        for (way, target) in by_all_ways(targets) {
            let mut tunnel = scene.tunnel(way);
            tunnel.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"));
            let refused = tunnel.try_read_response("CONNECT").expect("a refusal");
            assert_eq!(refused.status, 405, "{way:?} {target}: {refused:?}");
            assert_eq!(refused.header("outgate-reason"), Some("connect_in_tunnel"));
        }
        scene.assert_nothing_left();
        scene.assert_control();
        assert_eq!(scene.refusals("request"), vec![json!("connect_in_tunnel"); 6]);
    });
}

#[test]
fn sni_other_than_the_tunnels_name_is_unrecognized() {
    isolated(|| {
        let mut scene = Scene::new();
        let pairs = [(API, "evil.example.test"), (OTHER, API), (API, OTHER)];
        for (way, (name, sni)) in by_all_ways(pairs) {
            let fault = scene.open(way, name).try_tls(&Hello::to(sni)).err();
            let expected = TlsFault::Alert(AlertDescription::UnrecognisedName);
            assert_eq!(fault, Some(expected), "{way:?} {name}, SNI {sni}");
        }
        scene.assert_nothing_left();
        scene.assert_control();
        assert_eq!(scene.refusals("tunnel"), vec![json!("name_mismatch"); 6]);
    });
}

#[test]
fn spellings_of_one_name_are_one_name() {
    isolated(|| {
        let mut scene = Scene::new();
        let spellings = [
            ("api.example.com.", API, "API.example.COM"),
            ("API.Example.COM", "api.example.com", "api.example.com."),
            ("api.example.com", "API.EXAMPLE.com", "api.example.com:443"),
            ("Api.example.com.", "api.example.com", "api.example.com.:443"),
        ];
        for (way, (name, sni, host)) in by_all_ways(spellings) {
            let mut tunnel = scene.open(way, name).tls(&Hello::to(sni));
            let answer = tunnel.exchange(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(answer.status, 200, "{way:?} {name} {sni} {host}: {answer:?}");
        }
        let origin = &scene.origins[0];
        for record in origin.records() {
            let handshake = record.handshake().expect("over").expect("done");
            assert_eq!(handshake.server_name.as_deref(), Some(API));
        }
        assert!(origin.requests().iter().all(|request| request.header("host") == Some(API)));
        let audit = scene.gateway.final_audit();
        assert_eq!(audit.len(), 2 * spellings.len());
        assert!(audit.iter().all(|line| line["domain"] == API), "{audit:#?}");
    });
}

#[test]
fn the_forward_door_holds_host_to_its_target() {
    isolated(|| {
        let mut scene = Scene::new();
        for target in ["https://api.example.com/", "https://a.ok.example.test/"] {
            let mut client = scene.gateway.client();
            let refused = client
                .exchange(format!("GET {target} HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"));
            assert_eq!(refused.status, 421, "{target}: {refused:?}");
        }
        let mut client = scene.gateway.client();
        client.send("CONNECT api.example.com:443 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n");
        assert_eq!(client.try_read_response("CONNECT").expect("a refusal").status, 421);
        scene.assert_nothing_left();
        scene.assert_control();
        let audit = scene.gateway.final_audit();
        assert_eq!(audit.len(), 4);
        assert!(audit[..3].iter().all(|line| line["reason"] == "name_mismatch"), "{audit:#?}");
    });
}

#[test]
fn https_to_the_forward_door_is_judged_injected_and_verified_like_a_tunnel() {
    isolated(|| {
        let scene = Scene::new();
        let answer = Door::AbsoluteHttps.get(&scene.gateway, API);
        assert_eq!(answer.status, 200, "{answer:?}");
        let value = format!("Bearer {}", scene.secrets[0]);
        assert_eq!(scene.origins[0].requests()[0].header("authorization"), Some(value.as_str()));
        // A good certificate, of another name.
        let spoiled = "spoiled.ok.example.test";
        scene.world.name(spoiled, "11.22.33.77");
        let identity = scene.world.pki.leaf(API).issue();
        let origin = scene.world.https(spoiled).identity(identity).start();
        for door in Door::TLS {
            let refused = door.get(&scene.gateway, spoiled);
            assert_eq!(refused.header("outgate-reason"), Some("origin_tls"), "{door:?}");
        }
        assert_eq!(origin.raw(), b"");
        assert_eq!(scene.gateway.wait_audit(3).len(), 3);
    });
}

#[test]
fn a_redirect_is_the_clients_to_follow() {
    isolated(|| {
        let world = world!();
        let evil = world.https("evil.example.test").start();
        let targets = [
            "https://evil.example.test/",
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "//evil.example.test",
        ];
        let locations = targets.map(str::to_owned);
        let api = world
            .https(API)
            .script(move |connection| {
                while let Some(request) = connection.request() {
                    let number: usize = request.target[1..].parse().expect("a number");
                    let status = [302, 307, 308, 301][number];
                    connection.send(format!(
                        "HTTP/1.1 {status} Moved\r\nLocation: {0}\r\nRefresh: 0; url={0}\r\n\
                         Content-Length: 0\r\n\r\n",
                        locations[number]
                    ));
                }
            })
            .start();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
        for (number, target) in targets.iter().enumerate() {
            let answer = gateway.curl(&format!("https://api.example.com/{number}")).run();
            assert_eq!(answer.status, [302, 307, 308, 301][number], "{answer:?}");
            assert_eq!(answer.header("location"), Some(*target));
            assert_eq!(answer.header("refresh"), Some(format!("0; url={target}").as_str()));
        }
        // Followed by the client, it is judged anew.
        let followed = gateway.curl("https://api.example.com/0").argument("--location").run();
        assert_eq!(followed.connect_status, 403, "{followed:?}");
        assert_eq!((api.requests().len(), evil.connections()), (5, 0));
        assert_eq!(gateway.wait_audit(6).len(), 6);
    });
}
