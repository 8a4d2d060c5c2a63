//! Does the end of one side reach the other, and as what it was?

use std::time::Instant;

use outgate_tests::http2::Reason;
use outgate_tests::origin::Script;

use super::*;

const LENGTH: usize = 1 << 20;

/// What a client hears after its own last word.
fn answers_late(stream: &mut Stream) {
    stream.respond(200, &[]);
    while stream.data().is_some() {}
    stream.pause(Duration::from_millis(300));
    stream.send(vec![b'x'; LENGTH]);
    stream.finish();
}

fn answers_late_by_http1() -> Box<Script> {
    Box::new(|connection: &mut Connection| {
        let Some(request) = connection.request() else { return };
        let key = request.header("sec-websocket-key").unwrap_or_default().to_owned();
        connection.upgrade();
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            scripts::websocket_accept(&key)
        ));
        while !connection.bytes().is_empty() {}
        connection.pause(Duration::from_millis(300));
        connection.send(vec![b'x'; LENGTH]);
    })
}

#[test]
fn a_half_close_leaves_the_other_direction_open() {
    isolated(|| {
        let world = world!();
        let heard = |gateway: &Gateway| {
            let client = gateway.http2(NAME).connect();
            let mut exchange = begun(&client);
            exchange.send(HI);
            exchange.finish();
            exchange.rest().expect("it ends in order").0.len()
        };
        {
            let _origin = world.http2(NAME).takes_websockets().script(answers_late).start();
            let mut gateway = gateway(&world);
            assert_eq!(heard(&gateway), LENGTH);
            let mut client = http1_client(&gateway);
            assert_eq!(client.exchange(upgrade()).status, 101);
            client.finish_sending();
            assert_eq!(client.read_to_end().map(|bytes| bytes.len()), Ok(LENGTH));
            assert_eq!(gateway.final_audit().len(), 2);
        }
        let _origin = world.https(NAME).script(answers_late_by_http1()).start();
        let mut gateway = gateway(&world);
        assert_eq!(heard(&gateway), LENGTH);
        let line = &gateway.final_audit()[0];
        assert_eq!((&line["bytes_up"], &line["bytes_down"]), (&json!(8), &json!(LENGTH)), "{line}");
    });
}

#[test]
fn a_client_that_breaks_off_is_gone_for_the_origin_at_once() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| {
                stream.respond(200, &[]);
                while let Some(data) = stream.data() {
                    stream.send(data);
                }
                stream.wait_reset();
            })
            .start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        // A reset takes back what was not read yet.
        assert!(echoes(&mut exchange));
        let broken = Instant::now();
        exchange.reset(Reason::CANCEL);
        // It is written at the relay's end: the origin has not closed its side, and never will.
        let audit = gateway.wait_audit(1);
        assert!(broken.elapsed() < Duration::from_secs(3), "{:?}", broken.elapsed());
        assert_eq!(audit[0]["bytes_up"], 8, "{audit:?}");
        let reset = || origin.requests()[0].reset.is_some();
        assert!(wait_until(Duration::from_secs(5), reset), "{:?}", origin.requests());
        assert!(echoes(&mut begun(&client)), "the other streams go on");
    });
}

#[test]
fn an_origin_that_breaks_off_is_gone_for_the_client_at_once() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| {
                stream.respond(200, &[]);
                stream.data();
                stream.reset(Reason::CANCEL);
            })
            .start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        exchange.send(HI);
        let sent = Instant::now();
        // As a socket that is closed: the stream ends, and what is still sent is not wanted.
        drop(exchange.rest());
        assert!(sent.elapsed() < Duration::from_secs(3), "{:?}", sent.elapsed());
        let audit = gateway.final_audit();
        assert_eq!((audit.len(), &audit[0]["bytes_up"]), (1, &json!(8)), "{audit:?}");
    });
}

#[test]
fn the_end_of_a_connection_is_the_end_of_its_streams() {
    isolated(|| {
        let world = world!();
        let _origin =
            world.http2(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchanges: Vec<_> = (0..3).map(|_| begun(&client)).collect();
        exchanges.iter_mut().for_each(|exchange| assert!(echoes(exchange)));
        let before = gateway.audit().len();
        drop(exchanges);
        drop(client);
        assert_eq!((before, gateway.wait_audit(3).len()), (0, 3));
        assert!(gateway.final_audit().iter().all(|line| line["bytes_down"] == 8));
    });
}

#[test]
fn it_is_closed_within_a_second_once_it_is_no_longer_permitted() {
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
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        assert!(echoes(&mut exchange));
        gateway.set_environment(&json!({"network": {"allowlist": [
            {"domain": NAME, "paths": ["/other"]},
        ]}}));
        let changed = Instant::now();
        drop(exchange.rest());
        assert!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());
        let audit = gateway.wait_audit(1);
        assert!(audit[0]["error"].as_str().is_some_and(|why| why.contains("policy")), "{audit:?}");
        assert_eq!(client.get("/other").status, 200);
        let refused = client.open_websocket("/ws").answer().expect("an answer");
        assert_eq!(refused.reason(), Some("path_not_allowed"));
        assert_eq!(origin.requests().len(), 2);
    });
}

#[test]
fn it_is_closed_with_the_secret_that_it_began_with() {
    isolated(|| {
        let world = world!();
        let _origin =
            world.http2(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let (old, new) = (canary(40), canary(40));
        let with = |secret: &str| {
            let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
            json!({"network": {"allowlist": [entry]}})
        };
        let gateway = world.gateway(with(&old));
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        assert!(echoes(&mut exchange));
        gateway.set_environment(&with(&new));
        let changed = Instant::now();
        drop(exchange.rest());
        assert!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());
        assert!(echoes(&mut begun(&client)), "the next one begins with the new one");
        assert_secret_absent(gateway.output(), &old);
        assert_secret_absent(gateway.output(), &new);
    });
}

#[test]
fn what_an_origin_says_as_it_leaves_is_in_no_line() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let length = u8::try_from(8 + secret.len()).expect("a short frame");
        // SETTINGS_ENABLE_CONNECT_PROTOCOL; an answer of 200 on the first stream; GOAWAY.
        let takes = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1];
        let agrees = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        let leaves = [0, 0, length, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        let leaves = [&leaves[..], secret.as_bytes()].concat();
        let script = move |connection: &mut Connection| {
            connection.bytes();
            for frame in [&takes[..], &agrees, &leaves] {
                connection.send(frame);
                connection.pause(Duration::from_millis(500));
            }
        };
        let _origin = world.https(NAME).alpn(&["h2"]).script(script).start();
        let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
        let gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        drop(exchange.rest());
        let error = gateway.wait_audit(1)[0]["error"].to_string();
        assert!(error.contains("the origin broke off: "), "{error}");
        assert_secret_absent(gateway.output(), &secret);
    });
}
