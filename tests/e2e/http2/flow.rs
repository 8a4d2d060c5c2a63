//! Is what one side can't take yet left with the other, in bounded memory?

use std::thread;

use outgate_tests::prelude::*;

use crate::{NAME, OTHER, Step, open_environment, open_gateway};

/// Far above the buffers of one exchange, far below what is sent.
const ROOM_KIB: u64 = 24 << 10;

const BIG: usize = 96 << 20;

fn send_big(stream: &mut Stream) {
    stream.respond(200, &[]);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..BIG >> 20 {
        if !stream.send(&piece) {
            return;
        }
    }
    stream.finish();
}

#[test]
fn a_download_waits_for_a_slow_reader_and_comes_whole() {
    isolated(|| {
        let world = world!();
        let _newer = world.http2(NAME).script(send_big).start();
        let _older = world.https(OTHER).script(scripts::big(BIG)).start();
        let mut gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let client = gateway.http2(name).connect();
            let before = gateway.resident_kib();
            let mut exchange = client.open_get("/");
            assert_eq!(exchange.head().expect("an answer").status, 200);
            thread::sleep(Duration::from_secs(1));
            let grown = gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{name}: {grown} KiB for a client that doesn't read");
            let mut length = 0;
            while let Some(data) = exchange.data().expect("it comes whole") {
                length += data.len();
            }
            assert_eq!(length, BIG, "{name}");
            let grown = gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{name}: {grown} KiB after it");
        }
        assert!(gateway.final_audit().iter().all(|line| line["bytes_down"] == BIG));
    });
}

#[test]
fn an_upload_waits_for_a_slow_origin_and_goes_whole() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let (go, go_too) = (step.clone(), step.clone());
        let newer = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                assert!(go.wait(1));
                let length = stream.swallow().to_string();
                stream.answer(200, &[], length.as_bytes());
            })
            .start();
        let older = world
            .https(OTHER)
            .script(move |connection: &mut Connection| {
                let head = connection.head().expect("a head");
                assert!(go_too.wait(2));
                let length = connection.body(head).expect("a body").body.len();
                connection.send(scripts::ok(length.to_string()));
            })
            .start();
        let gateway = open_gateway(&world);
        let piece = vec![b'x'; 48 << 20];
        for (number, name) in [NAME, OTHER].into_iter().enumerate() {
            let client = gateway.http2(name).connect();
            let before = gateway.resident_kib();
            let mut exchange = client.open(client.request("POST", "/"));
            let taken = exchange.send_while_taken(&piece, Duration::from_secs(1));
            assert!(taken < 16 << 20, "{name}: it took {taken} bytes for an origin that took none");
            let grown = gateway.resident_kib().saturating_sub(before);
            assert!(grown < ROOM_KIB, "{name}: {grown} KiB");
            step.reach(number + 1);
            exchange.send(&piece[taken..]);
            exchange.finish();
            let answer = exchange.answer().expect("an answer");
            // One piece may have gone out after the client had given it up.
            let length: usize = answer.text().parse().expect("a number");
            assert!(length >= piece.len() && length <= piece.len() + (16 << 10), "{length}");
        }
        assert_eq!((newer.requests().len(), older.connections()), (1, 1));
    });
}

#[test]
fn a_client_that_opens_no_window_holds_up_nobody_else() {
    isolated(|| {
        let world = world!();
        let _newer = world
            .http2(NAME)
            .script(|stream: &mut Stream| match stream.request().path.as_str() {
                "/big" => send_big(stream),
                _ => stream.echo(),
            })
            .start();
        let environment = |id: &str| {
            let mut environment = open_environment();
            environment["environment_id"] = json!(id);
            environment
        };
        let gateway = world
            .gateway_builder()
            .environment(&environment("one"))
            .environment(&environment("two"))
            .configuration(
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:7001\"\n\
                 environment = \"one\"\n[[listener]]\nkind = \"explicit\"\n\
                 bind = \"127.0.0.1:7002\"\nenvironment = \"two\"\n",
            )
            .listeners_from_configuration()
            .start();
        let client = gateway.http2(NAME).settings(|settings| {
            settings.initial_window_size(64 << 10);
        });
        let client = client.connect();
        assert_eq!(client.get("/").status, 200);
        let before = gateway.resident_kib();
        let starved: Vec<_> = (0..90)
            .map(|_| {
                let mut exchange = client.open_get("/big");
                assert_eq!(exchange.head().expect("an answer").status, 200);
                exchange
            })
            .collect();
        thread::sleep(Duration::from_secs(1));
        // 64 KiB in the client's window, and two buffers, for each.
        let grown = gateway.resident_kib().saturating_sub(before);
        assert!(grown < 90 * 768, "{grown} KiB for 90 streams that don't move");
        let started = std::time::Instant::now();
        assert_eq!(client.get("/").status, 200, "beside them");
        assert_eq!(gateway.http2(NAME).connect().get("/").status, 200, "on another connection");
        let other = Curl::new("https://api.example.com/")
            .proxy("127.0.0.1:7002".parse().expect("an address"))
            .ca(gateway.ca())
            .run();
        assert_eq!(other.status, 200, "in another environment: {other:?}");
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        drop(starved);
        let lines = gateway.wait_audit(94);
        assert_eq!(lines.len(), 94);
    });
}

#[test]
fn a_stalled_upload_takes_no_window_from_the_others() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let go = step.clone();
        let origin = world
            .http2(NAME)
            .settings(|settings| {
                settings.initial_connection_window_size(16 << 20);
            })
            .script(move |stream: &mut Stream| {
                if stream.request().path == "/stalled" {
                    assert!(go.wait(1));
                }
                stream.echo();
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/").status, 200);
        let piece = vec![b'x'; 4 << 20];
        let mut stalled: Vec<_> =
            (0..20).map(|_| client.open(client.request("POST", "/stalled"))).collect();
        for exchange in &mut stalled {
            exchange.send_while_taken(&piece[..1 << 20], Duration::from_millis(20));
        }
        let answer = gateway.http2(NAME).connect();
        assert_eq!(answer.ask(answer.request("POST", "/"), "beside").json()["body"], "beside");
        assert_eq!(client.get("/").status, 200);
        step.reach(1);
        for exchange in &mut stalled {
            exchange.finish();
        }
        for exchange in stalled {
            assert_eq!(exchange.answer().expect("an answer").status, 200);
        }
        assert!(origin.requests().iter().all(|request| request.reset.is_none()));
    });
}

#[test]
fn small_windows_of_either_side_are_kept() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .settings(|settings| {
                settings.initial_window_size(1000).initial_connection_window_size(70_000);
            })
            .start();
        let gateway = open_gateway(&world);
        let small = gateway.http2(NAME).settings(|settings| {
            settings.initial_window_size(1000).initial_connection_window_size(70_000);
        });
        let client = small.connect();
        let body = "0123456789".repeat(30_000);
        let answer = client.ask(client.request("POST", "/"), &body);
        assert_eq!(answer.json()["body"], body.as_str());
    });
}
