//! What is no well-formed request gets a code that is not 0, or nothing, and is closed.

use super::*;

#[test]
fn a_name_that_two_programs_could_read_differently_is_refused_before_any_look_up() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &allowing(&["*.ok.example.test", "*.example.com"]));
        let dialled = network::connection_attempts();
        let names: [&[u8]; 12] = [
            b"evil.example.test\0.ok.example.test",
            b"",
            b"api.example.com@evil.example.test",
            b"api.example.com:443",
            b"api..example.com",
            b".api.example.com",
            b"[api.example.com]",
            b"127.1",
            b"2130706433",
            b"0x7f.1",
            b"api.example.com\r\n",
            "\u{430}pi.example.com".as_bytes(),
        ];
        for name in names {
            let code = refused(&gateway, &named(name, 443));
            assert_eq!(code, NOT_THIS_ADDRESS, "{}", name.escape_ascii());
        }
        assert_eq!(world.dns.questions().len(), 0);
        assert_eq!(network::connection_attempts() - dialled, 12);
        let audit = gateway.wait_audit(12);
        assert_eq!(audit.len(), 12);
        assert!(audit.iter().all(|line| line["reason"] == "malformed_host"), "{audit:#?}");
    });
}

#[test]
fn only_connect_is_there() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &json!({}));
        let api = [11, 22, 33, 44, 1, 0xbb];
        for (head, code) in [
            ([5, 2, 0, 1], NOT_THIS_COMMAND),
            ([5, 3, 0, 1], NOT_THIS_COMMAND),
            ([5, 0, 0, 1], NOT_THIS_COMMAND),
            ([5, 255, 0, 1], NOT_THIS_COMMAND),
            ([5, 1, 0, 2], NOT_THIS_ADDRESS),
            ([5, 1, 0, 0], NOT_THIS_ADDRESS),
            ([5, 1, 1, 1], FAILED),
            ([4, 1, 0, 1], FAILED),
        ] {
            assert_eq!(refused(&gateway, &[&head[..], &api].concat()), code, "{head:?}");
        }
        assert_eq!(refused(&gateway, &literal("11.22.33.44", 0)), FAILED);
        assert_eq!(gateway.wait_audit(9).len(), 9);
    });
}

#[test]
fn another_protocol_is_closed_without_a_word() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &json!({}));
        let four = b"\x04\x01\x01\xbb\x00\x00\x00\x01\x00evil.example.test\x00";
        for opening in [&four[..], b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\xff"] {
            let mut client = connect(&gateway);
            client.send(opening);
            assert!(client.is_closed(), "{}", opening.escape_ascii());
        }
        let audit = gateway.wait_audit(4);
        assert_eq!(audit.len(), 4);
        assert!(audit.iter().all(|line| line["reason"] == "malformed_request"), "{audit:#?}");
    });
}

#[test]
fn a_greeting_without_an_acceptable_method_is_told_so() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, &json!({}));
        let every_other: Vec<u8> = [5, 253].into_iter().chain(3..=255).collect();
        for greeting in [&[5, 0][..], &[5, 1, 1], &every_other] {
            let mut client = connect(&gateway);
            client.send(greeting);
            assert_eq!(client.read_exact(2), [5, 255]);
            assert!(client.is_closed());
        }
        assert_eq!(gateway.wait_audit(3).len(), 3);
    });
}

#[test]
fn a_request_in_single_bytes_is_one_request_and_what_follows_is_the_tunnels() {
    isolated(|| {
        let world = world!();
        let api = world.http(API).start();
        let gateway = start(&world, &allowing(&[API]));
        let mut client = connect(&gateway);
        let all = [GREETING, &named(API, 80)].concat();
        client.send_in_pieces(all, 1, Duration::from_millis(1));
        assert_eq!(client.read_exact(2), [5, 0]);
        assert_eq!(reply(&mut client), SUCCEEDED);
        assert_eq!(client.exchange(GET).status, 200);
        // All in one segment.
        let mut client = connect(&gateway);
        client.send([GREETING, &named(API, 80), GET.as_bytes()].concat());
        assert_eq!(client.read_exact(2), [5, 0]);
        assert_eq!(reply(&mut client), SUCCEEDED);
        assert_eq!(client.read_response().status, 200);
        assert_eq!(api.requests().len(), 2);
    });
}

#[test]
fn who_asks_for_nothing_is_hung_up_on_in_time() {
    isolated(|| {
        let world = world!();
        let limits = "[limits]\nclient_handshake = \"500ms\"\n";
        let gateway = with(&world, &json!({}), limits);
        for (number, opening) in [&b""[..], &[5], GREETING].into_iter().enumerate() {
            let mut client = connect(&gateway);
            client.send(opening);
            assert!(client.read_to_end().is_ok_and(|said| said.len() <= 2));
            assert_eq!(gateway.wait_audit(number + 1)[number]["reason"], "request_timeout");
        }
        // One that looks whether somebody listens is no connection worth a line.
        drop(connect(&gateway));
        let (code, _client) = ask(&gateway, &named("nowhere.example.com", 443));
        assert_eq!(code, HOST_UNREACHABLE);
        assert_eq!(gateway.wait_audit(4).len(), 4);
    });
}
