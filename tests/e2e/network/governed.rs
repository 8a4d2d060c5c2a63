//! Is a client that knows of no gateway served by it, and judged?

use serde_json::Value;

use super::attacks::Attacks;
use super::*;

for_every_kind![
    serves_both_families,
    finds_the_original_destination,
    finds_it_where_sockets_are_looked_up_early,
    connections_outlive_a_reload_of_the_rules,
    a_foreign_address_for_an_allowed_name_is_not_dialled,
    who_ignores_the_proxy_is_refused_at_once,
];

fn serves_both_families(kind: Kind) {
    let scene = Scene::new(kind);
    let _api = scene.api();
    let gateway = scene.gateway(&json!([{"domain": API}]));
    for family in ["--ipv4", "--ipv6"] {
        let ask = |url| {
            let curl = Curl::new(url).ca(gateway.ca()).argument(family);
            scene.one.inside(|| curl.run())
        };
        let allowed = ask("https://api.example.com/");
        assert_eq!(allowed.status, 200, "{family} {allowed:?}");
        for url in ["https://evil.example.test/", "http://evil.example.test/"] {
            let refused = ask(url);
            assert_eq!((refused.status, refused.reason()), (403, Some("domain_not_allowed")));
        }
        // D01: a port that no entry names, by a client that speaks first and by one that waits.
        let refused = ask("https://api.example.com:8443/");
        assert_eq!((refused.status, refused.reason()), (403, Some("port_not_allowed")));
    }
    assert_eq!(scene.site.leaked(&API_ORIGINS), []);
}

/// Where the engine wants frames filtered on the bridge, as with `icc=false` or in Kubernetes. A
/// kernel without br_netfilter can't, and has nothing to go wrong.
#[test]
fn serves_both_families_behind_a_bridge_that_filters() {
    isolated(|| {
        let scene = Scene::new(Kind::Container);
        let filter =
            "sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1";
        scene.site.gateway.shell(filter);
        let _api = scene.api();
        let gateway = scene.by_address_alone(&json!([{"domain": API}]));
        for family in ["--ipv4", "--ipv6"] {
            let curl = Curl::new("https://api.example.com/").ca(gateway.ca()).argument(family);
            assert_eq!(scene.one.inside(|| curl.run()).status, 200, "{family}");
        }
        Attacks::of_one(&scene).send(&scene.one);
        assert_eq!(scene.site.leaked(&API_ORIGINS), []);
    });
}

/// Many at once whose sources are the same.
fn finds_the_original_destination(kind: Kind) {
    let scene = Scene::new(kind);
    let originals = Originals::new();
    let _gateway = scene.gateway(&originals.entries());
    repeat_source_ports(&scene);
    let open: Vec<TcpStream> =
        scene.one.inside(|| originals.0.iter().map(Original::connect).collect());
    originals.0.iter().for_each(Original::was_met_once);
    drop(open);
    assert_eq!(scene.site.leaked(&originals.approved()), []);
}

/// The kernel looks for the socket of a packet before it gives it another source port, unless it is
/// told not to, as the page does.
fn finds_it_where_sockets_are_looked_up_early(kind: Kind) {
    let scene = Scene::new(kind);
    scene.site.gateway.shell("sysctl -qw net.ipv4.tcp_early_demux=1");
    let originals = Originals::new();
    let _gateway = scene.gateway(&originals.entries());
    repeat_source_ports(&scene);
    let mut open = Vec::new();
    for original in &originals.0 {
        open.push(scene.one.inside(|| original.connect()));
        original.was_met_once();
    }
}

/// Places that are known by their addresses alone, where nobody says anything.
struct Originals(Vec<Original>);

struct Original {
    host: String,
    at: String,
    origin: SilentListener,
}

impl Originals {
    fn new() -> Self {
        let places = (1..=8).flat_map(|number| {
            let (four, six) = (format!("11.22.44.{number}"), format!("2a00:44::{number}"));
            [(format!("{four}:2222"), four), (format!("[{six}]:2222"), six)]
        });
        let start = |(at, host): (String, String)| Original {
            origin: SilentListener::start(&at),
            host,
            at,
        };
        Self(places.map(start).collect())
    }

    fn entries(&self) -> Value {
        let entry = |original: &Original| json!({"domain": original.host, "ports": [2222], "protocol": "tcp"});
        self.0.iter().map(entry).collect()
    }

    fn approved(&self) -> Vec<&str> {
        self.0.iter().map(|original| original.at.as_str()).collect()
    }
}

impl Original {
    fn connect(&self) -> TcpStream {
        connect(&self.at).unwrap_or_else(|why| panic!("{}: {why}", self.at))
    }

    fn was_met_once(&self) {
        wait_until(Duration::from_secs(5), || self.origin.connections() > 0);
        assert_eq!(self.origin.connections(), 1, "{}", self.at);
    }
}

/// Leaves the sandbox two ports to connect from.
fn repeat_source_ports(scene: &Scene) {
    scene.one.shell("sysctl -qw net.ipv4.ip_local_port_range='40000 40001'");
}

fn connections_outlive_a_reload_of_the_rules(kind: Kind) {
    let scene = Scene::new(kind);
    let _api = scene.api();
    let gateway = scene.gateway(&json!([{"domain": API}]));
    let clients = scene.one.inside(|| {
        API_ORIGINS.map(|to| {
            let to = to.parse().expect("an address and a port");
            RawClient::connect(to, gateway.ca()).tls(&Hello::to(API))
        })
    });
    for mut client in clients {
        for _ in 0..3 {
            kind.load_rules(&scene.site.gateway);
            let answer = client.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(answer.status, 200);
        }
    }
}

/// A04, pC6.
fn a_foreign_address_for_an_allowed_name_is_not_dialled(kind: Kind) {
    let scene = Scene::new(kind);
    let api = scene.api();
    let plain = scene.world.http(API).start();
    let gateway = scene.gateway(&json!([{"domain": API}]));
    for foreign in [EVIL4, "[2a00:1122:3344::66]"] {
        let curl = Curl::new("https://api.example.com/").ca(gateway.ca());
        let curl = curl.argument("--connect-to").argument(format!("::{foreign}:"));
        assert_eq!(scene.one.inside(|| curl.run()).status, 200);
        let mut client = scene.one.inside(|| {
            RawClient::connect(format!("{foreign}:80").parse().expect("an address"), gateway.ca())
        });
        let answer = client.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(answer.status, 200);
    }
    assert_eq!(api.iter().map(Origin::connections).sum::<usize>() + plain.connections(), 2);
    assert_eq!(
        scene
            .site
            .leaked(&[&API_ORIGINS[..], &["11.22.33.44:80", "[2a00:1122:3344::44]:80"]].concat()),
        []
    );
}

/// D13, pD19: outgate has an explicit proxy and nothing else.
fn who_ignores_the_proxy_is_refused_at_once(kind: Kind) {
    let scene = Scene::new(kind);
    let _api = scene.api();
    let gateway = scene.explicit_only(&json!([{"domain": API}]));
    let proxy = "10.20.0.1:8080".parse().expect("an address and a port");
    let curl = |argument: &str| {
        let curl = Curl::new("https://api.example.com/").ca(gateway.ca()).proxy(proxy);
        let curl = curl.argument("--resolve").argument("api.example.com:443:11.22.33.44");
        scene.one.inside(|| curl.argument("--noproxy").argument(argument).run())
    };
    assert_eq!(curl("").status, 200);
    let refused = curl("*");
    let refused_at_once = refused.details["time_total"].as_f64().expect("a time") < 1.0;
    // 7: failed to connect.
    assert!(refused.exit_code == 7 && refused_at_once, "{refused:?}");
    assert_eq!(scene.site.leaked(&API_ORIGINS), []);
}
