//! Is what a stream says of its destination judged as strictly as on HTTP/1.1?

use outgate_tests::prelude::*;

use crate::asked::{Streams, fields};
use crate::{NAME, OTHER, open_gateway};

#[test]
fn another_name_on_the_connection_is_421_on_its_stream_alone() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let other = world.http2(OTHER).start();
        let evil = world.http2("evil.example.test").start();
        let mut gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        streams.control();
        let host = |value| [("host", value)];
        let cases = [
            (Some("evil.example.test"), host("")),
            (Some(OTHER), host("")),
            (Some("api.example.com:8443"), host("")),
            (Some("api.example.com.evil.example.test"), host("")),
            (Some("xapi.example.com"), host("")),
            (Some("example.com"), host("")),
            (Some("11.22.33.44"), host("")),
            (Some(NAME), host("evil.example.test")),
            (Some(NAME), host(OTHER)),
            (Some("evil.example.test"), host(NAME)),
            (None, host("evil.example.test")),
        ];
        for (authority, host) in cases {
            let more = if host[0].1.is_empty() { &[][..] } else { &host[..] };
            let answer = streams.ask(&fields(authority, "/", more));
            let said = (answer.status(), answer.reason());
            assert_eq!(said, (421, Some("name_mismatch")), "{authority:?} {more:?} {answer:?}");
            assert_eq!(answer.reset.filter(|error| *error != 0), None, "{answer:?}");
            streams.control();
        }
        let scheme =
            [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", NAME)];
        assert_eq!(streams.ask(&scheme.to_vec()).status(), 421);
        assert_eq!((other.connections(), evil.connections()), (0, 0));
        assert!(origin.requests().iter().all(|request| request.path == "/control"));
        drop(streams);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 2 * cases.len() + 2);
        let refused = audit.iter().filter(|line| line["reason"] == "name_mismatch");
        assert_eq!(refused.count(), cases.len() + 1);
    });
}

#[test]
fn other_streams_live_on_beside_a_misdirected_one() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.respond(200, &[]);
                while let Some(piece) = stream.data() {
                    stream.send(piece);
                }
                stream.finish();
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut living = client.open(client.request("POST", "/"));
        assert_eq!(living.head().expect("an answer").status, 200);
        living.send("before");
        assert_eq!(living.data().expect("open").as_deref(), Some(&b"before"[..]));
        let evil = http::Request::builder().uri("https://evil.example.test/");
        assert_eq!(client.ask(evil, "").status, 421);
        living.send("after");
        assert_eq!(living.data().expect("open").as_deref(), Some(&b"after"[..]));
        living.finish();
        assert!(living.rest().is_ok());
    });
}

#[test]
fn spellings_of_the_same_name_are_the_same_name() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        let spellings =
            ["API.Example.COM", "api.example.com.", "api.example.com:443", "Api.example.com.:443"];
        for authority in spellings {
            let answer = streams.ask(&fields(Some(authority), "/", &[]));
            assert_eq!(answer.status(), 200, "{authority}: {answer:?}");
            let answer = streams.ask(&fields(None, "/", &[("host", authority)]));
            assert_eq!(answer.status(), 200, "host {authority}: {answer:?}");
            let answer = streams.ask(&fields(Some(NAME), "/", &[("host", authority)]));
            assert_eq!(answer.status(), 200, "both {authority}: {answer:?}");
        }
        let requests = origin.requests();
        assert_eq!(requests.len(), 3 * spellings.len());
        for request in requests {
            assert_eq!(request.authority.as_deref(), Some(NAME), "the name as it was judged");
            assert_eq!(request.header("host"), None);
        }
    });
}

#[test]
fn malformed_authorities_are_refused() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let mut gateway = open_gateway(&world);
        let mut streams = Streams::of(&gateway);
        let malformed = [
            "[api.example.com]",
            "[api.example.com]:443",
            "[::1",
            "[::1]x:443",
            "[::1]:443:80",
            "[fe80::1%25lo]:443",
            "[]:443",
            ".api.example.com",
            "api..example.com",
            "api.example.com..",
            "-.ok.example.test ",
            "api.example.com@evil.example.test",
            "api.example.com:80@evil.example.test",
            "evil.example.test\\@api.example.com",
            "user@api.example.com",
            "%61pi.example.com",
            "api.example.com%00",
            "api.example.com\0",
            "api.example.com\u{443}",
            "api.example.com:",
            "api.example.com:0443",
            "api.example.com:65979",
            "api.example.com:+443",
            "api.example.com, evil.example.test",
            "api.example.com/evil",
            "2130706433",
            "0x7f.1",
            "127.1",
            "",
        ];
        for (number, authority) in malformed.iter().enumerate() {
            for fields in [
                fields(Some(authority), "/", &[]),
                fields(None, "/", &[("host", authority)]),
                fields(Some(NAME), "/", &[("host", authority)]),
            ] {
                // What can't stand in a header at all ends the connection.
                let Some(answer) = streams.try_ask(&fields) else { continue };
                let refused = match answer.status() {
                    0 => answer.reset == Some(frames::PROTOCOL_ERROR),
                    status => status == 400,
                };
                assert!(refused, "{number} {fields:?}: {answer:?}");
            }
            streams.control();
        }
        assert!(origin.requests().iter().all(|request| request.path == "/control"));
        drop(streams);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 4 * malformed.len(), "one line for each stream");
        let denied = audit.iter().filter(|line| line["verdict"] == "deny");
        assert_eq!(denied.count(), 3 * malformed.len());
    });
}
