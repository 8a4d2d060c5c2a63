//! Can a client reach the gateway itself, or make it talk to itself, through the gateway?

use std::fs;
use std::net::Ipv4Addr;

use outgate_tests::prelude::*;

const EXPLICIT: u16 = 18_080;
const MANAGEMENT: u16 = 18_081;

/// An environment that may go anywhere on both ports, under an operator who opened all that can be
/// opened.
struct Scene {
    world: World,
    configuration: String,
}

impl Scene {
    fn new(bind: &str) -> Self {
        let world = world!();
        for (name, addresses) in [
            ("lo", &["127.0.0.1"][..]),
            ("lo6", &["::1"]),
            ("public", &["11.22.33.99"]),
            ("machine", &["11.22.33.98"]),
            ("mixed", &["11.22.33.99", "11.22.33.44"]),
        ] {
            world.dns.name(&format!("{name}.ok.example.test"), addresses);
        }
        let list = ["*", "*.ok.example.test"]
            .map(|domain| json!({"domain": domain, "ports": [EXPLICIT, MANAGEMENT]}));
        let environment = network::folder().join("one.json");
        fs::write(&environment, json!({"network": {"allowlist": list}}).to_string())
            .expect("the test's folder is writable");
        let configuration = format!(
            "[[listener]]\nkind = \"explicit\"\nbind = \"{bind}\"\n\
             [[environment]]\nfile = \"{}\"\nsource_addresses = [\"10.20.0.2\"]\n\
             [addresses]\nallow = [\"0.0.0.0/0\", \"::/0\"]\n\
             dangerously_allow = [\"127.0.0.1:{EXPLICIT}\", \"127.0.0.1:{MANAGEMENT}\", \
             \"[::1]:{EXPLICIT}\"]\n",
            environment.display()
        );
        Self { world, configuration }
    }

    fn start(&self) -> Gateway {
        self.world
            .gateway_builder()
            .configuration(&self.configuration)
            .listeners_from_configuration()
            .management(&format!("127.0.0.1:{MANAGEMENT}"))
            .start()
    }
}

fn client(gateway: &Gateway) -> RawClient {
    let source = "10.20.0.2".parse().expect("an address");
    let to = (Ipv4Addr::new(11, 22, 33, 99), EXPLICIT).into();
    RawClient::connect_from(source, to, gateway.ca())
}

/// Each is refused by every door, and no request of the gateway's own comes back in.
fn assert_own(bind: &str, own: &[(&str, u16)]) {
    let mut gateway = Scene::new(bind).start();
    for (host, port) in own {
        for door in Door::ALL {
            let refused = door.ask(client(&gateway), host, *port, "");
            let reason = refused.header("outgate-reason");
            assert_eq!(reason, Some("address_not_allowed"), "{bind}: {door:?} {host}:{port}");
        }
    }
    let audit = gateway.final_audit();
    assert_eq!(audit.len(), own.len() * Door::ALL.len(), "{audit:#?}");
}

const AT_ONE_ADDRESS: [(&str, u16); 4] = [
    ("lo.ok.example.test", MANAGEMENT),
    ("11.22.33.99", EXPLICIT),
    ("[::ffff:11.22.33.99]", EXPLICIT),
    ("public.ok.example.test", EXPLICIT),
];

#[test]
fn a_listener_at_one_address_is_never_dialled_there() {
    isolated(|| assert_own("11.22.33.99:18080", &AT_ONE_ADDRESS));
}

#[test]
fn a_listener_at_every_address_is_never_dialled_at_any() {
    let machine = [("lo.ok.example.test", EXPLICIT), ("machine.ok.example.test", EXPLICIT)];
    isolated(|| assert_own("0.0.0.0:18080", &[&AT_ONE_ADDRESS[..], &machine].concat()));
}

#[test]
fn a_listener_of_both_families_is_never_dialled_by_either() {
    let machine = [
        ("lo.ok.example.test", EXPLICIT),
        ("lo6.ok.example.test", EXPLICIT),
        ("machine.ok.example.test", EXPLICIT),
    ];
    isolated(|| assert_own("[::]:18080", &[&AT_ONE_ADDRESS[..], &machine].concat()));
}

#[test]
fn of_an_answer_with_the_gateway_in_it_the_others_are_dialled() {
    isolated(|| {
        let scene = Scene::new("11.22.33.99:18080");
        let other = scene.world.http("api.example.com").port(EXPLICIT).start();
        let mut gateway = scene.start();
        for door in [Door::AbsoluteHttp, Door::ConnectPlain] {
            let answer = door.ask(client(&gateway), "mixed.ok.example.test", EXPLICIT, "");
            assert_eq!(answer.status, 200, "{door:?} {answer:?}");
        }
        assert!(other.connections() > 0);
        assert_eq!(gateway.final_audit().len(), 2);
    });
}
