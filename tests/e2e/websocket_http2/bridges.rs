//! Do the two ends of a WebSocket understand each other when they speak different HTTP?

use std::time::Instant;

use outgate_tests::origin::Script;

use super::*;

/// An origin of HTTP/1.1 that answers 101 with this proof.
fn switching(accept: impl Fn(&str) -> String + Send + Sync + 'static) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        let Some(request) = connection.request() else { return };
        let key = request.header("sec-websocket-key").unwrap_or_default().to_owned();
        connection.upgrade();
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             {}\r\n",
            accept(&key)
        ));
        while !connection.bytes().is_empty() {}
    })
}

#[test]
fn a_stream_becomes_a_connection_for_an_origin_of_http1() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).script(scripts::websocket_echo()).start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut keys = Vec::new();
        for number in 0..2 {
            let asked = client
                .connect_for("websocket", "/ws?a=b")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", KEY);
            let mut exchange = client.open(asked);
            let head = exchange.head().expect("an answer");
            assert_eq!(head.status, 200);
            for absent in ["sec-websocket-accept", "connection", "upgrade"] {
                assert!(!head.headers.contains_key(absent), "{absent}: {head:?}");
            }
            assert!(echoes(&mut exchange));
            let request = &origin.requests()[number];
            assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/ws?a=b"));
            assert_eq!(request.header("host"), Some(NAME));
            assert_eq!(request.header("connection"), Some("Upgrade"));
            assert_eq!(request.header("upgrade"), Some("websocket"));
            assert_eq!(request.header("sec-websocket-version"), Some("13"));
            keys.push(request.header("sec-websocket-key").expect("a key").to_owned());
        }
        assert!(keys[0] != keys[1] && !keys.contains(&KEY.to_owned()), "{keys:?}");
        assert_eq!(origin.connections(), 2);
        let audit = gateway.final_audit();
        assert_eq!(audit[0]["http"], json!({"client": "2", "origin": "1.1"}));
        assert_eq!(audit[0]["status"], 200);
    });
}

/// Nothing that it says of itself is missing: nobody has to wait for more.
#[test]
fn an_origin_of_one_stream_at_a_time_is_asked_by_http1_at_once() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .settings(|settings| {
                settings.max_concurrent_streams(1);
            })
            .alpn(&["h2", "http/1.1"])
            .http1(scripts::websocket_echo())
            .start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let begun_at = Instant::now();
        assert!(echoes(&mut begun(&client)));
        assert!(begun_at.elapsed() < Duration::from_secs(4), "{:?}", begun_at.elapsed());
    });
}

#[test]
fn an_origin_whose_http2_takes_no_websockets_is_asked_by_http1() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .alpn(&["h2", "http/1.1"])
            .script(Stream::echo)
            .http1(scripts::websocket_echo())
            .start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        for _ in 0..2 {
            assert!(echoes(&mut begun(&client)));
        }
        assert_eq!(client.get("/").status, 200);
        assert_eq!(origin.http1_requests().len(), 2);
        // One for requests, which it was asked on first, and one for each WebSocket.
        assert_eq!(origin.connections(), 3);
    });
}

#[test]
fn plain_origins_without_http2_are_asked_by_http1() {
    isolated(|| {
        let world = world!();
        let origin = world.http(NAME).script(scripts::websocket_echo()).start();
        let gateway = gateway(&world);
        let client = gateway.h2c(NAME).connect();
        assert!(echoes(&mut begun(&client)));
        assert!(origin.raw().starts_with(b"PRI "), "a client of HTTP/2 asks by it first");
    });
}

#[test]
fn only_an_origin_that_answers_to_the_key_has_switched() {
    isolated(|| {
        let proof =
            |key: &str| format!("Sec-WebSocket-Accept: {}\r\n", scripts::websocket_accept(key));
        let world = world!();
        let ask = |origin: Box<Script>| {
            let _origin = world.https(NAME).script(origin).start();
            let gateway = gateway(&world);
            let client = gateway.http2(NAME).connect();
            let mut exchange = client.open_websocket("/ws");
            let head = exchange.head().expect("an answer");
            let reason = head.headers.get("outgate-reason").cloned();
            (head.status.as_u16(), reason.map(|reason| reason.to_str().unwrap().to_owned()))
        };
        assert_eq!(ask(switching(proof)), (200, None));
        let broken = || (502, Some("origin_protocol".to_owned()));
        assert_eq!(ask(switching(|_| String::new())), broken());
        assert_eq!(ask(switching(move |_| proof(KEY))), broken());
        assert_eq!(ask(switching(move |key| proof(key).repeat(2))), broken());
        // A client of HTTP/2 would take success for a WebSocket.
        assert_eq!(ask(scripts::respond(scripts::ok("no"))), broken());
        let other =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
        assert_eq!(ask(scripts::respond(other)), broken());
        let declined = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(ask(scripts::respond(declined)), (426, None));
    });
}

#[test]
fn a_client_of_http1_reaches_an_origin_that_has_http2_alone() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let mut gateway = gateway(&world);
        for _ in 0..2 {
            let mut client = http1_client(&gateway);
            let answer = client.exchange(upgrade());
            assert_eq!(answer.status, 101, "{answer:?}");
            let accept = scripts::websocket_accept(KEY);
            assert_eq!(answer.header("sec-websocket-accept"), Some(accept.as_str()));
            assert_eq!(answer.header("upgrade"), Some("websocket"));
            client.send(HI);
            assert_eq!(client.read_exact(HI.len()), HI);
        }
        let request = &origin.requests()[0];
        assert_eq!(request.protocol.as_deref(), Some("websocket"));
        assert_eq!(request.header("sec-websocket-key"), None);
        // Without a key there is nothing that the answer could prove.
        let mut client = http1_client(&gateway);
        let keyless = upgrade().replace(KEY, "short");
        let refused = client.exchange(keyless);
        assert_eq!((refused.status, refused.header("outgate-reason")), (502, Some("origin_tls")));
        let audit = gateway.final_audit();
        assert_eq!(audit[0]["http"], json!({"client": "1.1", "origin": "2"}));
        assert_eq!(audit[0]["status"], 101);
    });
}

#[test]
fn a_client_of_http1_is_not_led_to_http2_without_need() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .alpn(&["h2", "http/1.1"])
            .takes_websockets()
            .script(Stream::echo)
            .http1(scripts::websocket_echo())
            .start();
        let gateway = gateway(&world);
        // A connection that would do is there.
        assert_eq!(gateway.http2(NAME).connect().get("/").status, 200);
        let mut client = http1_client(&gateway);
        assert_eq!(client.exchange(upgrade()).status, 101);
        assert_eq!(origin.http1_requests().len(), 1);
    });
}

/// A stream has no place for it: it would come as the client's first frames.
#[test]
fn an_upgrade_with_a_body_is_not_led_to_http2() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let mut gateway = gateway(&world);
        let framings = [
            "Content-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ];
        for framing in framings {
            let mut client = http1_client(&gateway);
            let asked = upgrade().replace("\r\n\r\n", &format!("\r\n{framing}"));
            let answer = client.exchange(asked);
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (502, Some("origin_tls")), "{framing:?}: {answer:?}");
        }
        let mut control = http1_client(&gateway);
        assert_eq!(control.exchange(upgrade()).status, 101);
        control.send(HI);
        assert_eq!(control.read_exact(HI.len()), HI);
        drop(control);
        assert_eq!(origin.requests().len(), 1);
        assert_eq!(gateway.final_audit().len(), 3);
    });
}
