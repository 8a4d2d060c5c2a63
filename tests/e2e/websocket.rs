//! Is a WebSocket relayed only after both sides agreed, and under every guard of HTTP?

use outgate_tests::origin::Script;
use outgate_tests::prelude::*;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

const UPGRADE: &str = "GET @/ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A masked text frame that says `hi` (RFC 6455 5.2).
const HI: [u8; 8] = [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];

fn answered_by(world: &World, script: impl Fn() -> Box<Script>) -> BothWays {
    let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
    BothWays::start(world, environment, script)
}

/// A client that both sides let switch.
fn switched(both: &BothWays, way: Way) -> RawClient {
    let mut client = both.sent(way, UPGRADE);
    let answer = client.read_response();
    assert_eq!(answer.status, 101, "{way}: {answer:?}");
    let accept = answer.header("sec-websocket-accept");
    assert_eq!(accept, Some(scripts::websocket_accept(KEY).as_str()), "{way}");
    client
}

/// An origin that switches, then does `then`.
fn switching(then: impl Fn(&mut Connection) + Send + Sync + 'static) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        if connection.request().is_some() {
            connection.upgrade();
            connection.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Accept: {}\r\n\r\n",
                scripts::websocket_accept(KEY)
            ));
            then(connection);
        }
    })
}

#[test]
fn relays_frames_once_both_agreed() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::websocket_echo);
        for way in Way::ALL {
            let mut client = switched(&both, way);
            for _ in 0..3 {
                client.send(HI);
                assert_eq!(client.read_exact(HI.len()), HI, "{way}");
            }
            client.finish_sending();
            assert!(client.is_closed(), "{way}");
        }
        let audit = both.audited(2);
        for line in audit {
            assert_eq!(line["status"], 101, "{line}");
            assert_eq!(
                (&line["bytes_up"], &line["bytes_down"]),
                (&json!(24), &json!(24)),
                "{line}"
            );
        }
    });
}

#[test]
fn keeps_early_frames_back_until_the_origin_agreed() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            Box::new(|connection: &mut Connection| {
                connection.head();
                connection.upgrade();
                connection.pause(Duration::from_millis(500));
                connection.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                     Upgrade: WebSocket\r\n\r\n",
                );
                let bytes = connection.bytes();
                connection.send(bytes);
            })
        });
        for way in Way::ALL {
            let mut client = both.sent(way, [UPGRADE.as_bytes(), &HI].concat());
            let origin = both.origin(way);
            assert!(wait_until(Duration::from_secs(5), || origin.raw().ends_with(b"\r\n\r\n")));
            std::thread::sleep(Duration::from_millis(250));
            assert!(origin.raw().ends_with(b"\r\n\r\n"), "{way}: a frame went before the answer");
            assert_eq!(client.read_response().status, 101, "{way}");
            assert_eq!(client.read_exact(HI.len()), HI, "{way}");
        }
    });
}

/// CVE-2026-2833: bytes behind an upgrade that was declined are HTTP.
#[test]
fn judges_what_follows_an_upgrade_that_was_declined() {
    isolated(|| {
        let both = answered_by(&world!(), || scripts::respond(scripts::ok("no")));
        let inner = "GET http://evil.example.test/x HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
        for (way, status) in [(Way::Forward, 403), (Way::Tunnel, 421)] {
            let mut client = both.sent(way, [UPGRADE, inner].concat());
            assert_eq!(client.read_response().text(), "no", "{way}");
            assert_eq!(client.read_response().status, status, "{way}");
            let requests = both.origin(way).requests();
            assert_eq!(requests.len(), 1, "{way}: {requests:?}");
        }
        both.audited(4);
    });
}

#[test]
fn answers_502_for_a_switch_to_something_else() {
    isolated(|| {
        let world = world!();
        for fields in [
            "",
            "Connection: Upgrade\r\n",
            "Upgrade: websocket\r\n",
            "Connection: Upgrade\r\nUpgrade: h2c\r\n",
            "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
            "Connection: close\r\nUpgrade: websocket\r\n",
        ] {
            let both = answered_by(&world, move || {
                scripts::respond(format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\nopaque"))
            });
            for way in Way::ALL {
                let mut client = both.sent(way, UPGRADE);
                let answer = client.read_response();
                let said = (answer.status, answer.header("outgate-reason"));
                assert_eq!(said, (502, Some("origin_protocol")), "{way} {fields:?}");
                client.send(HI);
                assert_ne!(client.read_response().status, 101, "{way}: a frame is no request");
                assert!(both.origin(way).wait_closed(), "{way} {fields:?}");
                assert!(!both.origin(way).raw().ends_with(&HI), "{way} {fields:?}");
            }
        }
    });
}

#[test]
fn passes_other_answers_to_an_upgrade_as_they_are() {
    isolated(|| {
        let answer = "HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 8\r\n\
                      Content-Length: 3\r\n\r\nold";
        let both = answered_by(&world!(), || scripts::respond(answer));
        for way in Way::ALL {
            let mut client = both.client(way);
            for _ in 0..2 {
                client.send(way.write(UPGRADE));
                let answer = client.read_response();
                assert_eq!((answer.status, answer.text().as_str()), (426, "old"), "{way}");
                assert_eq!(answer.header("sec-websocket-version"), Some("8"), "{way}");
            }
        }
        both.audited(4);
    });
}

#[test]
fn injects_into_wss_and_refuses_ws() {
    isolated(|| {
        let secret = canary(40);
        let entry = json!({"domain": "api.example.com", "transform": {"Authorization": secret}});
        let environment = json!({"network": {"allowlist": [entry]}});
        let both = BothWays::start(&world!(), environment, scripts::websocket_echo);
        let refused = both.ask(Way::Forward, UPGRADE);
        let said = (refused.status, refused.header("outgate-reason"));
        assert_eq!(said, (403, Some("injection_needs_tls")));
        assert_eq!(both.origin(Way::Forward).connections(), 0);

        let own = UPGRADE.replace("Upgrade: web", "Authorization: mine\r\nUpgrade: web");
        let mut client = both.sent(Way::Tunnel, own);
        assert_eq!(client.read_response().status, 101);
        client.send(HI);
        assert_eq!(client.read_exact(HI.len()), HI);
        let request = &both.origin(Way::Tunnel).requests()[0];
        assert_eq!(request.header("authorization"), Some(secret.as_str()));
        assert_secret_absent(both.gateway.output(), &secret);
    });
}

#[test]
fn judges_an_upgrade_as_any_request() {
    isolated(|| {
        let world = world!();
        world.name("private.example.test", "10.1.2.3");
        let private = world.silent("10.1.2.3:80");
        let environment = json!({"network": {"allowlist": [
            {"domain": "api.example.com", "paths": ["/ws"], "methods": ["GET"]},
            {"domain": "private.example.test"},
        ]}});
        let both = BothWays::start(&world, environment, scripts::websocket_echo);
        for (status, reason, head) in [
            (403, "path_not_allowed", UPGRADE.replace("@/ws", "@/other")),
            (400, "ambiguous_path", UPGRADE.replace("@/ws", "@/x/../ws")),
            (403, "method_not_allowed", UPGRADE.replace("GET", "POST")),
            (421, "name_mismatch", UPGRADE.replace("Host: api", "Host: evil")),
            (400, "malformed_request", UPGRADE.replace("Host:", "Host: api.example.com\r\nHost:")),
            (400, "malformed_request", UPGRADE.replace("Host: api.example.com\r\n", "")),
            (400, "malformed_request", UPGRADE.replace("Upgrade:", "Upgrade :")),
        ] {
            both.refuses(head, status, reason);
        }
        for (host, reason) in [
            ("evil.example.test", "domain_not_allowed"),
            ("private.example.test", "address_not_allowed"),
        ] {
            let head = UPGRADE.replace("@/", &format!("http://{host}/"));
            let answer = both.ask(Way::Forward, head.replace("api.example.com", host));
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (403, Some(reason)));
        }
        assert_eq!(private.connections(), 0);
        for way in Way::ALL {
            drop(switched(&both, way));
        }
        both.audited(2 * 7 + 2 + 2);
    });
}

#[test]
fn passes_a_half_close_on_while_the_other_side_still_speaks() {
    isolated(|| {
        const LENGTH: usize = 1 << 20;
        let both = answered_by(&world!(), || {
            switching(|connection| {
                while !connection.bytes().is_empty() {}
                connection.pause(Duration::from_millis(300));
                connection.send(vec![b'x'; LENGTH]);
            })
        });
        for way in Way::ALL {
            let mut client = switched(&both, way);
            client.send(HI);
            client.finish_sending();
            assert_eq!(client.read_to_end().map(|bytes| bytes.len()), Ok(LENGTH), "{way}");
        }
        both.audited(2);
    });
}

#[test]
fn goes_on_sending_after_the_origin_has_said_its_last_word() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            switching(|connection| {
                connection.finish();
                while !connection.bytes().is_empty() {}
            })
        });
        for way in Way::ALL {
            let mut client = switched(&both, way);
            assert!(client.is_closed(), "{way}: the end of the origin's side was not passed on");
            std::thread::sleep(Duration::from_millis(100));
            client.send([b'y'; 1000]);
            client.finish_sending();
            let origin = both.origin(way);
            assert!(origin.wait_closed(), "{way}");
            assert!(origin.raw().ends_with(&[b'y'; 1000]), "{way}: what was sent after is lost");
        }
        both.audited(2);
    });
}

#[test]
fn a_drain_ends_it_in_time_with_its_one_audit_line() {
    isolated(|| {
        let world = world!();
        let _origin = world.https("api.example.com").script(scripts::websocket_echo()).start();
        let mut gateway = world
            .gateway_builder()
            .environment(&json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}))
            .configuration("[limits]\ndrain = \"1s\"\n")
            .start();
        let tunnel = gateway.client().connect_tunnel("api.example.com:443");
        let mut client = tunnel.tls(&Hello::to("api.example.com"));
        client.send(UPGRADE.replace("@/", "/"));
        assert_eq!(client.read_response().status, 101);
        client.send(HI);
        assert_eq!(client.read_exact(HI.len()), HI);
        let begun = std::time::Instant::now();
        let audit = gateway.final_audit();
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        assert_eq!(audit.len(), 1, "{audit:#?}");
        assert_eq!((&audit[0]["status"], &audit[0]["bytes_up"]), (&json!(101), &json!(8)));
        assert!(client.is_closed());
    });
}
