use std::time::{Duration, Instant};

use super::*;
use crate::client::{ClientHello, Curl, Hello, RawClient, TlsFault};
use crate::http::ReadFault;
use crate::{World, isolated};

/// These tests need no gateway: `curl` asks the origins directly.
fn world() -> World {
    World::new("/no/program")
}

const API: &str = "https://api.example.com/";

fn get(world: &World, url: &str) -> Curl {
    Curl::new(url).ca(world.pki.roots())
}

fn client(world: &World, origin: &Origin) -> RawClient {
    RawClient::connect(origin.address(), world.pki.roots())
}

const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

#[test]
fn answers_real_curl_over_tls() {
    isolated(|| {
        let world = world();
        let origin = world.https("api.example.com").respond(scripts::ok("hello")).start();
        let answer = get(&world, "https://api.example.com/a?b").header("X-One", "1").run();
        assert_eq!((answer.exit_code, answer.status), (0, 200), "{}", answer.stderr);
        assert_eq!(answer.text(), "hello");
        let request = &origin.requests()[0];
        assert_eq!((request.target.as_str(), request.header("x-one")), ("/a?b", Some("1")));
        assert_eq!(origin.connections(), 1);
        let handshake = origin.records()[0].handshake().unwrap().unwrap();
        assert_eq!(handshake.server_name.as_deref(), Some("api.example.com"));
        assert_eq!(handshake.alpn.as_deref(), Some("http/1.1"));
        assert_eq!(world.dns.asked_for("api.example.com", crate::dns::RecordType::A), 1);
    });
}

#[test]
fn echoes_what_it_received_without_tls() {
    isolated(|| {
        let world = world();
        let origin = world.http("api.example.com").start();
        let answer = Curl::new("http://api.example.com/x").body("a\r\nb").run();
        let seen = answer.json();
        assert_eq!((&seen["method"], &seen["target"]), (&"POST".into(), &"/x".into()));
        assert_eq!(seen["body"], "a\r\nb");
        assert_eq!(seen["headers"][0], serde_json::json!(["Host", "api.example.com"]));
        assert!(origin.raw().ends_with(b"\r\n\r\na\r\nb"));
    });
}

#[test]
fn shows_spoilt_certificates_that_curl_refuses() {
    isolated(|| {
        let world = world();
        let leaf = || world.pki.leaf("api.example.com");
        let refused = [
            ("expired", leaf().expired().issue()),
            ("not yet valid", leaf().not_yet_valid().issue()),
            ("for clients", leaf().for_clients_only().issue()),
            ("unknown root", leaf().by_unknown_root().issue()),
            ("self-signed", leaf().self_signed().issue()),
            ("missing intermediate", leaf().missing_intermediate().issue()),
            ("another name", leaf().names(&["other.example.com"]).issue()),
        ];
        for (fault, identity) in refused {
            let origin = world.https("api.example.com").identity(identity).start();
            let answer = get(&world, API).run();
            assert_eq!(answer.exit_code, 60, "{fault}: {}", answer.stderr);
            assert_eq!((origin.connections(), origin.raw().len()), (1, 0), "{fault}");
        }
        let accepted = [
            ("intermediate", leaf().by_intermediate().issue()),
            ("wild card", leaf().names(&["*.example.com"]).issue()),
        ];
        for (kind, identity) in accepted {
            let _origin = world.https("api.example.com").identity(identity).start();
            assert_eq!(get(&world, API).run().status, 200, "{kind}");
        }
    });
}

#[test]
fn shows_a_common_name_that_rustls_refuses() {
    isolated(|| {
        let world = world();
        let identity = world.pki.leaf("api.example.com").common_name_only().issue();
        let origin = world.https("api.example.com").identity(identity).start();
        let outcome = client(&world, &origin).try_tls(&Hello::to("api.example.com"));
        assert!(matches!(outcome.err(), Some(TlsFault::Certificate(_))));
    });
}

#[test]
fn counts_connections_that_nobody_looked_at() {
    isolated(|| {
        let world = world();
        let silent = world.silent("127.0.0.1:443");
        assert_eq!(silent.connections(), 0);
        let clients: Vec<RawClient> = (0..3)
            .map(|_| RawClient::connect("127.0.0.1:443".parse().unwrap(), world.pki.roots()))
            .collect();
        assert_eq!(silent.connections(), clients.len());
    });
}

#[test]
fn truncates_resets_and_dribbles() {
    isolated(|| {
        let world = world();
        let origin = world.http("api.example.com").script(scripts::truncated(100, 40)).start();
        let outcome = read(&world, &origin);
        assert!(matches!(outcome, Err(ReadFault::Truncated { body }) if body.len() == 40));
        drop(origin);

        let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".as_slice();
        let origin = world.http("api.example.com").script(scripts::reset_after(half)).start();
        assert!(matches!(read(&world, &origin), Err(ReadFault::Reset { body }) if body == b"half"));
        drop(origin);

        let slow = scripts::slow(scripts::ok("12345"), 10, Duration::from_millis(20));
        let origin = world.http("api.example.com").script(slow).start();
        let started = Instant::now();
        assert_eq!(read(&world, &origin).unwrap().text(), "12345");
        assert!(started.elapsed() > Duration::from_millis(60));
    });
}

fn read(world: &World, origin: &Origin) -> Result<http::Response, ReadFault> {
    let mut client = client(world, origin);
    client.send(GET);
    client.try_read_response("GET")
}

#[test]
fn sends_trailers_early_hints_and_big_bodies() {
    isolated(|| {
        let world = world();
        let origin =
            world.http("api.example.com").script(scripts::chunked(&["ab", "c"], &["X-Sum: 3"]));
        let origin = origin.start();
        let response = read(&world, &origin).unwrap();
        assert_eq!((response.text().as_str(), response.trailers[0].value.as_str()), ("abc", "3"));
        drop(origin);

        let hints = scripts::early_hints("</a.css>; rel=preload", scripts::ok("x"));
        let origin = world.http("api.example.com").script(hints).start();
        assert_eq!(read(&world, &origin).unwrap().interim.len(), 1);
        drop(origin);

        let origin = world.https("api.example.com").script(scripts::big(5_000_000)).start();
        assert_eq!(get(&world, API).run().body.len(), 5_000_000);
        drop(origin);

        let origin = world.https("api.example.com").script(scripts::swallow()).start();
        let answer = get(&world, API).body(vec![b'x'; 3_000_000]).header("Expect", "").run();
        assert_eq!(answer.text(), "3000000");
        assert_eq!(origin.requests()[0].body.len(), 3_000_000);
    });
}

#[test]
fn relays_raw_bytes_after_an_upgrade() {
    isolated(|| {
        let world = world();
        let origin = world.https("api.example.com").script(scripts::websocket_echo()).start();
        let mut client = client(&world, &origin).tls(&Hello::to("api.example.com"));
        let response = client.exchange(
            "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        assert_eq!(response.status, 101);
        // The example of RFC 6455 1.3.
        assert_eq!(response.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        client.send(b"\x81\x05no HTTP\n");
        assert_eq!(client.read_exact(10), b"\x81\x05no HTTP\n");
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn shakes_hands_however_the_client_hello_is_cut() {
    isolated(|| {
        let world = world();
        let origin = world.https("api.example.com").respond(scripts::ok("hello")).start();
        for lengths in [vec![], vec![5], vec![1, 1, 1], vec![100, 100]] {
            let mut client = client(&world, &origin);
            let pending = client.begin_tls(&Hello::to("api.example.com"));
            let hello = ClientHello::parse(&pending.client_hello).to_records(&lengths);
            client.send_in_pieces(hello, 50, Duration::from_millis(1));
            let mut client = client.complete_tls(pending).unwrap();
            assert_eq!(client.exchange(GET).text(), "hello", "{lengths:?}");
            assert_eq!(client.alpn().as_deref(), Some("http/1.1"));
        }
    });
}

#[test]
fn sees_the_server_names_that_a_bent_client_hello_has() {
    isolated(|| {
        let world = world();
        let origin = world.https("api.example.com").start();
        let mut client = client(&world, &origin);
        let pending = client.begin_tls(&Hello::to("api.example.com"));
        let hello = ClientHello::parse(&pending.client_hello);
        assert!(hello.extension(0).unwrap().ends_with(b"api.example.com"));
        client.send(hello.with_server_names(&[b"evil.example.test"]).to_record());
        // The two sides heard different handshakes.
        assert!(client.complete_tls(pending).is_err());
        let wire = origin.records()[0].wire();
        assert!(wire.windows(17).any(|window| window == b"evil.example.test"));
    });
}

#[test]
fn refuses_to_call_a_malformed_request_a_request() {
    isolated(|| {
        let world = world();
        let origin = world.http("api.example.com").start();
        let mut client = client(&world, &origin);
        client.send("GET / HTTP/1.1\nHost: api.example.com\n\n");
        assert!(client.is_closed());
        assert!(catch_unwind(AssertUnwindSafe(|| origin.requests())).is_err());
    });
}

#[test]
fn fails_the_test_when_a_script_panics() {
    isolated(|| {
        let world = world();
        let script = |connection: &mut Connection| assert!(connection.request().is_none());
        let origin = world.http("api.example.com").script(script).start();
        assert!(read(&world, &origin).is_err());
        assert!(origin.wait_closed());
        assert!(catch_unwind(AssertUnwindSafe(|| drop(origin))).is_err());
    });
}
