//! Does a WebSocket's stream pass every guard that a request passes?

use super::*;

const PRIVATE: &str = "private.example.test";

fn echoing(world: &World) -> Http2Origin {
    world.http2(NAME).takes_websockets().script(|stream| stream.echo_websocket(&[])).start()
}

#[test]
fn connect_for_anything_else_is_refused() {
    isolated(|| {
        let world = world!();
        let origin = echoing(&world);
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let plain = http::Request::builder().method("CONNECT").uri(format!("{NAME}:443"));
        let others = [
            "connect-udp",
            "connect-ip",
            "webtransport",
            "h2c",
            "websocket2",
            "websocket, h2c",
            "websocket ",
            "",
        ];
        let others = others.map(|protocol| client.connect_for(protocol, "/ws"));
        for asked in [plain].into_iter().chain(others) {
            let answer = client.open(asked).answer().expect("an answer");
            assert_eq!((answer.status, answer.reason()), (405, Some("connect_in_tunnel")));
        }
        assert_eq!(origin.connections(), 0);
        assert!(echoes(&mut begun(&client)));
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 10, "{audit:#?}");
        assert!(audit[..9].iter().all(|line| line["method"] == "CONNECT"), "{audit:#?}");
    });
}

#[test]
fn malformed_heads_are_reset() {
    isolated(|| {
        let world = world!();
        let origin = echoing(&world);
        let gateway = gateway(&world);
        let good = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":authority", NAME),
            (":path", "/ws"),
        ];
        let without = |name: &str| good.into_iter().filter(|field| field.0 != name).collect();
        let mut get: Vec<_> = good.to_vec();
        get[0].1 = "GET";
        let twice = [good[..2].to_vec(), good[1..].to_vec()].concat();
        for fields in [without(":scheme"), without(":path"), get, twice] {
            let mut client = gateway.frames(NAME);
            client.send(frames::headers(1, &fields));
            let answer = client.answer(1);
            assert_eq!((answer.status(), answer.reset), (0, Some(1)), "{fields:?}");
        }
        assert_eq!(origin.connections(), 0);
        assert!(echoes(&mut begun(&gateway.http2(NAME).connect())));
    });
}

#[test]
fn it_is_judged_as_the_get_that_it_stands_for() {
    isolated(|| {
        let world = world!();
        let origin = echoing(&world);
        let entry = json!({"domain": NAME, "paths": ["/ws"], "methods": ["GET"]});
        let mut gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let client = gateway.http2(NAME).connect();
        let at = |uri: &str| client.connect_for("websocket", "/ws").uri(uri);
        let evil = "evil.example.test";
        let long = "x".repeat(33_000);
        for (status, reason, asked) in [
            (403, "path_not_allowed", at(&format!("https://{NAME}/other"))),
            (400, "ambiguous_path", at(&format!("https://{NAME}/x/../ws"))),
            (400, "ambiguous_path", at(&format!("https://{NAME}/%5cws"))),
            (421, "name_mismatch", at(&format!("https://{evil}/ws"))),
            (421, "name_mismatch", at(&format!("https://{NAME}:8443/ws"))),
            (421, "name_mismatch", at(&format!("http://{NAME}/ws"))),
            (400, "malformed_host", at("https://2130706433/ws")),
            (421, "name_mismatch", client.connect_for("websocket", "/ws").header("host", evil)),
            (431, "head_too_large", crowded(client.connect_for("websocket", "/ws"))),
            (431, "", client.connect_for("websocket", "/ws").header("a", &long).header("b", &long)),
        ] {
            let answer = client.open(asked).answer().expect("an answer");
            let said = (answer.status, answer.reason().unwrap_or_default());
            assert_eq!(said, (status, reason), "{answer:?}");
        }
        assert_eq!(origin.connections(), 0);
        assert!(echoes(&mut begun(&client)));

        gateway.set_environment(&json!({"network": {"allowlist": [
            {"domain": NAME, "methods": ["POST"]},
        ]}}));
        let refused = || {
            let mut asked = client.open_websocket("/ws");
            // Until the change counts, it has begun.
            asked.head().expect("an answer").headers.get("outgate-reason").is_some_and(|reason| {
                assert_eq!(reason, "method_not_allowed");
                true
            })
        };
        assert!(wait_until(Duration::from_secs(5), refused));
        assert!(gateway.final_audit().len() >= 12);
    });
}

/// More fields than a head may have.
fn crowded(mut asked: http::request::Builder) -> http::request::Builder {
    for number in 0..101 {
        asked = asked.header(format!("x-{number}"), "");
    }
    asked
}

#[test]
fn names_and_addresses_that_are_refused_stay_so() {
    isolated(|| {
        let world = world!();
        world.name(PRIVATE, "10.1.2.3");
        let private = world.silent("10.1.2.3:443");
        let _origin = echoing(&world);
        let gateway = world
            .gateway_builder()
            .environment(
                &json!({"network": {"allowlist": [{"domain": NAME}, {"domain": PRIVATE}]}}),
            )
            .configuration("[refusals]\nconnect = \"inside\"\n")
            .start();
        for (name, reason) in
            [("evil.example.test", "domain_not_allowed"), (PRIVATE, "address_not_allowed")]
        {
            let client = gateway.http2(name).connect();
            let answer = client.open_websocket("/ws").answer().expect("an answer");
            assert_eq!((answer.status, answer.reason()), (403, Some(reason)), "{name}");
        }
        assert_eq!(private.connections(), 0);
        assert!(echoes(&mut begun(&gateway.http2(NAME).connect())));
    });
}

#[test]
fn nothing_is_injected_in_clear_text() {
    isolated(|| {
        let world = world!();
        let plain = world.h2c(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let _origin = echoing(&world);
        let secret = canary(40);
        let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
        let gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let refused = gateway.h2c(NAME).connect().open_websocket("/ws").answer();
        let refused = refused.expect("an answer");
        assert_eq!((refused.status, refused.reason()), (403, Some("injection_needs_tls")));
        assert_eq!(plain.connections(), 0);
        assert!(echoes(&mut begun(&gateway.http2(NAME).connect())));
    });
}
