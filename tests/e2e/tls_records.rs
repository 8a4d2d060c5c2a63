//! Does a client that floods with TLS records cost more than its own connection?

use outgate_tests::prelude::*;

const API: &str = "api.example.com";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
const FLOOD: usize = 100_000;
/// The program of tests is not optimised.
const MOST_TIME: Duration = Duration::from_secs(4);

struct Scene {
    gateway: Gateway,
    origin: Origin,
}

impl Scene {
    fn new() -> Self {
        let world = world!();
        let origin = world.https(API).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
        Self { gateway, origin }
    }

    fn session(&self, old: bool) -> RawClient {
        let hello = Hello::to(API);
        let hello = if old { hello.tls12() } else { hello };
        let tunnel = self.gateway.client().connect_tunnel("api.example.com:443");
        tunnel.tls(&hello).write_timeout(Duration::from_secs(5))
    }

    /// What `flood` took of processor time.
    fn cost(&self, flood: impl FnOnce()) -> Duration {
        let before = self.gateway.processor_time();
        flood();
        let time = self.gateway.processor_time() - before;
        assert_eq!(self.session(false).exchange(GET).status, 200, "others go on");
        time
    }
}

#[test]
fn records_that_break_it_end_the_connection() {
    isolated(|| {
        let scene = Scene::new();
        assert_eq!(scene.session(true).exchange(GET).status, 200);
        let records: [(&str, &[u8]); 8] = [
            ("plain HTTP", GET.as_bytes()),
            ("HelloRequest in clear", b"\x16\x03\x03\x00\x04\0\0\0\0"),
            ("change_cipher_spec", b"\x14\x03\x03\x00\x01\x01"),
            ("a warning in clear", b"\x15\x03\x03\x00\x02\x01\x5a"),
            ("a record without contents", b"\x17\x03\x03\x00\x00"),
            ("a forged record", &[&b"\x17\x03\x03\x00\x20"[..], &[7; 32]].concat()),
            ("a record too long", b"\x17\x03\x03\xff\xff"),
            ("no record", &[0; 64]),
        ];
        for (shown, record) in records {
            for old in [false, true] {
                let mut client = scene.session(old);
                let time = scene.cost(|| {
                    let many = record.repeat(100);
                    for _ in 0..FLOOD / 100 {
                        if !client.send_below_tls(&many) {
                            break;
                        }
                    }
                    assert!(client.read_to_end().is_err() || client.is_closed(), "{shown}");
                });
                assert!(time < MOST_TIME, "{shown}: {time:?} of processor time");
            }
        }
        // Nothing of it was a request.
        assert!(scene.origin.requests().iter().all(|request| request.target == "/"));
    });
}

#[test]
fn new_keys_without_end_take_nobody_elses_time() {
    isolated(|| {
        let scene = Scene::new();
        let mut client = scene.session(false);
        assert_eq!(client.exchange(GET).status, 200);
        let memory = scene.gateway.resident_kib();
        let time = scene.cost(|| {
            for _ in 0..FLOOD / 10 {
                if !client.update_keys() {
                    break;
                }
            }
        });
        assert!(time < MOST_TIME, "{time:?} of processor time");
        let grown = scene.gateway.resident_kib().saturating_sub(memory);
        assert!(grown < 8 << 10, "{grown} KiB");
    });
}

/// Each byte in a record of its own.
#[test]
fn a_request_in_the_smallest_records_is_one_request() {
    isolated(|| {
        let mut scene = Scene::new();
        for old in [false, true] {
            let mut client = scene.session(old);
            for byte in GET.as_bytes() {
                client.send([*byte]);
            }
            assert_eq!(client.read_response().status, 200);
        }
        assert_eq!(scene.origin.requests().len(), 2);
        assert_eq!(scene.gateway.final_audit().len(), 2);
    });
}
