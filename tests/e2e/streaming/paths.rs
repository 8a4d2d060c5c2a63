//! Does a request arrive as it was written, whatever way the client opened its tunnel?

use outgate_tests::prelude::*;

use crate::answered_by;

#[test]
fn takes_a_client_hello_that_comes_with_connect() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        let mut client = both.gateway.client();
        let pending = client.begin_tls(&Hello::to("api.example.com"));
        let connect = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n";
        client.send([connect.as_bytes(), &pending.client_hello].concat());
        assert_eq!(client.try_read_response("CONNECT").map(|answer| answer.status), Ok(200));
        let mut client = client.complete_tls(pending).expect("the handshake goes on");
        let request = "GET /early HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
        assert_eq!(client.exchange(request).json()["target"], "/early");
        both.audited(1);
    });
}

#[test]
fn serves_plain_http_inside_connect_as_plain_http() {
    isolated(|| {
        let entry = json!({"domain": "api.example.com", "paths": ["/a"]});
        let environment = json!({"network": {"allowlist": [entry]}});
        let both = BothWays::start(&world!(), environment, scripts::echo);
        let mut client = both.gateway.client().connect_tunnel("api.example.com:80");
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(client.exchange(request("/a")).json()["target"], "/a");
        let refused = client.exchange(request("/b"));
        assert_eq!(
            (refused.status, refused.header("outgate-reason")),
            (403, Some("path_not_allowed"))
        );
        // In one segment with CONNECT, too.
        let mut client = both.gateway.client();
        let connect = "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n";
        client.send([connect, &request("/a")].concat());
        assert_eq!(client.try_read_response("CONNECT").map(|answer| answer.status), Ok(200));
        assert_eq!(client.read_response().json()["target"], "/a");
        assert_eq!(both.origin(Way::Forward).requests().len(), 2);
        both.audited(3);
    });
}

#[test]
fn forwards_targets_byte_for_byte() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        let targets = [
            "/@scope%2fname",
            "/o/a%2Fb%2Fc",
            "/%7Euser/%41?q=%2f&r=a+b%20c",
            "//evil.example.test/",
            "/a/./b/../c//d",
            "/a;b=c,d:e@f!$&'()*+",
            "/?",
            "/a?b?c=d/../e",
            "/%",
            "/a|b\"c{d}",
        ];
        for target in targets {
            for way in Way::ALL {
                let head = format!("GET @{target} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
                assert_eq!(both.ask(way, head).json()["target"], target, "{way}");
            }
        }
        for way in Way::ALL {
            assert_eq!(both.origin(way).requests().len(), targets.len(), "{way}");
        }
    });
}

#[test]
fn judges_the_very_path_that_it_sends() {
    isolated(|| {
        let entry = json!({"domain": "api.example.com", "paths": ["/public/*"]});
        let environment = json!({"network": {"allowlist": [entry]}});
        let both = BothWays::start(&world!(), environment, scripts::echo);
        let head = |path: &str| format!("GET @{path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        let ambiguous = [
            "/public/../secret",
            "/public/%2e%2e/secret",
            "/public/%2E./secret",
            "/public/./x",
            "/public//x",
            "/public/..\\secret",
            "/public/%5c..%5csecret",
            "/public/%00",
            "/public/..%2fsecret",
        ];
        for path in ambiguous {
            both.refuses(head(path), 400, "ambiguous_path");
        }
        // `%2F` is never a separator, so this is one segment; an encoded letter is that letter.
        for path in ["/public/x", "/public/a%2fsecret", "/%70ublic/x", "/public/x?q=/../"] {
            for way in Way::ALL {
                assert_eq!(both.ask(way, head(path)).json()["target"], path, "{way}");
            }
        }
        for path in ["/secret", "/public/a/b", "/PUBLIC/x", "/public", "/"] {
            both.refuses(head(path), 403, "path_not_allowed");
        }
        both.audited(2 * (9 + 4 + 5));
    });
}
