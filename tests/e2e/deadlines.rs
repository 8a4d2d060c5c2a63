//! Does a client that is slow, silent or too many meet every limit, and no other client with it?

use std::thread;
use std::time::Instant;

use outgate_tests::prelude::*;
use rustls::AlertDescription;

const API: &str = "api.example.com:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
/// A limit of half a second has been met within this, also on a busy machine.
const IN_TIME: Duration = Duration::from_secs(4);

fn limited(world: &World, limits: &str) -> Gateway {
    world
        .gateway_builder()
        .configuration(&format!("[limits]\n{limits}\n"))
        .environment(&json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}))
        .start()
}

fn session(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel(API).tls(&Hello::to("api.example.com"))
}

/// How long `act` took.
fn time(act: impl FnOnce()) -> Duration {
    let started = Instant::now();
    act();
    started.elapsed()
}

/// Sends a byte every 50 ms, for twice as long as any limit here: still within the second for which
/// the gateway reads on after a refusal, so that no RST takes it away.
fn drip(client: &mut RawClient, bytes: &[u8]) {
    let started = Instant::now();
    for byte in bytes.iter().cycle() {
        if started.elapsed() > Duration::from_secs(1) || !client.send([*byte]) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_tunnel_that_says_nothing_or_dawdles_in_its_handshake_is_closed() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let mut gateway = limited(&world, "client_handshake = \"500ms\"");
        let silent = |_: &mut RawClient| {};
        let half_a_hello = |client: &mut RawClient| {
            let hello = client.begin_tls(&Hello::to("api.example.com")).client_hello;
            client.send(&hello[..hello.len() / 2]);
        };
        let dripping_hello = |client: &mut RawClient| {
            let hello = client.begin_tls(&Hello::to("api.example.com")).client_hello;
            drip(client, &hello);
        };
        let whole_hello = |client: &mut RawClient| {
            let hello = client.begin_tls(&Hello::to("api.example.com")).client_hello;
            client.send(hello);
            client.read_some().expect("the gateway's part of the handshake");
        };
        let half_a_method = |client: &mut RawClient| {
            client.send("GE");
        };
        let ways: [fn(&mut RawClient); 5] =
            [silent, half_a_hello, dripping_hello, whole_hello, half_a_method];
        for way in ways {
            let mut client = gateway.client().connect_tunnel(API);
            let took = time(|| {
                way(&mut client);
                // What is left of the handshake may come first.
                while client.read_some().is_ok_and(|bytes| !bytes.is_empty()) {}
            });
            assert!(took < IN_TIME, "{took:?}");
        }
        assert_eq!(api.connections(), 0);
        let mut control = session(&gateway);
        thread::sleep(Duration::from_millis(700));
        assert_eq!(control.exchange(GET).status, 200, "the limit ends with the handshake");
        drop(control);
        let audit = gateway.final_audit();
        let told = |kind| audit.iter().filter(|line| line["kind"] == kind).count();
        assert_eq!((told("tunnel"), told("request")), (5, 1), "{audit:#?}");
    });
}

#[test]
fn a_request_head_that_drips_in_is_answered_408_wherever_it_is() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let mut gateway = limited(&world, "request_head = \"500ms\"");
        let mut after_a_request = session(&gateway);
        assert_eq!(after_a_request.exchange(GET).status, 200);
        let in_the_clear = gateway.client().connect_tunnel("api.example.com:80");
        for mut client in [gateway.client(), session(&gateway), in_the_clear, after_a_request] {
            let started = Instant::now();
            client.send("GET / HTTP/1.1\r\nX: ");
            drip(&mut client, b"x");
            let answer = client.try_read_response("GET").expect("a refusal that can be read");
            assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
            let reason = answer.header("outgate-reason");
            assert_eq!((answer.status, reason), (408, Some("request_timeout")));
        }
        let audit = gateway.final_audit();
        let timeouts: Vec<_> =
            audit.iter().filter(|line| line["reason"] == "request_timeout").collect();
        assert_eq!((timeouts.len(), audit.len()), (4, 5), "{audit:#?}");
        let in_tunnels = timeouts.iter().filter(|line| line["domain"] == "api.example.com").count();
        assert_eq!(in_tunnels, 3, "a line of a tunnel says where it leads: {audit:#?}");
    });
}

#[test]
fn a_request_head_has_no_more_bytes_and_headers_than_it_may() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let gateway = limited(&world, "request_head_bytes = 8192\nheaders = 10");
        let many = |count: usize| "X: 1\r\n".repeat(count);
        let long = |length: usize| format!("X: {}\r\n", "x".repeat(length));
        for (fields, status) in [
            (many(9), 200),
            (many(10), 431),
            (long(7000), 200),
            (long(8200), 431),
            (long(90_000), 431),
        ] {
            let mut client = session(&gateway);
            client.send(format!("GET / HTTP/1.1\r\nHost: api.example.com\r\n{fields}\r\n"));
            let answer = client.try_read_response("GET").expect("an answer that can be read");
            assert_eq!(answer.status, status, "{} bytes", fields.len());
        }
    });
}

#[test]
fn a_silent_connection_is_closed_without_a_word_and_without_a_line() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let limits =
            "idle_keep_alive = \"500ms\"\nidle_tunnel = \"1500ms\"\nresponse_head = \"1s\"";
        let mut gateway = limited(&world, limits);
        let mut new = gateway.client();
        assert!(time(|| assert!(new.is_closed())) < IN_TIME);
        let mut used = gateway.client();
        let evil = "GET http://evil.example.test/ HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
        assert_eq!(used.exchange(evil).status, 403);
        assert!(time(|| assert!(used.is_closed())) < IN_TIME);
        let mut tunnel = session(&gateway);
        assert_eq!(tunnel.exchange(GET).status, 200);
        thread::sleep(Duration::from_millis(1000));
        assert_eq!(tunnel.exchange(GET).status, 200, "a tunnel may be silent for longer");
        assert!(time(|| assert!(tunnel.is_closed())) < IN_TIME);
        assert_eq!(gateway.final_audit().len(), 3);
    });
}

#[test]
fn a_silent_websocket_is_closed_and_one_that_speaks_is_not() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").script(scripts::websocket_echo()).start();
        let mut gateway = limited(&world, "idle_upgraded = \"1s\"\nidle_tunnel = \"300ms\"");
        let mut client = session(&gateway);
        let upgraded = client.exchange(
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        assert_eq!(upgraded.status, 101);
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(500));
            client.send("ping");
            assert_eq!(client.read_exact(4), b"ping");
        }
        assert!(time(|| assert!(client.is_closed())) < IN_TIME);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 1, "{audit:#?}");
        assert_eq!((&audit[0]["status"], &audit[0]["bytes_up"]), (&json!(101), &json!(20)));
        assert_eq!(audit[0]["bytes_down"], 20);
    });
}

#[test]
fn one_connection_more_than_an_environment_may_have_is_refused_until_one_is_closed() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let gateway = limited(&world, "connections = 2");
        let (first, second) = (session(&gateway), session(&gateway));
        let refused = gateway.client().try_connect_tunnel(API).err().expect("a refusal");
        assert_eq!((refused.status, refused.reason.as_str()), (503, "too_many_connections"));
        assert_eq!(refused.header("outgate-reason"), Some("too_many_connections"));
        drop(first);
        let works = || gateway.client().try_connect_tunnel(API).is_ok();
        assert!(wait_until(IN_TIME, works), "a place that is free again is used");
        drop(second);
    });
}

#[test]
fn connections_that_say_nothing_count_too_and_other_environments_feel_nothing_of_them() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let folder = network::folder().display().to_string();
        let mut configuration = "[limits]\nconnections = 5\n".to_owned();
        for id in ["one", "two"] {
            let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
            std::fs::write(format!("{folder}/{id}.json"), environment.to_string())
                .expect("the folder is writable");
            configuration += &format!(
                "[[environment]]\nfile = \"{folder}/{id}.json\"\n[[listener]]\n\
                 kind = \"explicit\"\nbind = \"127.0.0.1:0\"\nenvironment = \"{id}\"\n"
            );
        }
        let builder = world.gateway_builder().listeners_from_configuration();
        let gateway = builder.configuration(&configuration).start();
        let before = gateway.descriptors();
        let taken = || gateway.metric("outgate_connections{environment=\"one\"}") == 5.0;
        let _silent: Vec<_> = (0..5).map(|_| gateway.client()).collect();
        // Two that come at once may be seen in either order.
        assert!(wait_until(IN_TIME, taken));
        let refused: Vec<_> = (0..35).map(|_| gateway.client()).collect();
        let answers = refused.into_iter().map(|mut client| client.read_response());
        assert!(answers.into_iter().all(|refused| refused.status == 503));
        assert!(wait_until(IN_TIME, || gateway.descriptors() <= before + 5));
        let two = gateway.ready()["explicit"][1].as_str().and_then(|address| address.parse().ok());
        let client = RawClient::connect(two.expect("a second listener"), gateway.ca());
        let mut client = client.connect_tunnel(API).tls(&Hello::to("api.example.com"));
        assert_eq!(client.exchange(GET).status, 200);
        let audit = gateway.wait_audit(35);
        assert_eq!(
            (&audit[0]["environment_id"], &audit[0]["status"]),
            (&json!("one"), &json!(503))
        );
    });
}

#[test]
fn refused_names_are_told_why_inside_tls_only_so_often_a_second() {
    isolated(|| {
        let world = world!();
        let evil = world.https("evil.example.test").start();
        let gateway = world
            .gateway_builder()
            .configuration(
                "[refusals]\nconnect = \"inside\"\n[limits]\nrefused_handshakes_per_second = 2\n",
            )
            .environment(&json!({"network": {"allowlist": []}}))
            .start();
        let outcomes: Vec<_> = (0..12)
            .map(|number| {
                let name = format!("n{number}.example.test");
                let tunnel = gateway.client().connect_tunnel(&format!("{name}:443"));
                tunnel.try_tls(&Hello::to(&name)).map(|mut client| {
                    client.exchange(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n")).status
                })
            })
            .collect();
        assert!(outcomes.iter().filter(|outcome| **outcome == Ok(403)).count() >= 2);
        let alert = Err(TlsFault::Alert(AlertDescription::AccessDenied));
        assert!(outcomes.contains(&alert), "{outcomes:?}");
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(403) || *outcome == alert));
        assert_eq!((gateway.wait_audit(12).len(), evil.connections()), (12, 0));
    });
}

#[test]
fn an_http2_tunnel_that_says_nothing_is_closed_too() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let mut gateway = limited(&world, "idle_tunnel = \"700ms\"\nresponse_head = \"700ms\"");
        let hello = Hello::to("api.example.com").alpn(&["h2"]);
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        // A SETTINGS frame without a setting.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        for begin in
            [&b""[..], &preface.as_bytes()[..10], &[preface.as_bytes(), &settings].concat()]
        {
            let mut client = gateway.client().connect_tunnel(API).tls(&hello);
            assert_eq!(client.alpn().as_deref(), Some("h2"));
            client.send(begin);
            let took = time(|| while client.read_some().is_ok_and(|bytes| !bytes.is_empty()) {});
            // Asked to end first, cut 5 s later.
            assert!(took < IN_TIME + Duration::from_secs(5), "{took:?} after {begin:?}");
        }
        assert_eq!(api.connections(), 0);
        let audit = gateway.final_audit();
        assert!(audit.iter().all(|line| line["kind"] == "tunnel"), "{audit:#?}");
        assert_eq!(audit.len(), 3, "{audit:#?}");
    });
}
