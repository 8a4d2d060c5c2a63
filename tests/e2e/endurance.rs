//! Does the gateway stay up, small and quick for others while clients do their worst?

use std::thread;
use std::time::Instant;

use outgate_tests::prelude::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

fn environment() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": "api.example.com"}]}})
}

fn session(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to("api.example.com"))
}

/// The longest of a few requests, each by a tunnel of its own.
fn slowest_request(gateway: &Gateway) -> Duration {
    let ask = |_| {
        let started = Instant::now();
        assert_eq!(session(gateway).exchange(GET).status, 200);
        started.elapsed()
    };
    (0..20).map(ask).max().expect("there are some")
}

#[test]
fn clients_that_drip_slow_nobody_down_and_are_gone_in_time() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let gateway = world
            .gateway_builder()
            .configuration(
                "[limits]\nrequest_head = \"3s\"\nclient_handshake = \"3s\"\nidle_keep_alive = \"3s\"\n",
            )
            .argument("--socks=127.0.0.1:0")
            .environment(&environment())
            .start();
        let before = gateway.descriptors();
        let socks = gateway.ready()["socks"][0].as_str().and_then(|address| address.parse().ok());
        let socks = socks.expect("it listens for SOCKS");
        let mut slow = Vec::new();
        for number in 0..200 {
            let mut client = match number % 5 {
                1 => gateway.client().connect_tunnel("api.example.com:443"),
                3 => session(&gateway),
                4 => RawClient::connect(socks, gateway.ca()),
                _ => gateway.client(),
            };
            match number % 5 {
                0 => assert!(client.send("GET http://api.example.com/ HTTP/1.1\r\nHos")),
                // A head that drips in as the second on its connection.
                3 => {
                    assert_eq!(client.exchange(GET).status, 200);
                    assert!(client.send("GET / HTTP/1.1\r\nHos"));
                }
                // A greeting with 255 methods, which come one by one.
                4 => assert!(client.send([5, 255])),
                _ => {}
            }
            slow.push(client);
        }
        let dripping = Instant::now();
        while dripping.elapsed() < Duration::from_secs(1) {
            for (number, client) in slow.iter_mut().enumerate() {
                if matches!(number % 5, 0 | 3 | 4) {
                    client.send("t");
                }
            }
            thread::sleep(Duration::from_millis(100));
        }
        let slowest = slowest_request(&gateway);
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
        // Beside what it had, it may keep connections to the origin.
        let gone = || gateway.descriptors() <= before + 25;
        assert!(wait_until(Duration::from_secs(8), gone), "{} > {before}", gateway.descriptors());
    });
}

#[test]
fn running_out_of_descriptors_ends_nothing_and_burns_nothing() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let mut gateway = world.gateway(environment());
        assert_eq!(session(&gateway).exchange(GET).status, 200);
        let open = u64::try_from(gateway.descriptors()).expect("a small number");
        gateway.limit_descriptors(open + 20);
        assert_eq!(gateway.readiness().0, 200);
        let held: Vec<_> = (0..100).map(|_| gateway.client()).collect();
        assert!(gateway.wait_log("can't be accepted"));
        for _ in 0..3 {
            let (status, said) = gateway.readiness();
            assert_eq!((status, &said["missing"][0]), (503, &json!("accept")), "{said}");
        }
        let (started, used) = (Instant::now(), gateway.processor_time());
        thread::sleep(Duration::from_secs(2));
        let used = gateway.processor_time() - used;
        assert!(used < started.elapsed() / 5, "{used:?} of processor time while nothing happens");
        let complaints =
            gateway.logs().iter().filter(|line| line.contains("can't be accepted")).count();
        assert!(complaints < 10, "{complaints} complaints");
        drop(held);
        let started = Instant::now();
        assert_eq!(session(&gateway).exchange(GET).status, 200);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        assert!(wait_until(Duration::from_secs(5), || gateway.readiness().0 == 200));
        assert!(gateway.is_running());
        assert_eq!(gateway.stop(), 0);
    });
}

#[test]
fn clients_killed_in_the_middle_of_a_download_leave_nothing_behind() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").script(scripts::big(1 << 30)).start();
        let mut gateway = world.gateway(environment());
        // What is opened for the first client of all may stay.
        assert_eq!(gateway.curl("http://evil.example.test/").run().status, 403);
        let before = gateway.descriptors();
        for _ in 0..5 {
            let download =
                gateway.curl("https://api.example.com/").argument("--limit-rate").argument("1M");
            let download = download.start();
            assert!(wait_until(Duration::from_secs(5), || !download.body_so_far().is_empty()));
            download.kill();
        }
        assert!(api.wait_closed(), "the origin is not read on for nobody");
        assert!(wait_until(Duration::from_secs(5), || gateway.descriptors() <= before + 1));
        let used = gateway.processor_time();
        thread::sleep(Duration::from_secs(1));
        let used = gateway.processor_time() - used;
        assert!(used < Duration::from_millis(100), "{used:?} of processor time for nobody");
        assert_eq!(gateway.final_audit().len(), 6);
    });
}

#[test]
fn slow_readers_and_slow_origins_cost_no_memory() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").script(scripts::big(1 << 30)).start();
        let unread = world
            .https("a.ok.example.test")
            .script(|connection| {
                connection.head();
                connection.pause(Duration::from_secs(20));
            })
            .start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": "api.example.com"}, {"domain": "a.ok.example.test"},
        ]}}));
        assert_eq!(gateway.curl("https://api.example.com/").head().run().status, 200);
        let before = gateway.resident_kib();
        let readers: Vec<_> = (0..30)
            .map(|_| {
                let mut client = session(&gateway);
                client.send(GET);
                client.read_exact(1);
                client
            })
            .collect();
        let upload = vec![0; 16 << 20];
        let curl = |_| gateway.curl("https://a.ok.example.test/").body(upload.clone()).start();
        let uploads: Vec<_> = (0..3).map(curl).collect();
        assert!(wait_until(Duration::from_secs(5), || unread.connections() == 3));
        thread::sleep(Duration::from_secs(2));
        let grown = gateway.resident_kib().saturating_sub(before);
        assert!(grown < 33 * 512, "{grown} KiB for 33 exchanges that stand still");
        uploads.into_iter().for_each(outgate_tests::client::RunningCurl::kill);
        drop(readers);
    });
}
