//! Is a WebSocket one stream on both legs?

use super::*;

const EXTENSIONS: &str = "permessage-deflate; client_max_window_bits";

#[test]
fn a_websocket_is_one_stream_on_either_leg() {
    isolated(|| {
        let world = world!();
        let agreed = [("sec-websocket-protocol", "chat"), ("alt-svc", "h3=\":443\"")];
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(move |stream| stream.echo_websocket(&agreed))
            .start();
        let secret = format!("Bearer {}", canary(32));
        let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
        let mut gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let client = gateway.http2(NAME).connect();
        let asked = client
            .connect_for("websocket", "/ws?a=b")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-protocol", "chat, other")
            .header("sec-websocket-key", KEY)
            .header("authorization", "mine");
        let mut exchange = client.open(asked);
        let head = exchange.head().expect("an answer");
        assert_eq!(head.status, 200);
        assert_eq!(head.headers["sec-websocket-protocol"], "chat");
        for absent in ["sec-websocket-accept", "alt-svc", "connection", "upgrade"] {
            assert!(!head.headers.contains_key(absent), "{absent}: {head:?}");
        }
        for _ in 0..3 {
            assert!(echoes(&mut exchange));
        }
        exchange.finish();
        assert!(exchange.rest().expect("it ends in order").0.is_empty());

        let request = &origin.requests()[0];
        assert_eq!((request.method.as_str(), request.path.as_str()), ("CONNECT", "/ws?a=b"));
        assert_eq!(request.protocol.as_deref(), Some("websocket"));
        assert_eq!(request.scheme.as_deref(), Some("https"));
        assert_eq!(request.authority.as_deref(), Some(NAME));
        for (name, value) in [
            ("authorization", Some(secret.as_str())),
            ("sec-websocket-version", Some("13")),
            ("sec-websocket-protocol", Some("chat, other")),
            ("sec-websocket-key", None),
            ("upgrade", None),
            ("content-length", None),
        ] {
            assert_eq!(request.header(name), value, "{request:?}");
        }
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 1, "{audit:#?}");
        let line = &audit[0];
        assert_eq!((&line["method"], &line["path"]), (&json!("GET"), &json!("/ws")), "{line}");
        assert_eq!((&line["status"], &line["verdict"]), (&json!(200), &json!("allow")), "{line}");
        assert_eq!(line["http"], json!({"client": "2", "origin": "2"}));
        assert_eq!((&line["bytes_up"], &line["bytes_down"]), (&json!(24), &json!(24)), "{line}");
        assert_eq!(line["injected"], json!(["authorization"]));
        assert_secret_absent(gateway.output(), &secret);
    });
}

#[test]
fn websockets_and_requests_share_one_connection_on_each_leg() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| match stream.request().method.as_str() {
                "CONNECT" => stream.echo_websocket(&[]),
                _ => stream.echo(),
            })
            .start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/before").status, 200);
        let mut exchanges: Vec<_> = (0..5).map(|_| begun(&client)).collect();
        assert_eq!(client.get("/between").status, 200);
        for exchange in &mut exchanges {
            assert!(echoes(exchange));
        }
        drop(exchanges);
        assert_eq!(client.get("/after").status, 200);
        assert_eq!(origin.connections(), 1);
        assert_eq!(gateway.final_audit().len(), 8);
    });
}

#[test]
fn extensions_are_agreed_upon_by_the_two_ends_alone() {
    isolated(|| {
        let world = world!();
        let agreed = [("sec-websocket-extensions", "permessage-deflate")];
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(move |stream| stream.echo_websocket(&agreed))
            .start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let asked = client.connect_for("websocket", "/ws");
        let mut exchange = client.open(asked.header("sec-websocket-extensions", EXTENSIONS));
        let head = exchange.head().expect("an answer");
        assert_eq!(head.headers["sec-websocket-extensions"], "permessage-deflate");
        // Bytes that are no frame at all: nobody reads them on the way.
        let compressed: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        exchange.send(&compressed);
        exchange.finish();
        assert!(exchange.rest().expect("it ends in order").0 == compressed);
        let asked = &origin.requests()[0];
        assert_eq!(asked.header("sec-websocket-extensions"), Some(EXTENSIONS));
    });
}

#[test]
fn a_websocket_in_clear_text_passes_as_a_stream_too() {
    isolated(|| {
        let world = world!();
        let origin = world.h2c(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let gateway = gateway(&world);
        let client = gateway.h2c(NAME).connect();
        assert!(echoes(&mut begun(&client)));
        let request = &origin.requests()[0];
        assert_eq!(request.protocol.as_deref(), Some("websocket"));
        assert_eq!(request.scheme.as_deref(), Some("http"));
    });
}

#[test]
fn a_declined_websocket_is_an_answer_like_any_other() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| match stream.request().path.as_str() {
                "/refused" => stream.answer(403, &[("x-why", "no")], b"not here"),
                "/elsewhere" => stream.respond_only(302, &[("location", "/ws")]),
                "/other" => stream.respond(204, &[]),
                _ => stream.echo_websocket(&[]),
            })
            .start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let refused = client.open_websocket("/refused").answer().expect("an answer");
        assert_eq!((refused.status, refused.text().as_str()), (403, "not here"));
        assert_eq!((refused.header("x-why"), refused.reason()), (Some("no"), None));
        let elsewhere = client.open_websocket("/elsewhere").answer().expect("an answer");
        assert_eq!((elsewhere.status, elsewhere.header("location")), (302, Some("/ws")));
        // Success without a WebSocket: the client would go on as if it had one.
        let other = client.open_websocket("/other").answer().expect("an answer");
        assert_eq!((other.status, other.reason()), (502, Some("origin_protocol")));
        assert!(echoes(&mut begun(&client)));
        assert_eq!(gateway.final_audit().len(), 4);
    });
}
