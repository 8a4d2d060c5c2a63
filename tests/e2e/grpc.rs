//! Does gRPC work: every kind of call, statuses in trailers, messages one by one, credentials added?

#[path = "grpc/refused.rs"]
mod refused;

use std::thread;
use std::time::Instant;

use outgate_tests::http2::{Exchange, Http2Client, Reason};
use outgate_tests::prelude::*;

const NAME: &str = "api.example.com";
const TYPE: &str = "application/grpc";

/// A message as gRPC frames it: not compressed, its length, its bytes.
fn message(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a message is short");
    [&[0], &length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// A service whose calls are named by their paths.
fn serve(stream: &mut Stream) {
    let head = [("content-type", TYPE)];
    match stream.request().path.as_str() {
        "/test.Echo/Unary" => {
            let body = stream.body();
            stream.respond(200, &head);
            stream.send(body);
            stream.finish_with(&[("grpc-status", "0"), ("grpc-message", "fine")]);
        }
        "/test.Echo/ServerStream" => {
            stream.body();
            stream.respond(200, &head);
            for number in 0..3 {
                stream.send(message(&number.to_string()));
                stream.pause(Duration::from_millis(300));
            }
            stream.finish_with(&[("grpc-status", "0")]);
        }
        "/test.Echo/Bidi" => {
            stream.respond(200, &head);
            while let Some(piece) = stream.data() {
                stream.send(piece);
            }
            stream.finish_with(&[("grpc-status", "0")]);
        }
        "/test.Echo/Late" => {
            stream.wait_reset();
        }
        _ => stream.respond_only(
            200,
            &[("content-type", TYPE), ("grpc-status", "12"), ("grpc-message", "no such method")],
        ),
    }
}

fn call(client: &Http2Client, method: &str) -> Exchange {
    let request = client
        .request("POST", &format!("/test.Echo/{method}"))
        .header("content-type", TYPE)
        .header("te", "trailers")
        .header("grpc-timeout", "7S")
        .header("grpc-encoding", "identity");
    client.open(request)
}

fn gateway(world: &World) -> Gateway {
    world.gateway(json!({"network": {"allowlist": [{"domain": NAME}]}}))
}

#[test]
fn a_unary_call_comes_back_with_its_status_in_trailers() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).script(serve).start();
        let secret = format!("Bearer {}", canary(32));
        let entry = json!({"domain": NAME, "transform": {"Authorization": secret}});
        let mut gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "Unary");
        exchange.send(message("hello"));
        exchange.finish();
        let answer = exchange.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(TYPE)));
        assert_eq!(answer.body, message("hello"));
        assert_eq!(answer.trailer("grpc-status"), Some("0"));
        assert_eq!(answer.trailer("grpc-message"), Some("fine"));
        assert_eq!(answer.header("grpc-status"), None);
        let request = &origin.requests()[0];
        for (name, value) in [
            ("te", "trailers"),
            ("grpc-timeout", "7S"),
            ("grpc-encoding", "identity"),
            ("content-type", TYPE),
            ("authorization", secret.as_str()),
        ] {
            assert_eq!(request.header(name), Some(value), "{request:?}");
        }
        let audit = gateway.final_audit();
        assert_eq!((audit.len(), &audit[0]["injected"]), (1, &json!(["authorization"])));
        assert_eq!(audit[0]["http"], json!({"client": "2", "origin": "2"}));
    });
}

#[test]
fn an_answer_of_trailers_only_stays_one() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).script(serve).start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "NoSuchMethod");
        exchange.send(message("hello"));
        exchange.finish();
        let answer = exchange.answer().expect("an answer");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("grpc-status"), Some("12"), "{answer:?}");
        assert_eq!(answer.header("grpc-message"), Some("no such method"));
        assert!(answer.body.is_empty() && answer.trailers.is_none(), "{answer:?}");
        // On the wire: one HEADERS frame that ends the stream.
        let mut raw = gateway.frames(NAME);
        let fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", NAME),
            (":path", "/test.Echo/NoSuchMethod"),
            ("content-type", TYPE),
            ("te", "trailers"),
        ];
        raw.send(frames::headers(1, &fields));
        let head = loop {
            let frame = raw.next_frame().expect("a frame").expect("the connection is open");
            if frame.stream == 1 {
                break frame;
            }
        };
        assert_eq!(head.kind, frames::HEADERS);
        assert_eq!(head.flags & frames::END_STREAM, frames::END_STREAM);
    });
}

#[test]
fn messages_of_a_bidirectional_call_pass_one_by_one() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).script(serve).start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "Bidi");
        // The head comes before the first message is sent.
        assert_eq!(exchange.head().expect("an answer").status, 200);
        for number in 0..5 {
            let text = format!("message {number}");
            let sent = Instant::now();
            exchange.send(message(&text));
            let echo = exchange.data().expect("open").expect("not the end");
            assert_eq!(echo, message(&text));
            assert!(sent.elapsed() < Duration::from_millis(200), "{:?}", sent.elapsed());
            thread::sleep(Duration::from_millis(100));
        }
        exchange.finish();
        let (rest, trailers) = exchange.rest().expect("it ends in order");
        assert!(rest.is_empty());
        assert_eq!(trailers.expect("trailers")["grpc-status"], "0");
    });
}

#[test]
fn messages_of_a_server_are_not_collected() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).script(serve).start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "ServerStream");
        exchange.finish();
        assert_eq!(exchange.head().expect("an answer").status, 200);
        let mut came = Vec::new();
        while let Some(piece) = exchange.data().expect("open") {
            came.push((Instant::now(), piece));
        }
        assert_eq!(came.len(), 3, "one piece for each message");
        let apart = came[2].0.duration_since(came[0].0);
        assert!(apart > Duration::from_millis(400), "they came within {apart:?}");
    });
}

#[test]
fn a_deadline_that_passes_at_the_client_ends_the_call_at_the_server() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).script(serve).start();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "Late");
        exchange.send(message("hello"));
        assert_eq!(origin.wait_requests(1).len(), 1);
        exchange.reset(Reason::CANCEL);
        let reset = || origin.requests()[0].reset;
        assert!(wait_until(Duration::from_secs(5), || reset().is_some()));
        assert_eq!(reset(), Some(Reason::CANCEL));
        assert_eq!(gateway.final_audit().len(), 1);
    });
}

#[test]
fn a_silent_stream_lives_while_its_client_pings() {
    isolated(|| {
        let world = world!();
        let _origin = world.http2(NAME).script(serve).start();
        let gateway = world
            .gateway_builder()
            .environment(&json!({"network": {"allowlist": [{"domain": NAME}]}}))
            .configuration("[limits]\nidle_tunnel = \"1s\"\nidle_keep_alive = \"1s\"\n")
            .start();
        let mut idle = gateway.http2(NAME).connect();
        let mut client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "Bidi");
        assert_eq!(exchange.head().expect("an answer").status, 200);
        for _ in 0..10 {
            client.ping().expect("it is answered");
            thread::sleep(Duration::from_millis(500));
        }
        exchange.send(message("still there"));
        assert_eq!(exchange.data().expect("open").expect("not the end"), message("still there"));
        assert!(idle.ended(Duration::from_secs(1)).is_some(), "the limits are not short");
    });
}

#[test]
fn calls_in_clear_text_reach_a_plain_server() {
    isolated(|| {
        let world = world!();
        let _origin = world.h2c(NAME).script(serve).start();
        let gateway = gateway(&world);
        let client = gateway.h2c(NAME).connect();
        let mut exchange = call(&client, "Unary");
        exchange.send(message("hello"));
        exchange.finish();
        let answer = exchange.answer().expect("an answer");
        assert_eq!(answer.trailer("grpc-status"), Some("0"), "{answer:?}");
    });
}
