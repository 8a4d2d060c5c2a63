//! Is each of several requests on one connection judged for itself?

use outgate_tests::prelude::*;

use crate::{both_ways, targets};

const INNER: &str = "GET @/inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

#[test]
fn judges_each_of_several_requests_in_one_write() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let entry = json!({"domain": "api.example.com", "paths": ["/allowed/**"],
            "transform": {"X-Key": secret}});
        let environment = json!({"network": {"allowlist": [entry]}});
        let both = BothWays::start(&world, environment, scripts::echo);
        let request =
            |path: &str, host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let all = [
            request("/allowed/1", "api.example.com"),
            request("/allowed/2", "evil.example.test"),
            request("/refused/3", "api.example.com"),
            request("/allowed/4", "api.example.com"),
            "GET /allowed/5 HTTP/1.1\r\nHost : api.example.com\r\n\r\n".to_owned(),
            request("/allowed/6", "api.example.com"),
        ];
        let mut client = both.sent(Way::Tunnel, all.concat());
        let statuses: Vec<u16> = (0..5).map(|_| client.read_response().status).collect();
        assert_eq!(statuses, [200, 421, 403, 200, 400]);
        assert!(client.is_closed());
        let requests = both.origin(Way::Tunnel).requests();
        assert_eq!(targets(&both, Way::Tunnel), ["/allowed/1", "/allowed/4"]);
        assert!(requests.iter().all(|request| request.header("x-key") == Some(&secret)));
        both.audited(5);
    });
}

#[test]
fn judges_each_of_several_requests_of_the_forward_proxy() {
    isolated(|| {
        let both = both_ways();
        let all = "GET http://api.example.com/1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n\
                   GET http://evil.example.test/2 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n\
                   GET http://api.example.com/3 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n\
                   POST http://api.example.com/4 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 3\r\n\r\nabc\
                   GET http://api.example.com/5 HTTP/1.1\r\nHost\r\n\r\n";
        let mut client = both.sent(Way::Forward, all);
        let statuses: Vec<u16> = (0..5).map(|_| client.read_response().status).collect();
        assert_eq!(statuses, [200, 403, 421, 200, 400]);
        assert!(client.is_closed());
        assert_eq!(targets(&both, Way::Forward), ["/1", "/4"]);
        both.audited(5);
    });
}

#[test]
fn judges_what_follows_a_request_in_http_1_0() {
    isolated(|| {
        let both = both_ways();
        let old = |path: &str, connection: &str, host: &str| {
            format!(
                "POST {path} HTTP/1.0\r\nHost: {host}\r\n{connection}Content-Length: 2\r\n\r\nhi"
            )
        };
        let kept = "Connection: keep-alive\r\n";
        let last = INNER.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        for way in Way::ALL {
            let misdirected = old("@/2", kept, "evil.example.test");
            let all = [old("@/1", kept, "api.example.com"), misdirected, last.clone()];
            let bytes = both.sent(way, all.concat()).read_to_end().expect("it ends");
            let text = String::from_utf8_lossy(&bytes);
            let answers: Vec<&str> = text.split("HTTP/1.").skip(1).map(|one| &one[..5]).collect();
            assert_eq!(answers, ["0 200", "0 421", "1 200"], "{way}");
            let all = [old("@/3", "", "api.example.com"), INNER.to_owned()];
            both.sent(way, all.concat()).read_to_end().expect("it ends");
            assert_eq!(targets(&both, way), ["/1", "/inner", "/3"], "{way}");
        }
        both.audited(2 * 4);
    });
}

#[test]
fn reads_nothing_behind_a_request_that_says_close() {
    isolated(|| {
        let both = both_ways();
        let post = "POST @/last HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\
                    Content-Length: 5\r\n\r\nhello";
        for way in Way::ALL {
            let mut client = both.sent(way, [post, INNER].concat());
            assert_eq!(client.read_response().json()["body"], "hello", "{way}");
            assert!(client.is_closed(), "{way}");
            assert_eq!(targets(&both, way), ["/last"], "{way}");
        }
        both.audited(2);
    });
}

#[test]
fn hundreds_of_requests_in_one_write_are_each_answered_in_order() {
    isolated(|| {
        let both = both_ways();
        let kinds = ["GET", "POST", "HEAD", "OTHER", "CHUNKED"];
        let request = |number: usize| match kinds[number % kinds.len()] {
            "POST" => format!(
                "POST @/{number} HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 9000\r\n\r\n{}",
                "b".repeat(9000)
            ),
            "CHUNKED" => format!(
                "POST @/{number} HTTP/1.1\r\nHost: api.example.com\r\n\
                 Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n"
            ),
            "OTHER" => format!("GET @/{number} HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"),
            method => format!("{method} @/{number} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        };
        let many = 300;
        for way in Way::ALL {
            let all: Vec<u8> = (0..many).flat_map(|number| way.write(request(number))).collect();
            let mut client = both.client(way).write_timeout(Duration::from_secs(20));
            // While it writes, nobody reads: all must fit into what waits on the way.
            assert!(client.send(&all), "{way}");
            for number in 0..many {
                let method = kinds[number % kinds.len()];
                let answer = client
                    .try_read_response(method)
                    .unwrap_or_else(|fault| panic!("{way} {number}: {fault}"));
                if method == "OTHER" {
                    assert_eq!(answer.status, 421, "{way} {number}");
                } else if method != "HEAD" {
                    assert_eq!(answer.json()["target"], format!("/{number}"), "{way}");
                }
            }
        }
        let sent = both.origin(Way::Tunnel).requests().len();
        assert_eq!(sent, many - many / kinds.len());
        both.audited(2 * many);
    });
}
