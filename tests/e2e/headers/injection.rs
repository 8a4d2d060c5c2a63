//! Is what was injected there exactly once, whatever the client says?

use outgate_tests::prelude::*;

use crate::injecting;

/// `Authorization` and `X-Api-Key` as they should arrive.
fn has_only_ours(request: &Request, authorization: &str, key: &str) {
    assert_eq!(request.head.values("authorization"), [authorization], "{request:?}");
    assert_eq!(request.head.values("x-api-key"), [key], "{request:?}");
}

#[test]
fn replaces_every_spelling_and_repeat_of_the_client() {
    isolated(|| {
        let (bearer, key) = (format!("Bearer {}", canary(40)), canary(40));
        let both = injecting(&world!(), json!({"Authorization": bearer, "X-Api-Key": key}));
        let own = [
            "Authorization: Bearer mine\r\nauthorization: Bearer mine2\r\nAUTHORIZATION:\r\n",
            "X-API-KEY: mine\r\nx-api-key: mine\r\nX_Api_Key: mine\r\nx-api_key: mine\r\nX_API-KEY: mine\r\n",
            "Authorization: Basic eDp5\r\nConnection: authorization\r\n",
            "Connection: X-Api-Key, Authorization\r\n",
            "Connection: close, Authorization, Host, Content-Length, X-Api-Key\r\n",
            "Connection: keep-alive\r\nConnection: AUTHORIZATION\r\nConnection: x-api-key\r\n",
            "",
        ];
        for fields in own {
            let head = format!(
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\n{fields}Content-Length: 5\r\n\r\nhello"
            );
            assert_eq!(both.ask(Way::Tunnel, head).json()["body"], "hello", "{fields}");
        }
        let requests = both.origin(Way::Tunnel).requests();
        assert_eq!(requests.len(), own.len());
        for request in &requests {
            has_only_ours(request, &bearer, &key);
            assert_eq!(request.header("host"), Some("api.example.com"));
            assert_eq!(request.text(), "hello");
            let twins = request.head.fields.iter().filter(|field| field.name.contains('_'));
            assert_eq!(twins.count(), 0, "{request:?}");
            assert!(!String::from_utf8_lossy(&request.head.raw).contains("mine"), "{request:?}");
        }
        for secret in [&bearer[7..], &key] {
            assert_secret_absent(both.gateway.output(), secret);
        }
        let audit = both.audited(own.len());
        assert!(audit.iter().all(|line| line["injected"].as_array().map(Vec::len) == Some(2)));
    });
}

#[test]
fn curl_cannot_bring_its_own() {
    isolated(|| {
        let world = world!();
        let bearer = format!("Bearer {}", canary(40));
        let both = injecting(&world, json!({"Authorization": bearer}));
        let answer = both
            .gateway
            .curl("https://api.example.com/")
            .argument("--user")
            .argument("me:mine")
            .header("authorization", "Bearer mine")
            .header("Connection", "Authorization")
            .run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let request = &both.origin(Way::Tunnel).requests()[0];
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    });
}

#[test]
fn leaves_what_is_not_injected_as_the_client_sent_it() {
    isolated(|| {
        let key = canary(40);
        let both = injecting(&world!(), json!({"X-Api-Key": key}));
        let head = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer own\r\n\
                    X-Api-Keys: a\r\nX_Other: b\r\nCookie: c=1; d=2\r\nCookie: e=3\r\n\r\n";
        assert_eq!(both.ask(Way::Tunnel, head).status, 200);
        let request = &both.origin(Way::Tunnel).requests()[0];
        for (name, values) in [
            ("authorization", &["Bearer own"][..]),
            ("x-api-key", &[key.as_str()]),
            ("x-api-keys", &["a"]),
            ("x_other", &["b"]),
            ("cookie", &["c=1; d=2; e=3"]),
        ] {
            assert_eq!(request.head.values(name), values, "{request:?}");
        }
    });
}

#[test]
fn the_more_specific_entry_wins_then_the_later() {
    isolated(|| {
        let values: Vec<String> = (0..6).map(|_| canary(24)).collect();
        let environment = json!({"network": {"allowlist": [
            {"domain": "api.example.com", "transform": {"X-One": values[0], "X-Two": values[1]}},
            {"domain": "api.example.com", "transform": {"X-Two": values[2]}},
            {"domain": "*.example.com",
                "transform": [{"X-One": values[3]}, {"X-Two": values[3], "X-Three": values[4]}]},
            {"domain": "api.example.com", "paths": ["/other"], "transform": {"X-One": values[5]}},
            {"domain": "*", "transform": {"X-Three": values[5], "X-Four": values[5]}},
            {"domain": "a.ok.example.test"},
        ]}});
        let world = world!();
        let elsewhere = world.https("a.ok.example.test").start();
        let both = BothWays::start(&world, environment, scripts::echo);
        for (path, one) in [("@/", &values[0]), ("@/other", &values[5])] {
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\nX-Four: own\r\n\r\n");
            assert_eq!(both.ask(Way::Tunnel, head).status, 200);
            let requests = both.origin(Way::Tunnel).requests();
            let request = requests.last().expect("it was answered");
            let wanted = [
                ("x-one", one),
                ("x-two", &values[2]),
                ("x-three", &values[4]),
                ("x-four", &values[5]),
            ];
            for (name, value) in wanted {
                assert_eq!(request.head.values(name), [value.as_str()], "{path} {name}");
            }
        }
        // What is set for one name is set for that name.
        assert_eq!(both.gateway.curl("https://a.ok.example.test/").run().status, 200);
        for value in &values[..5] {
            assert_secret_absent(elsewhere.raw(), value);
        }
        assert_eq!(elsewhere.requests()[0].header("x-four"), Some(values[5].as_str()));
    });
}

#[test]
fn follows_no_redirect_with_it() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let evil = world.https("evil.example.test").start();
        let entry = json!({"domain": "api.example.com", "transform": {"X-Key": secret}});
        for location in
            ["https://evil.example.test/", "http://api.example.com/", "//evil.example.test/"]
        {
            let both = BothWays::start(&world, json!({"network": {"allowlist": [entry]}}), || {
                scripts::respond(format!(
                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\n\
                     Refresh: 0; url={location}\r\nContent-Length: 0\r\n\r\n"
                ))
            });
            let answer = both.ask(Way::Tunnel, "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!((answer.status, answer.header("location")), (307, Some(location)));
            let refresh = format!("0; url={location}");
            assert_eq!(answer.header("refresh"), Some(refresh.as_str()));
            assert_eq!(both.origin(Way::Forward).connections(), 0);
        }
        assert_eq!(evil.connections(), 0);
    });
}

#[test]
fn refuses_trace_where_something_is_injected() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let trace = "TRACE @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
        let both = injecting(&world, json!({"X-Key": secret}));
        let answer = both.ask(Way::Tunnel, trace);
        assert_eq!((answer.status, answer.header("outgate-reason")), (405, Some("trace_refused")));
        assert_eq!(both.origin(Way::Tunnel).connections(), 0);
        assert_secret_absent(&answer.body, &secret);
        both.audited(1);

        let free = injecting(&world, json!({}));
        assert_eq!(free.ask(Way::Tunnel, trace).json()["method"], "TRACE");
    });
}
