//! How long may a WebSocket be silent?

use std::time::Instant;

use super::*;

const SHORT: &str = "[limits]\nidle_tunnel = \"1s\"\nidle_keep_alive = \"1s\"\n\
                     response_head = \"1s\"\nidle_upgraded = ";

fn world_with(idle_upgraded: &str) -> (World, Gateway) {
    let world = world!();
    let gateway = world
        .gateway_builder()
        .environment(&json!({"network": {"allowlist": [{"domain": NAME}]}}))
        .configuration(&format!("{SHORT}\"{idle_upgraded}\"\n"))
        .start();
    (world, gateway)
}

/// A connection without streams is idle after 1 s, one whose streams stand still is cut after 6 to
/// 12 s, and so is an unused upstream connection.
#[test]
fn a_silent_one_outlives_what_is_idle_beside_it() {
    isolated(|| {
        let (world, gateway) = world_with("1h");
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| stream.echo_websocket(&[]))
            .start();
        let mut idle = gateway.http2(NAME).connect();
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        let mut by_http1 = http1_client(&gateway);
        assert_eq!(by_http1.exchange(upgrade()).status, 101);
        std::thread::sleep(Duration::from_secs(14));
        assert!(idle.ended(Duration::from_secs(1)).is_some(), "the limits are not short");
        assert!(echoes(&mut exchange));
        by_http1.send(HI);
        assert_eq!(by_http1.read_exact(HI.len()), HI);
        // Beside the shared one, that of a handshake which offered HTTP/1.1 alone.
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn its_own_limit_ends_it_and_a_frame_postpones_that() {
    isolated(|| {
        let (world, gateway) = world_with("2s");
        let _origin =
            world.http2(NAME).takes_websockets().script(|s| s.echo_websocket(&[])).start();
        let client = gateway.http2(NAME).connect();
        let mut exchange = begun(&client);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_secs(1));
            assert!(echoes(&mut exchange));
        }
        assert!(exchange.moves_within(Duration::from_secs(5)), "a silent one has no end");
        let audit = gateway.wait_audit(1);
        assert!(audit[0]["error"].as_str().is_some_and(|why| why.contains("silent")), "{audit:?}");
        assert_eq!(audit[0]["bytes_up"], 32);
    });
}

/// It keeps the connection: each of them has a limit of its own, seen after 6 to 12 s.
#[test]
fn streams_that_stand_still_beside_one_are_cut_and_it_goes_on() {
    isolated(|| {
        let (world, gateway) = world_with("1h");
        let origin = world
            .http2(NAME)
            .takes_websockets()
            .script(|stream| match stream.request().path.as_str() {
                "/ws" => stream.echo_websocket(&[]),
                "/down" => {
                    stream.respond(200, &[]);
                    stream.send(vec![b'x'; 1 << 20]);
                    stream.wait_reset();
                }
                "/up" => {
                    stream.respond(200, &[]);
                    while stream.data().is_some() {}
                }
                _ => {
                    stream.answer(200, &[], b"early");
                    while stream.data().is_some() {}
                }
            })
            .start();
        // No window is ever opened.
        let client = gateway.http2(NAME).settings(|settings| {
            settings.initial_window_size(1000);
        });
        let client = client.connect();
        let mut websocket = begun(&client);
        let mut still: Vec<_> = ["/down", "/up", "/early"]
            .map(|path| {
                let mut exchange = client.open(client.request("POST", path));
                exchange.send("some");
                assert_eq!(exchange.head().expect("an answer").status, 200, "{path}");
                exchange
            })
            .into();
        assert_eq!(still[2].rest().expect("it was answered").0, b"early");
        let begun_at = Instant::now();
        let cut = || {
            assert!(echoes(&mut websocket), "it is cut with them");
            std::thread::sleep(Duration::from_millis(200));
            origin.requests().iter().filter(|request| request.reset.is_some()).count() == 3
        };
        assert!(wait_until(Duration::from_secs(20), cut), "{:#?}", origin.requests());
        assert!(begun_at.elapsed() > Duration::from_secs(5), "{:?}", begun_at.elapsed());
        for exchange in &mut still[..2] {
            assert!(exchange.rest().is_err(), "the client is not told");
        }
        assert!(echoes(&mut websocket));
        let audit = gateway.wait_audit(3);
        let of = |path: &str| audit.iter().find(|line| line["path"] == path).expect("a line");
        for path in ["/down", "/up"] {
            assert_eq!(of(path)["error"], "nothing of the answer moved for too long");
        }
    });
}
