//! Which header fields pass, and what is added on every stream?

use outgate_tests::prelude::*;

use crate::{NAME, OTHER, open_gateway};

#[test]
fn fields_of_the_connection_and_of_the_proxy_stay_here() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let client = gateway.http2(name).connect();
            let request = client
                .request("GET", "/")
                .header("proxy-authorization", "Basic eDp5")
                .header("http2-settings", "AAMAAABkAAQAAP__")
                .header("expect", "100-continue")
                .header("te", "trailers")
                .header("x-forwarded-for", "10.0.0.2")
                .header("cookie", "a=1")
                .header("cookie", "b=2")
                .header("cookie", "c=3");
            assert_eq!(client.ask(request, "").status, 200);
        }
        let request = &newer.requests()[0];
        let fields = |name| request.values(name).join("|");
        let seen = ["proxy-authorization", "http2-settings", "expect", "via", "connection"];
        assert!(seen.iter().all(|name| fields(name).is_empty()), "{request:?}");
        assert_eq!((fields("te"), fields("cookie")), ("trailers".into(), "a=1; b=2; c=3".into()));
        assert_eq!(fields("x-forwarded-for"), "10.0.0.2", "as the client said it, nothing added");
        let request = &older.requests()[0];
        let fields = |name| request.header(name).unwrap_or_default().to_owned();
        let seen = ["proxy-authorization", "http2-settings", "expect", "via"];
        assert!(seen.iter().all(|name| fields(name).is_empty()), "{request:?}");
        assert_eq!(fields("cookie"), "a=1; b=2; c=3");
        assert_eq!(fields("te"), "trailers");
        assert_eq!(fields("host"), OTHER, "made from :authority");
    });
}

#[test]
fn injects_on_every_stream_over_whatever_the_client_says() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let (one, two) = (canary(32), canary(32));
        let mut gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": NAME, "transform": {"Authorization": one}},
            {"domain": OTHER, "transform": {"Authorization": two}},
        ]}}));
        for name in [NAME, OTHER] {
            let client = gateway.http2(name).connect();
            for _ in 0..3 {
                let request = client
                    .request("GET", "/")
                    .header("authorization", "Bearer mine")
                    .header("authorization", "Bearer mine too")
                    .header("authorization", "");
                let answer = client.ask(request, "");
                assert_eq!(answer.status, 200);
            }
        }
        for request in newer.requests() {
            assert_eq!(request.values("authorization"), [one.as_str()]);
        }
        let requests = older.requests();
        assert!(requests.iter().all(|request| request.header("authorization") == Some(&two)));
        assert_eq!((newer.requests().len(), requests.len()), (3, 3));
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 6);
        assert!(audit.iter().all(|line| line["injected"] == json!(["authorization"])));
        assert_secret_absent(gateway.output(), &one);
        assert_secret_absent(gateway.output(), &two);
    });
}
