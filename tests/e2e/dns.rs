//! Does the gateway alone answer the names of a sandbox, and only that sandbox's?

#[path = "dns/attacks.rs"]
mod attacks;
#[path = "dns/whose.rs"]
mod whose;

use std::net::IpAddr;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use outgate_tests::dns::RecordType;
use outgate_tests::names::Names;
use outgate_tests::prelude::*;

const API: &str = "api.example.com";
/// RFC 1035 §4.1.1.
const REFUSED: u8 = 5;

fn allowing_api() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": API}]}})
}

/// A gateway with a name server on loopback.
fn start(world: &World, environment: &serde_json::Value) -> Gateway {
    let builder = world.gateway_builder().environment(environment);
    builder.argument("--dns").argument("127.0.0.1:0").start()
}

fn is_synthetic(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] == 198 && address.octets()[1] & 0xfe == 18,
        IpAddr::V6(address) => address.segments()[..4] == [0xfd6f, 0x7574, 0x6761, 0x7465],
    }
}

/// Random names, of one label to many, in both cases.
fn drawn_names(count: usize) -> Vec<String> {
    let label = || canary(12).replace('_', "x").trim_matches('-').to_owned() + "a";
    (0..count).map(|number| vec![label(); number % 5 + 1].join(".")).collect()
}

#[test]
fn answers_every_name_itself_and_asks_nobody() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &allowing_api());
        let names = gateway.names();
        let mut connection = names.connect();
        let mut drawn = drawn_names(50);
        drawn.extend([API, "evil.example.test", "printer", "a.ok.example.test"].map(str::to_owned));
        for name in &drawn {
            let address = names.address(name, RecordType::A);
            assert!(is_synthetic(address), "{name}: {address}");
            assert_eq!(names.address(&name.to_uppercase(), RecordType::A), address, "{name}");
            let over_tcp = connection.ask(name, RecordType::A).expect("an answer over TCP");
            assert_eq!(over_tcp.data(), [address.to_string()], "{name}");
            assert_eq!(names.name(address), Some(name.to_ascii_lowercase()));
        }
        assert_eq!(names.address("localhost", RecordType::A), IpAddr::from([127, 0, 0, 1]));
        for kind in [RecordType::HTTPS, RecordType::SVCB, RecordType::TXT, RecordType::ANY] {
            let told = names.ask(API, kind);
            assert_eq!((told.code().low(), told.data().len()), (0, 0), "{kind}");
        }
        assert_eq!(world.dns.questions(), [], "a question left the gateway");
        assert_eq!(gateway.audit().len(), 0, "a question is no request");
        assert_eq!(gateway.metric("outgate_dns_queries_total{answer=\"empty\"}"), 4.0);
        let pointers = gateway.metric("outgate_dns_queries_total{answer=\"pointer\"}");
        assert_eq!(pointers, drawn.len() as f64);
    });
}

#[test]
fn gives_ipv6_addresses_only_where_ipv6_comes_here() {
    isolated(|| {
        let world = world!();
        for (transparent, captured) in [("127.0.0.1:0", false), ("[::1]:0", true)] {
            let builder = world.gateway_builder().environment(&allowing_api());
            let gateway = builder
                .argument("--dns")
                .argument("[::1]:0")
                .argument("--transparent")
                .argument(transparent)
                .start();
            let told = gateway.names().ask(API, RecordType::AAAA);
            let addresses: Vec<IpAddr> =
                told.data().iter().map(|text| text.parse().expect("an address")).collect();
            assert_eq!(addresses.len(), usize::from(captured), "{transparent}");
            assert!(addresses.into_iter().all(is_synthetic));
            let local = gateway.names().address("localhost", RecordType::AAAA);
            assert_eq!(local, "::1".parse::<IpAddr>().expect("an address"));
        }
    });
}

#[test]
fn refuses_every_question_while_the_network_is_disabled() {
    isolated(|| {
        let world = world!();
        let disabled = json!({"network": "disabled"});
        let gateway = start(&world, &disabled);
        let names = gateway.names();
        let refused = |names: &Names| names.ask(API, RecordType::A).code().low() == REFUSED;
        let mut connection = names.connect();
        assert!(refused(&names));
        let over_tcp = connection.ask("localhost", RecordType::A).expect("an answer");
        assert_eq!((over_tcp.code().low(), over_tcp.data().len()), (REFUSED, 0));
        gateway.set_environment(&allowing_api());
        assert!(wait_until(Duration::from_secs(5), || !refused(&names)));
        assert_eq!(connection.ask(API, RecordType::A).expect("an answer").data().len(), 1);
        gateway.set_environment(&disabled);
        assert!(wait_until(Duration::from_secs(5), || refused(&names)));
        assert_eq!(connection.ask(API, RecordType::A).expect("an answer").code().low(), REFUSED);
    });
}

#[test]
fn answers_until_the_last_connection_has_ended_and_keeps_nobody_waiting() {
    isolated(|| {
        let world = world!();
        let (answer_now, may_answer) = mpsc::channel::<()>();
        let may_answer = Mutex::new(may_answer);
        let slow = move |connection: &mut Connection| {
            if connection.request().is_some() {
                may_answer.lock().expect("no panic").recv().expect("the test says when");
                connection.send(scripts::ok("late"));
            }
        };
        let api = world.https(API).script(slow).start();
        let mut gateway = start(&world, &allowing_api());
        let names = gateway.names();
        let idle = names.connect();
        let address = names.address(API, RecordType::A);
        let slow = gateway.curl("https://api.example.com/").start();
        api.wait_requests(1);
        gateway.terminate();
        assert!(gateway.wait_log("draining"));
        assert_eq!(names.address(API, RecordType::A), address);
        answer_now.send(()).expect("it waits");
        assert_eq!(slow.wait().status, 200);
        let began = Instant::now();
        assert_eq!(gateway.wait(), 0);
        assert!(began.elapsed() < Duration::from_secs(5), "a name server's client held it up");
        drop(idle);
    });
}
