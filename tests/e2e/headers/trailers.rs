//! Can a trailer say what a header may not?

use outgate_tests::prelude::*;

use crate::injecting;

const HARMFUL: [&str; 20] = [
    "Authorization",
    "Content-Length",
    "Transfer-Encoding",
    "Host",
    "Connection",
    "Cookie",
    "Set-Cookie",
    "Content-Type",
    "Content-Encoding",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Upgrade",
    "Keep-Alive",
    "Proxy-Connection",
    "HTTP2-Settings",
    "Alt-Svc",
    "Location",
    "WWW-Authenticate",
    "Proxy-Authenticate",
];

/// Over HTTP/1.1 others would be dropped because nobody has spoken of them.
fn announced() -> String {
    HARMFUL.join(", ")
}

#[test]
fn carries_harmless_trailers_up_and_no_others() {
    isolated(|| {
        let secret = canary(40);
        let both = injecting(&world!(), json!({"X-Api-Key": secret}));
        let harmful: String = HARMFUL.iter().map(|name| format!("{name}: 1\r\n")).collect();
        let template = format!(
            "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Sum, X_Api_Key, X-Api-Key, {}\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 9a\r\nX-Api-Key: mine\r\nX_Api_Key: mine\r\n{harmful}\r\n",
            announced()
        );
        let answer = both.ask(Way::Tunnel, template);
        assert_eq!(answer.json()["body"], "hello");
        let request = &both.origin(Way::Tunnel).requests()[0];
        let trailers: Vec<(String, &str)> = request
            .trailers
            .iter()
            .map(|field| (field.name.to_lowercase(), field.value.as_str()))
            .collect();
        assert_eq!(trailers, [("x-sum".to_owned(), "9a")]);
        assert_eq!(request.head.values("x-api-key"), [secret.as_str()]);
        both.audited(1);
    });
}

#[test]
fn carries_harmless_trailers_down_to_a_client_that_wants_them() {
    isolated(|| {
        let world = world!();
        let mut trailers = vec!["X-Sum: 9a"];
        let harmful: Vec<String> = HARMFUL.iter().map(|name| format!("{name}: 1")).collect();
        trailers.extend(harmful.iter().map(String::as_str));
        let entry = json!({"domain": "api.example.com"});
        let response = chunked_with(&trailers);
        let both = BothWays::start(&world, json!({"network": {"allowlist": [entry]}}), || {
            scripts::respond(response.clone())
        });
        for way in Way::ALL {
            let wanting = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
            let answer = both.ask(way, wanting);
            assert_eq!(answer.text(), "hello", "{way}");
            let names: Vec<String> =
                answer.trailers.iter().map(|field| field.name.to_lowercase()).collect();
            assert_eq!(names, ["x-sum"], "{way}");
            let request = &both.origin(way).requests()[0];
            assert_eq!(request.header("te"), Some("trailers"), "{way}");

            let plain = both.ask(way, "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(plain.text(), "hello", "{way}");
            assert!(plain.trailers.is_empty(), "{way}: nobody asked for them");
        }
        let client = both.gateway.http2("api.example.com").connect();
        let answer = client.ask(client.request("GET", "/").header("te", "trailers"), "");
        let trailers = answer.trailers.expect("over HTTP/2 they need not be asked for");
        let names: Vec<&str> = trailers.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["x-sum"]);
        drop(client);
        both.audited(5);
    });
}

fn chunked_with(trailers: &[&str]) -> String {
    let lines: String = trailers.iter().map(|line| format!("{line}\r\n")).collect();
    format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, {}\r\n\r\n\
         5\r\nhello\r\n0\r\n{lines}\r\n",
        announced()
    )
}
