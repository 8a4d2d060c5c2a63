//! Can an origin speak as if it were the gateway?

use outgate_tests::prelude::*;

const NAME: &str = "api.example.com";
const FORGED: [&str; 3] = ["outgate-reason", "outgate-hop", "outgate-anything"];

fn environment(scrubs: bool) -> serde_json::Value {
    let entry = json!({"domain": NAME, "transform": {"X-Key": canary(40)}, "scrub": scrubs, "allow_plaintext": true});
    json!({"network": {"allowlist": [entry]}})
}

#[test]
fn an_answer_of_http1_has_nothing_of_the_gateways_own() {
    isolated(|| {
        let world = world!();
        let lines: String = FORGED
            .iter()
            .map(|name| format!("{}: domain_not_allowed\r\n", name.to_uppercase()))
            .collect();
        let forgery = format!(
            "HTTP/1.1 103 domain_not_allowed\r\n{lines}\r\n\
             HTTP/1.1 403 domain_not_allowed\r\nTransfer-Encoding: chunked\r\nX-Own: 1\r\n{lines}\
             Trailer: X-Sum, Outgate-Reason\r\n\r\n2\r\nno\r\n0\r\nX-Sum: 9a\r\n{lines}\r\n"
        );
        for scrubs in [false, true] {
            let both =
                BothWays::start(&world, environment(scrubs), || scripts::respond(forgery.as_str()));
            for way in Way::ALL {
                let answer = both.ask(
                    way,
                    "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
                );
                assert_eq!(
                    (answer.status, answer.text().as_str()),
                    (403, "no"),
                    "{way}: {answer:?}"
                );
                assert_eq!(answer.header("x-own"), Some("1"), "{way}: the control");
                let trailers: Vec<_> =
                    answer.trailers.iter().map(|field| field.name.to_lowercase()).collect();
                assert_eq!(trailers, ["x-sum"], "{way}: {answer:?}");
                for name in FORGED {
                    assert_eq!(answer.header(name), None, "{way}: {answer:?}");
                }
                assert_eq!(answer.head.start_line, "HTTP/1.1 403 Forbidden", "{way}: {answer:?}");
            }
            let own = both.ask(Way::Forward, "TRACE @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(own.header("outgate-reason"), Some("trace_refused"), "the control");
        }
    });
}

#[test]
fn an_answer_of_http2_has_nothing_of_the_gateways_own() {
    isolated(|| {
        let world = world!();
        let forged = FORGED.map(|name| (name, "domain_not_allowed"));
        let _origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                let head: Vec<_> = forged.into_iter().chain([("x-own", "1")]).collect();
                stream.respond(403, &head);
                stream.send("no");
                let trailers: Vec<_> = forged.into_iter().chain([("x-sum", "9a")]).collect();
                stream.finish_with(&trailers);
            })
            .start();
        for scrubs in [false, true] {
            let gateway = world.gateway(environment(scrubs));
            let client = gateway.http2(NAME).connect();
            let answer = client.ask(client.request("GET", "/").header("te", "trailers"), "");
            assert_eq!((answer.status, answer.text().as_str()), (403, "no"), "{answer:?}");
            assert_eq!((answer.header("x-own"), answer.trailer("x-sum")), (Some("1"), Some("9a")));
            for name in FORGED {
                assert_eq!((answer.header(name), answer.trailer(name)), (None, None), "{answer:?}");
            }
        }
    });
}

#[test]
fn an_agreed_websocket_has_nothing_of_the_gateways_own() {
    isolated(|| {
        let world = world!();
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let accept = scripts::websocket_accept(key);
        let agreed = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\nOutgate-Reason: domain_not_allowed\r\nX-Own: 1\r\n\r\n"
        );
        let both =
            BothWays::start(&world, environment(false), || scripts::respond(agreed.as_str()));
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                format!(
                    "GET @/ HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
                ),
            );
            let answer = client.read_response();
            assert_eq!((answer.status, answer.header("x-own")), (101, Some("1")), "{way}");
            assert_eq!(answer.header("outgate-reason"), None, "{way}");
        }
    });
}
