//! Is a head that breaks the rules refused on its stream alone, with one line?

use outgate_tests::prelude::*;

use crate::asked::{Fields, Streams, fields};
use crate::{NAME, open_gateway};

#[test]
fn malformed_heads_are_refused_with_one_line_each() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let mut gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        let good = fields(Some(NAME), "/", &[]);
        let with = |more: &[(&'static str, &'static str)]| fields(Some(NAME), "/", more);
        let without = |name| good.iter().filter(|(known, _)| *known != name).copied().collect();
        let cases: Vec<Fields<'_>> = vec![
            with(&[("connection", "keep-alive")]),
            with(&[("connection", "authorization, host"), ("authorization", "mine")]),
            with(&[("transfer-encoding", "chunked")]),
            with(&[("upgrade", "websocket")]),
            with(&[("keep-alive", "timeout=5")]),
            with(&[("proxy-connection", "keep-alive")]),
            with(&[("te", "gzip")]),
            with(&[("X-Upper", "1")]),
            with(&[("x y", "1")]),
            with(&[("x", "a\r\nb")]),
            with(&[("x", "a\0b")]),
            with(&[(":path", "/two")]),
            with(&[(":unknown", "1")]),
            with(&[(":status", "200")]),
            with(&[(":protocol", "websocket")]),
            with(&[("content-length", "+5")]),
            with(&[("content-length", "5,5")]),
            with(&[("content-length", "0x5")]),
            with(&[("content-length", "18446744073709551621")]),
            with(&[("content-length", "5")]),
            with(&[("content-length", "5"), ("content-length", "6")]),
            with(&[("host", NAME), ("host", NAME)]),
            with(&[("host", NAME), ("host", "evil.example.test")]),
            with(&[("expect", "200-maybe")]),
            without(":authority"),
            without(":method"),
            without(":scheme"),
            without(":path"),
            fields(Some(NAME), "", &[]),
            fields(Some(NAME), "*", &[]),
            fields(Some(NAME), "evil.example.test/", &[]),
            fields(Some(NAME), "https://evil.example.test/", &[]),
            fields(Some(NAME), "/a b", &[]),
            fields(Some(NAME), "/a\u{443}", &[]),
            fields(Some(NAME), "/a\0", &[]),
            [&[("x", "before")], &good[..]].concat(),
        ];
        let mut closed = Vec::new();
        for case in &cases {
            let Some(answer) = streams.try_ask(case) else {
                closed.push(case.last().copied().unwrap_or_default().0);
                continue;
            };
            let refused = match answer.status() {
                0 => answer.reset == Some(frames::PROTOCOL_ERROR),
                status => status == 400 && answer.reason() == Some("malformed_request"),
            };
            assert!(refused, "{case:?}: {answer:?}");
            streams.control();
        }
        streams.control();
        assert!(origin.requests().iter().all(|request| request.path == "/control"));
        drop(streams);
        let audit = gateway.final_audit();
        let due = 2 * cases.len() - closed.len() + 1;
        assert_eq!(audit.len(), due, "one line for each stream; closed by {closed:?}");
        let refused: Vec<_> =
            audit.iter().filter(|line| line["reason"] == "malformed_request").collect();
        assert_eq!(refused.len(), cases.len());
        for line in refused {
            assert_eq!((&line["verdict"], &line["domain"]), (&json!("deny"), &json!(NAME)));
            assert_eq!(line["http"]["client"], "2", "{line}");
        }
    });
}

#[test]
fn connect_inside_a_tunnel_is_405() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let evil = world.silent("11.22.33.66:443");
        let mut gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        for authority in ["evil.example.test:443", "api.example.com:443"] {
            let answer = streams.ask(&vec![(":method", "CONNECT"), (":authority", authority)]);
            let said = (answer.status(), answer.reason());
            assert_eq!(said, (405, Some("connect_in_tunnel")), "{answer:?}");
            streams.control();
        }
        assert_eq!((origin.requests().len(), evil.connections()), (2, 0));
        drop(streams);
        assert_eq!(gateway.final_audit().len(), 4);
    });
}

#[test]
fn a_head_over_its_bounds_is_431() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let mut gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        let big = "v".repeat(15 << 10);
        let names: Vec<String> = (0..120).map(|number| format!("x-{number}")).collect();
        let many: Fields<'_> = names.iter().map(|name| (name.as_str(), "1")).collect();
        // Four fit into 64 KiB with the rest of the head, five don't.
        let large: Vec<_> = names[..5].iter().map(|name| (name.as_str(), big.as_str())).collect();
        let crumbs = vec![("cookie", "a=b"); 120];
        for fits in [&many[..90], &large[..4], &crumbs[..]] {
            assert_eq!(streams.large(&fields(Some(NAME), "/fits", fits)).status(), 200);
        }
        for (shown, over) in [("count", &many[..]), ("size", &large[..])] {
            let answer = streams.large(&fields(Some(NAME), "/over", over));
            assert_eq!(answer.status(), 431, "{shown}: {answer:?}");
            streams.control();
        }
        assert!(origin.requests().iter().all(|request| request.path != "/over"));
        drop(streams);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 7);
        let refused = audit.iter().filter(|line| line["reason"] == "head_too_large");
        assert_eq!(refused.count(), 2);
    });
}
