//! Does SOCKS5 lead where CONNECT would, and nowhere else?

#[path = "socks/attacks.rs"]
mod attacks;
#[path = "socks/whose.rs"]
mod whose;

use std::net::{IpAddr, SocketAddr};

use outgate_tests::client::Answer;
use outgate_tests::dns::RecordType;
use outgate_tests::names::Names;
use outgate_tests::prelude::*;
use serde_json::Value;

const API: &str = "api.example.com";
const EVIL: &str = "evil.example.test";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

/// Version 5, one method: nothing is said of whose it is.
const GREETING: &[u8] = &[5, 1, 0];
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const CONNECTION_REFUSED: u8 = 5;
const NOT_THIS_COMMAND: u8 = 7;
const NOT_THIS_ADDRESS: u8 = 8;

/// A gateway with SOCKS and DNS on loopback for one environment.
fn start(world: &World, environment: &Value) -> Gateway {
    with(world, environment, "")
}

fn with(world: &World, environment: &Value, configuration: &str) -> Gateway {
    let builder = world.gateway_builder().environment(environment).configuration(configuration);
    builder.argument("--socks=127.0.0.1:0").argument("--dns=127.0.0.1:0").start()
}

fn address(gateway: &Gateway, kind: &str) -> SocketAddr {
    let text = gateway.ready()[kind][0].as_str().expect("it listens");
    text.parse().expect("an address")
}

fn connect(gateway: &Gateway) -> RawClient {
    RawClient::connect(address(gateway, "socks"), gateway.ca())
}

/// A request for a name.
fn named(name: impl AsRef<[u8]>, port: u16) -> Vec<u8> {
    let name = name.as_ref();
    let length = u8::try_from(name.len()).expect("names are short");
    [&[5, 1, 0, 3, length], name, &port.to_be_bytes()].concat()
}

/// A request for an address.
fn literal(address: &str, port: u16) -> Vec<u8> {
    match address.parse().expect("an address") {
        IpAddr::V4(four) => [&[5, 1, 0, 1], &four.octets()[..], &port.to_be_bytes()].concat(),
        IpAddr::V6(six) => [&[5, 1, 0, 4], &six.octets()[..], &port.to_be_bytes()].concat(),
    }
}

/// The code of the gateway's reply, whose address says nothing.
fn reply(client: &mut RawClient) -> u8 {
    let reply = client.read_exact(10);
    assert_eq!((&reply[..1], &reply[2..]), (&[5][..], &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    reply[1]
}

/// Asks without saying whose it is.
fn ask(gateway: &Gateway, request: &[u8]) -> (u8, RawClient) {
    let mut client = connect(gateway);
    client.send(GREETING);
    assert_eq!(client.read_exact(2), [5, 0]);
    client.send(request);
    (reply(&mut client), client)
}

/// The code of a refusal, after which the connection is closed.
fn refused(gateway: &Gateway, request: &[u8]) -> u8 {
    let (code, mut client) = ask(gateway, request);
    assert!(client.is_closed(), "{}", request.escape_ascii());
    code
}

fn curl(gateway: &Gateway, proxy: &str, url: &str) -> Answer {
    let proxy = format!("{proxy}{}", address(gateway, "socks"));
    Curl::new(url).ca(gateway.ca()).argument("--proxy").argument(proxy).run()
}

fn allowing(names: &[&str]) -> Value {
    let entries: Vec<_> = names.iter().map(|name| json!({"domain": name})).collect();
    json!({"network": {"allowlist": entries}})
}

#[test]
fn curl_goes_through_it_over_tls_and_in_clear() {
    isolated(|| {
        let world = world!();
        let (secure, clear) = (world.https(API).start(), world.http(API).start());
        let gateway = start(&world, &allowing(&[API]));
        for url in ["https://api.example.com/", "http://api.example.com/"] {
            let answer = curl(&gateway, "socks5h://", url);
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        assert_eq!((secure.requests().len(), clear.requests().len()), (1, 1));
        let audit = gateway.wait_audit(2);
        for line in &audit {
            assert_eq!((&line["kind"], &line["ingress"]), (&json!("request"), &json!("socks")));
            assert_eq!(
                (&line["domain"], &line["environment_id"]),
                (&json!(API), &json!("env_test"))
            );
        }
    });
}

#[test]
fn a_refused_connection_is_told_by_its_reply() {
    isolated(|| {
        let world = world!();
        let (api, evil) = (world.https(API).start(), world.https(EVIL).start());
        world.name("private.example.com", "10.0.0.9");
        let gateway = start(
            &world,
            &json!({"network": {"allowlist": [
                {"domain": "*.example.com"},
                {"domain": "*.example.com", "ports": [2222], "protocol": "tcp"},
                {"domain": "no.example.com", "deny": true},
            ]}}),
        );
        let requests = [
            (named(EVIL, 443), NOT_ALLOWED, "domain_not_allowed"),
            (named(API, 25), NOT_ALLOWED, "port_not_allowed"),
            (named("no.example.com", 443), NOT_ALLOWED, "denied_by_entry"),
            (named("private.example.com", 443), NOT_ALLOWED, "address_not_allowed"),
            (named("localhost", 443), NOT_ALLOWED, "address_not_allowed"),
            (named("nowhere.example.com", 443), HOST_UNREACHABLE, "origin_dns"),
            (named(API, 2222), CONNECTION_REFUSED, "origin_connect"),
            (literal("11.22.33.66", 443), NOT_ALLOWED, "domain_not_allowed"),
            (literal("127.0.0.1", 443), NOT_ALLOWED, "domain_not_allowed"),
            (literal("198.19.255.250", 443), NOT_ALLOWED, "address_not_allowed"),
        ];
        for (number, (request, code, reason)) in requests.iter().enumerate() {
            assert_eq!(refused(&gateway, request), *code, "{reason}");
            let audit = gateway.wait_audit(number + 1);
            assert_eq!(audit.len(), number + 1, "{audit:#?}");
            let line = &audit[number];
            assert_eq!((&line["kind"], &line["reason"]), (&json!("tunnel"), &json!(reason)));
        }
        assert_eq!((api.connections(), evil.connections()), (0, 0));
    });
}

#[test]
fn literals_are_judged_in_whatever_spelling() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &json!({}));
        let dialled = network::connection_attempts();
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
        ] {
            assert_eq!(refused(&gateway, &literal(address, 443)), NOT_ALLOWED, "{address}");
        }
        for address in ["::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"] {
            assert_eq!(refused(&gateway, &literal(address, 443)), NOT_ALLOWED, "{address}");
            assert_eq!(refused(&gateway, &named(format!("[{address}]"), 443)), NOT_ALLOWED);
        }
        // Those of this test's own clients.
        assert_eq!(network::connection_attempts() - dialled, 8 + 3 * 2);
        assert_eq!(world.dns.questions().len(), 0);
    });
}

#[test]
fn a_request_that_is_refused_reads_why_inside() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let gateway = start(
            &world,
            &json!({"network": {"allowlist": [
                {"domain": API, "methods": ["POST"]},
            ]}}),
        );
        let (code, client) = ask(&gateway, &named(API, 443));
        assert_eq!(code, SUCCEEDED);
        let mut client = client.tls(&Hello::to(API));
        let answer = client.exchange(GET);
        assert_eq!(answer.header("outgate-reason"), Some("method_not_allowed"), "{answer:?}");
        let other = client.exchange("POST / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n");
        assert_eq!(other.status, 421);
        assert_eq!(api.connections(), 0);
    });
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    isolated(|| {
        let world = world!();
        let script = |connection: &mut Connection| {
            connection.send("220 ready\r\n");
            let said = connection.bytes();
            connection.send(&said);
        };
        let _origin = Origin::http("11.22.33.44:25").script(script).start();
        let gateway = start(
            &world,
            &json!({"network": {"allowlist": [
                {"domain": API, "ports": [25], "protocol": "tcp"},
            ]}}),
        );
        let (code, mut client) = ask(&gateway, &named(API, 25));
        assert_eq!(code, SUCCEEDED);
        assert_eq!(client.read_exact(11), b"220 ready\r\n");
        client.send("quit\r\n");
        client.finish_sending();
        assert_eq!(client.read_to_end().expect("a clean end"), b"quit\r\n");
        let line = &gateway.wait_audit(1)[0];
        assert_eq!((&line["ingress"], &line["bytes_up"]), (&json!("socks"), &json!(6)));
    });
}

#[test]
fn an_address_of_the_gateways_dns_means_its_name() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let gateway = start(&world, &allowing(&[API]));
        let names = Names::of(address(&gateway, "dns"));
        let given = names.address(API, RecordType::A).to_string();
        for (given, bracketed) in [
            (given.clone(), given.clone()),
            (format!("::ffff:{given}"), format!("[::ffff:{given}]")),
        ] {
            let (code, client) = ask(&gateway, &literal(&given, 443));
            assert_eq!(code, SUCCEEDED, "{given}");
            assert_eq!(client.tls(&Hello::to(API)).exchange(GET).status, 200);
            // CONNECT and absolute-form know it too.
            let client = gateway.client().connect_tunnel(&format!("{bracketed}:443"));
            assert_eq!(client.tls(&Hello::to(API)).exchange(GET).status, 200);
            let request = format!("GET https://{bracketed}/ HTTP/1.1\r\nHost: {bracketed}\r\n\r\n");
            let answer = gateway.client().exchange(request);
            assert_eq!(scripts::echoed_headers(&answer)["host"], [API]);
        }
        let unknown = gateway.client().try_connect_tunnel("198.19.255.250:443").err();
        let unknown = unknown.expect("it stands for nothing");
        assert_eq!(unknown.header("outgate-reason"), Some("address_not_allowed"));
        let request = "GET http://198.19.255.250/ HTTP/1.1\r\nHost: 198.19.255.250\r\n\r\n";
        let unknown = gateway.client().exchange(request);
        assert_eq!(unknown.header("outgate-reason"), Some("address_not_allowed"));
        assert!(api.requests().iter().all(|request| request.header("host") == Some(API)));
    });
}
