//! Can the first bytes of a tunnel, however cut, spelled or hidden, lead past its name?

use outgate_tests::client::ClientHello;
use outgate_tests::prelude::*;
use rustls::AlertDescription;

const API: &str = "api.example.com";
const EVIL: &str = "evil.example.test";
const AUTHORITY: &str = "api.example.com:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

const UNRECOGNIZED: TlsFault = TlsFault::Alert(AlertDescription::UnrecognisedName);

const PADDING: u16 = 21;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

struct Scene {
    api: Origin,
    evil: Origin,
    gateway: Gateway,
}

impl Scene {
    fn new() -> Self {
        Self::with("")
    }

    fn with(configuration: &str) -> Self {
        let world = world!();
        let (api, evil) = (world.https(API).start(), world.https(EVIL).start());
        let environment = json!({"network": {"allowlist": [{"domain": API}]}});
        let builder = world.gateway_builder().environment(&environment);
        Self { api, evil, gateway: builder.configuration(configuration).start() }
    }

    fn tunnel(&self) -> RawClient {
        self.gateway.client().connect_tunnel(AUTHORITY)
    }

    fn assert_nothing_left(&self) {
        assert_eq!((self.api.connections(), self.evil.connections()), (0, 0));
    }

    fn assert_control(&self) {
        assert_eq!(self.tunnel().tls(&Hello::to(API)).exchange(GET).status, 200);
    }
}

/// RFC 9849 5: the outer one (0), HKDF-SHA256 and AES-128-GCM, a config's id, a key and a payload.
fn outer_hello() -> Vec<u8> {
    let (key, payload) = (canary(32), canary(160));
    let head = [0, 0, 1, 0, 1, 7, 0, 32];
    [&head[..], key.as_bytes(), &[0, 160], payload.as_bytes()].concat()
}

/// Sends these records and has the first byte of the answer: an alert (21), a handshake (22), or
/// `None` for a close.
fn content_type(tunnel: &mut RawClient, records: &[u8]) -> Option<u8> {
    tunnel.send(records);
    tunnel.read_some().ok().and_then(|bytes| bytes.first().copied())
}

#[test]
fn a_client_hello_in_any_pieces_is_judged_as_a_whole() {
    isolated(|| {
        let scene = Scene::new();
        for (name, expected) in [(EVIL, Some(UNRECOGNIZED)), (API, None)] {
            for lengths in [&[5][..], &[1, 1, 1], &[40, 60], &[4], &[100]] {
                let mut tunnel = scene.tunnel();
                let pending = tunnel.begin_tls(&Hello::to(name));
                let records = ClientHello::parse(&pending.client_hello).to_records(lengths);
                tunnel.send(&records);
                assert_eq!(tunnel.complete_tls(pending).err(), expected, "{name} {lengths:?}");
            }
            let mut tunnel = scene.tunnel();
            let pending = tunnel.begin_tls(&Hello::to(name));
            tunnel.send_in_pieces(&pending.client_hello, 1, Duration::from_micros(500));
            assert_eq!(tunnel.complete_tls(pending).err(), expected, "{name}, byte by byte");
        }
        scene.assert_nothing_left();
        scene.assert_control();
        assert_eq!(scene.gateway.wait_audit(13).len(), 13);
    });
}

#[test]
fn a_client_hello_beyond_all_measure_is_closed_and_a_long_one_is_read() {
    isolated(|| {
        let scene = Scene::new();
        let hello = |tunnel: &RawClient, name, padding| {
            let pending = tunnel.begin_tls(&Hello::to(name));
            ClientHello::parse(&pending.client_hello).with_extension(PADDING, &vec![0; padding])
        };
        for (name, expected) in [(API, Some(22)), (EVIL, Some(21))] {
            let mut tunnel = scene.tunnel();
            let records = hello(&tunnel, name, 15_000).to_record();
            assert_eq!(content_type(&mut tunnel, &records), expected, "{name}");
        }
        // The list of extensions has a length of two bytes.
        let mut tunnel = scene.tunnel();
        let records = hello(&tunnel, API, 64_000).to_records(&[16_000; 4]);
        let endless = records.repeat(8);
        assert_ne!(content_type(&mut tunnel, &endless[..]), None, "one whole hello is in there");
        let mut tunnel = scene.tunnel();
        // A message of 16 MiB is announced, 1 MiB of it sent.
        let record = [&[22, 3, 1, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 16_380]].concat();
        tunnel.send(record.repeat(64));
        assert_ne!(content_type(&mut tunnel, &[]), Some(22));
        // Empty fragments are against RFC 8446 5.1, and may end in a close.
        let mut tunnel = scene.tunnel();
        let records = hello(&tunnel, EVIL, 10).to_records(&[0, 0, 0]);
        assert_ne!(content_type(&mut tunnel, &records), Some(22));
        scene.assert_nothing_left();
        scene.assert_control();
    });
}

#[test]
fn server_names_that_are_no_name_end_the_handshake() {
    isolated(|| {
        let scene = Scene::new();
        let long = "a".repeat(64) + ".example.com";
        let refused: [&[&[u8]]; 12] = [
            &[b"api.example.com", b"evil.example.test"],
            &[b"evil.example.test", b"api.example.com"],
            &[b"api.example.com", b"api.example.com"],
            &[b""],
            &[b"a\0b"],
            &[b"api.example.com\0.evil.example.test"],
            &[b"*.example.com"],
            &[long.as_bytes()],
            &["\u{430}pi.example.com".as_bytes()],
            &[b"api..example.com"],
            &[b"api.example.com.."],
            &[b"api.example.com "],
        ];
        for names in refused {
            let mut tunnel = scene.tunnel();
            let pending = tunnel.begin_tls(&Hello::to(API));
            let hello = ClientHello::parse(&pending.client_hello).with_server_names(names);
            let answer = content_type(&mut tunnel, &hello.to_record());
            assert!(matches!(answer, None | Some(21)), "{names:?}: {answer:?}");
        }
        for name in [&b"API.Example.COM"[..], b"api.example.com."] {
            let mut tunnel = scene.tunnel();
            let pending = tunnel.begin_tls(&Hello::to(API));
            let hello = ClientHello::parse(&pending.client_hello).with_server_names(&[name]);
            let answer = content_type(&mut tunnel, &hello.to_record());
            assert_eq!(answer, Some(22), "{}", name.escape_ascii());
        }
        scene.assert_nothing_left();
        scene.assert_control();
        let audit = scene.gateway.wait_audit(15);
        assert_eq!(audit.len(), 15);
        assert!(audit.iter().filter(|line| line["kind"] == "tunnel").count() == 14, "{audit:#?}");
    });
}

#[test]
fn without_a_server_name_the_tunnels_name_counts() {
    isolated(|| {
        let scene = Scene::new();
        let hello = Hello::to(API).without_server_name();
        let mut tunnel = scene.tunnel().tls(&hello);
        assert_eq!(tunnel.exchange(GET).status, 200);
        let handshake = scene.api.records()[0].handshake().expect("over").expect("done");
        assert_eq!(handshake.server_name.as_deref(), Some(API));
        // The certificate is for the tunnel's name and no other.
        let other = scene.tunnel().try_tls(&Hello::to(EVIL).without_server_name()).err();
        assert!(matches!(other, Some(TlsFault::Certificate(_))), "{other:?}");
        assert_eq!((scene.api.connections(), scene.evil.connections()), (1, 0));
    });
}

#[test]
fn a_hidden_inner_name_is_never_followed_nor_passed_on() {
    isolated(|| {
        let scene = Scene::new();
        for (name, expected) in [(EVIL, Some(21)), (API, Some(22))] {
            let mut tunnel = scene.tunnel();
            let pending = tunnel.begin_tls(&Hello::to(name));
            let hello = ClientHello::parse(&pending.client_hello);
            let hello = hello.with_extension(ENCRYPTED_CLIENT_HELLO, &outer_hello());
            assert_eq!(content_type(&mut tunnel, &hello.to_record()), expected, "{name}");
        }
        scene.assert_nothing_left();
        let mut tunnel = scene.tunnel().tls(&Hello::to(API).ech_grease());
        assert_eq!(tunnel.exchange(GET).status, 200);
        let wire = scene.api.records()[0].wire();
        let length = usize::from(u16::from_be_bytes([wire[3], wire[4]]));
        let sent = ClientHello::parse(&wire[..5 + length]);
        assert_eq!(sent.extension(ENCRYPTED_CLIENT_HELLO), None);
        let hidden = scene.tunnel().try_tls(&Hello::to(EVIL).ech_grease()).err();
        assert_eq!(hidden, Some(UNRECOGNIZED));
    });
}

#[test]
fn a_client_that_offers_protocols_is_always_told_one() {
    isolated(|| {
        let scene = Scene::new();
        let tunnel = scene.tunnel().tls(&Hello::to(API).alpn(&["http/1.1"]));
        assert_eq!(tunnel.alpn().as_deref(), Some("http/1.1"));
        let mut silent = scene.tunnel().tls(&Hello::to(API).alpn(&[]));
        assert_eq!((silent.alpn(), silent.exchange(GET).status), (None, 200));
        let mut old = scene.tunnel().tls(&Hello::to(API).tls12());
        assert_eq!((old.alpn().as_deref(), old.exchange(GET).status), (Some("http/1.1"), 200));
    });
}

#[test]
fn what_is_no_tls_is_closed_and_silence_ends_in_time() {
    isolated(|| {
        let scene = Scene::with("[limits]\nclient_handshake = \"500ms\"\n");
        let openings: [&[u8]; 5] =
            [b"SSH-2.0-x\r\n", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x02\x00\x01", b"", b"GE"];
        for opening in openings {
            let mut tunnel = scene.tunnel();
            tunnel.send(opening);
            let end = tunnel.read_to_end();
            let alert_or_nothing =
                matches!(&end, Ok(bytes) if bytes.first().is_none_or(|first| *first == 21));
            assert!(alert_or_nothing, "{}: {end:?}", opening.escape_ascii());
        }
        scene.assert_nothing_left();
        scene.assert_control();
        let audit = scene.gateway.wait_audit(openings.len() + 1);
        assert_eq!(audit.len(), openings.len() + 1);
        assert_eq!(audit[0]["reason"], "protocol_not_allowed");
        for line in &audit[..openings.len()] {
            assert_eq!(line["kind"], "tunnel");
            assert!(line["error"].is_string(), "{line}");
        }
    });
}

#[test]
fn plain_http_in_a_tunnel_to_the_tls_port_is_plain_and_gets_no_secret() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let origin = world.http(API).port(443).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": API, "transform": {"Authorization": format!("Bearer {secret}")}},
            {"domain": "a.ok.example.test"},
        ]}}));
        let refused = gateway
            .client()
            .connect_tunnel(AUTHORITY)
            .exchange("GET / HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n");
        assert_eq!(refused.header("outgate-reason"), Some("injection_needs_tls"), "{refused:?}");
        assert_eq!(origin.connections(), 0);
        let ok = world.http("a.ok.example.test").start();
        assert_eq!(Door::ConnectPlain.get(&gateway, "a.ok.example.test").status, 200);
        assert_eq!(ok.connections(), 1);
        assert_secret_absent(gateway.output(), &secret);
    });
}
