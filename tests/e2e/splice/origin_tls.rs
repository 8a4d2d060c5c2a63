//! `tls: "passthrough"`.

use outgate_tests::client::ClientHello;
use rustls::AlertDescription;

use super::*;

const AUTHORITY: &str = "api.example.com:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;
const PADDING: u16 = 21;

struct Scene {
    world: World,
    api: Origin,
    gateway: Gateway,
}

impl Scene {
    fn new(allow_ech: bool) -> Self {
        let world = world!();
        let api = world.https(API).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": API, "tls": "passthrough", "allow_ech": allow_ech},
            {"domain": EVIL},
        ]}}));
        Self { world, api, gateway }
    }

    /// A tunnel to [`API`] of a client that trusts the CA of the origins, not the gateway's.
    fn tunnel(&self) -> RawClient {
        let client = RawClient::connect(self.gateway.explicit(), self.world.pki.roots());
        client.connect_tunnel(AUTHORITY)
    }

    /// What becomes of a hello to [`API`] that is bent like this.
    fn bent(&self, bend: impl FnOnce(ClientHello) -> Vec<u8>) -> Option<u8> {
        let mut tunnel = self.tunnel();
        let pending = tunnel.begin_tls(&Hello::to(API));
        tunnel.send(bend(ClientHello::parse(&pending.client_hello)));
        tunnel.read_some().ok().and_then(|bytes| bytes.first().copied())
    }

    fn assert_refused(&self, number: usize, reason: &str) {
        let line = &self.gateway.wait_audit(number)[number - 1];
        assert_eq!((&line["kind"], &line["reason"]), (&json!("tunnel"), &json!(reason)), "{line}");
        assert_eq!(self.api.connections(), 0, "{line}");
    }
}

#[test]
fn tls_ends_at_the_origin_and_bytes_are_counted() {
    isolated(|| {
        let scene = Scene::new(false);
        for hello in [
            Hello::to(API),
            Hello::to(API).tls12(),
            Hello::to(API).without_server_name(),
            Hello::to(API).alpn(&[]),
        ] {
            let mut tunnel = scene.tunnel().tls(&hello);
            assert_eq!(tunnel.exchange(GET).status, 200);
        }
        let curl = scene.gateway.curl("https://api.example.com/");
        let answer = curl.ca(scene.world.pki.roots()).run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let audit = scene.gateway.wait_audit(5);
        for line in &audit {
            assert_eq!((&line["kind"], &line["verdict"]), (&json!("tunnel"), &json!("allow")));
            assert_eq!((&line["address"], &line["entry"]), (&json!("11.22.33.44:443"), &json!(0)));
            let more_than = |field: &str, least: u64| line[field].as_u64().unwrap() > least;
            assert_eq!(line.get("error"), None, "{line}");
            assert!(more_than("bytes_up", 200) && more_than("bytes_down", 500), "{line}");
        }
    });
}

#[test]
fn a_hello_in_any_pieces_passes_as_it_came() {
    isolated(|| {
        let scene = Scene::new(false);
        for lengths in [&[5][..], &[1, 1, 1], &[40, 60], &[4], &[100]] {
            let mut tunnel = scene.tunnel();
            let pending = tunnel.begin_tls(&Hello::to(API));
            tunnel.send(ClientHello::parse(&pending.client_hello).to_records(lengths));
            let mut tunnel = tunnel.complete_tls(pending).expect("a handshake with the origin");
            assert_eq!(tunnel.exchange(GET).status, 200, "{lengths:?}");
        }
        let mut tunnel = scene.tunnel();
        let pending = tunnel.begin_tls(&Hello::to(API));
        tunnel.send_in_pieces(&pending.client_hello, 1, Duration::from_micros(500));
        assert!(tunnel.complete_tls(pending).is_ok());
        let long = |hello: ClientHello| hello.with_extension(PADDING, &[0; 14_000]).to_record();
        assert_eq!(scene.bent(long), Some(22));
    });
}

#[test]
fn another_name_than_the_tunnels_does_not_pass() {
    isolated(|| {
        let scene = Scene::new(true);
        let evil = scene.world.https(EVIL).start();
        let refused = scene.tunnel().try_tls(&Hello::to(EVIL)).err();
        assert_eq!(refused, Some(TlsFault::Alert(AlertDescription::UnrecognisedName)));
        scene.assert_refused(1, "name_mismatch");
        let names: [(&[&[u8]], &str); 6] = [
            (&[b"api.example.com", b"evil.example.test"], "malformed_request"),
            (&[b"evil.example.test", b"api.example.com"], "malformed_request"),
            (&[b"api.example.com\0.evil.example.test"], "malformed_host"),
            (&[b"*.example.com"], "malformed_host"),
            (&[b""], "malformed_host"),
            (&[b"11.22.33.44"], "name_mismatch"),
        ];
        for (number, (names, reason)) in names.into_iter().enumerate() {
            let bent = |hello: ClientHello| hello.with_server_names(names).to_record();
            assert_eq!(scene.bent(bent), Some(21), "{names:?}");
            scene.assert_refused(2 + number, reason);
        }
        assert_eq!(evil.connections(), 0);
    });
}

#[test]
fn a_hidden_name_does_not_pass_where_the_entry_says_nothing() {
    isolated(|| {
        let scene = Scene::new(false);
        let refused = scene.tunnel().try_tls(&Hello::to(API).ech_grease()).err();
        assert_eq!(refused, Some(TlsFault::Alert(AlertDescription::AccessDenied)));
        scene.assert_refused(1, "ech_in_passthrough");
        for kind in [ENCRYPTED_CLIENT_HELLO, ENCRYPTED_SERVER_NAME] {
            let hides = |hello: ClientHello| hello.with_extension(kind, &[0; 200]).to_record();
            assert_eq!(scene.bent(hides), Some(21));
        }
        assert_eq!(scene.api.connections(), 0);
    });
}

#[test]
fn a_hidden_name_passes_unchanged_where_the_entry_says_so() {
    isolated(|| {
        let scene = Scene::new(true);
        let mut tunnel = scene.tunnel().tls(&Hello::to(API).ech_grease());
        assert_eq!(tunnel.exchange(GET).status, 200);
        let wire = scene.api.records()[0].wire();
        let length = usize::from(u16::from_be_bytes([wire[3], wire[4]]));
        let sent = ClientHello::parse(&wire[..5 + length]);
        assert!(sent.extension(ENCRYPTED_CLIENT_HELLO).is_some(), "it came as it was sent");
    });
}

#[test]
fn what_is_no_hello_does_not_pass() {
    isolated(|| {
        let scene = Scene::new(true);
        let openings: [(&[u8], &str); 5] = [
            (b"SSH-2.0-x\r\n", "protocol_not_allowed"),
            (b"\x16\x03\x01\xff\xff", "malformed_request"),
            (b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", "malformed_request"),
            (b"\x16\x03\x01\x00\x00\x16\x03\x01", "malformed_request"),
            (b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "malformed_request"),
        ];
        for (number, (opening, reason)) in openings.into_iter().enumerate() {
            let mut tunnel = scene.tunnel();
            tunnel.send(opening);
            tunnel.finish_sending();
            let end = tunnel.read_to_end().expect("a clean end");
            assert!(end.first().is_none_or(|first| *first == 21), "{end:?}");
            scene.assert_refused(1 + number, reason);
        }
        let twice = |hello: ClientHello| [hello.to_record(), hello.to_record()].concat();
        let joined = |hello: ClientHello| {
            let record = twice(hello);
            let half = record.len() / 2;
            let message = [&record[5..half], &record[half + 5..]].concat();
            let length = u16::try_from(message.len()).expect("short").to_be_bytes();
            [&[22, 3, 1], &length[..], &message].concat()
        };
        assert_eq!(scene.bent(joined), Some(21), "two messages in one record");
        scene.assert_refused(6, "malformed_request");
    });
}

#[test]
fn plain_http_on_its_port_is_judged_request_by_request() {
    isolated(|| {
        let world = world!();
        let origin = world.http(API).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": API, "tls": "passthrough"},
        ]}}));
        let mut tunnel = gateway.client().connect_tunnel("api.example.com:80");
        assert_eq!(tunnel.exchange(GET).status, 200);
        let other = tunnel.exchange("GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n");
        assert_eq!(other.status, 421);
        assert_eq!(origin.requests().len(), 1);
        let audit = gateway.wait_audit(2);
        assert!(audit.iter().all(|line| line["kind"] == "request"), "{audit:#?}");
    });
}

#[test]
fn an_origin_that_can_t_be_reached_ends_the_handshake() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": API, "tls": "passthrough"},
        ]}}));
        let fault = gateway.client().connect_tunnel(AUTHORITY).try_tls(&Hello::to(API)).err();
        assert_eq!(fault, Some(TlsFault::Alert(AlertDescription::InternalError)));
        assert_eq!(gateway.wait_audit(1)[0]["reason"], "origin_connect");
    });
}
