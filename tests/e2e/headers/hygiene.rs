//! Does what concerned only one connection stay there?

use outgate_tests::prelude::*;

use crate::injecting;

#[test]
fn removes_the_fields_of_the_clients_connection_and_adds_none_of_its_own() {
    isolated(|| {
        let both = injecting(&world!(), json!({}));
        let head = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nProxy-Connection: keep-alive\r\n\
                    Keep-Alive: timeout=5\r\nTE: trailers, deflate;q=0.5\r\n\
                    Connection: keep-alive, X-Mine, TE\r\nX-Mine: 1\r\nX-Yours: 2\r\n\
                    HTTP2-Settings: AAMAAABkAAQAAP__\r\nAccept: */*\r\n\r\n";
        for way in Way::ALL {
            // On the proxy's own port it would say who asks, wrongly.
            let head = match way {
                Way::Forward => head.to_owned(),
                Way::Tunnel => head.replace("TE:", "Proxy-Authorization: Basic eDp5\r\nTE:"),
            };
            assert_eq!(both.ask(way, head).status, 200, "{way}");
            let request = &both.origin(way).requests()[0];
            let mut fields: Vec<(String, &str)> = request
                .head
                .fields
                .iter()
                .map(|field| (field.name.to_lowercase(), field.value.as_str()))
                .collect();
            fields.sort_unstable();
            let wanted = [
                ("accept", "*/*"),
                ("connection", "te"),
                ("host", "api.example.com"),
                ("te", "trailers"),
                ("x-yours", "2"),
            ];
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            assert_eq!(fields, wanted, "{way}");
        }
    });
}

#[test]
fn passes_what_the_client_says_of_its_own_way() {
    isolated(|| {
        let both = injecting(&world!(), json!({}));
        let head = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nVia: 1.1 x\r\n\
                    X-Forwarded-For: 10.0.0.2\r\nForwarded: for=10.0.0.2\r\n\r\n";
        for way in Way::ALL {
            assert_eq!(both.ask(way, head).status, 200, "{way}");
            let request = &both.origin(way).requests()[0];
            assert_eq!(request.head.values("via"), ["1.1 x"], "{way}");
            assert_eq!(request.head.values("x-forwarded-for"), ["10.0.0.2"], "{way}");
            assert_eq!(request.head.values("forwarded"), ["for=10.0.0.2"], "{way}");
        }
    });
}

#[test]
fn no_connection_field_names_the_host_or_the_length_away() {
    isolated(|| {
        let both = injecting(&world!(), json!({}));
        let head = "POST @/ HTTP/1.1\r\nConnection: Host, Content-Length, Transfer-Encoding, Expect\r\n\
                    Host: api.example.com\r\nContent-Length: 5\r\n\r\nhello";
        for way in Way::ALL {
            assert_eq!(both.ask(way, head).json()["body"], "hello", "{way}");
            let request = &both.origin(way).requests()[0];
            assert_eq!(request.header("content-length"), Some("5"), "{way}");
        }
    });
}

#[test]
fn removes_from_answers_what_leads_around_the_gateway() {
    isolated(|| {
        let world = world!();
        let entry = json!({"domain": "api.example.com"});
        let both = BothWays::start(&world, json!({"network": {"allowlist": [entry]}}), || {
            scripts::respond(
                "HTTP/1.1 200 OK\r\nAlt-Svc: h3=\":443\"\r\nalt-svc: h2=\"evil.example.test:443\"\r\n\
                 Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nConnection: X-Gone\r\nX-Gone: 1\r\n\
                 Upgrade: h2c\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok",
            )
        });
        for way in Way::ALL {
            let answer = both.ask(way, "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            for name in [
                "alt-svc",
                "keep-alive",
                "proxy-authenticate",
                "connection",
                "x-gone",
                "upgrade",
                "via",
            ] {
                assert_eq!(answer.header(name), None, "{way}: {name}");
            }
            assert_eq!(answer.head.values("set-cookie"), ["a=1", "b=2"], "{way}");
            assert_eq!(answer.text(), "ok", "{way}");
        }
    });
}

#[test]
fn keeps_the_case_of_names_both_ways() {
    isolated(|| {
        let world = world!();
        let entry = json!({"domain": "api.example.com"});
        let both = BothWays::start(&world, json!({"network": {"allowlist": [entry]}}), || {
            scripts::respond("HTTP/1.1 200 OK\r\nx-ODD-name: 1\r\nContent-Length: 0\r\n\r\n")
        });
        for way in Way::ALL {
            let head =
                "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nx-api-KEY: 1\r\nX-aPi: 2\r\n\r\n";
            let answer = both.ask(way, head);
            let has = |head: &[u8], line: &str| String::from_utf8_lossy(head).contains(line);
            assert!(has(&answer.head.raw, "\r\nx-ODD-name: 1\r\n"), "{way}: {answer:?}");
            let sent = both.origin(way).raw();
            for line in
                ["\r\nx-api-KEY: 1\r\n", "\r\nX-aPi: 2\r\n", "\r\nHost: api.example.com\r\n"]
            {
                assert!(has(&sent, line), "{way}: {}", sent.escape_ascii());
            }
        }
    });
}
