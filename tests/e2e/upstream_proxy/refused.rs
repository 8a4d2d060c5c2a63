//! What if the proxy does not open the tunnel?

use super::*;

const URL: &str = "https://api.example.com/";

#[test]
fn a_user_and_a_password_go_to_the_proxy_and_nowhere_else() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let password = canary(24);
        let wanted = basic(&format!("gate way:{password}"));
        let proxy = UpstreamProxy::at(PROXY)
            .answer(move |head| match head.contains(&wanted) {
                true => Reply::Tunnel,
                false => Reply::Say(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\n\
                      Proxy-Authenticate: Basic realm=\"corp\"\r\n\r\nsecret page"
                        .to_vec(),
                ),
            })
            .start();
        let with = |userinfo: &str| {
            let file = upstream(&format!("http://{userinfo}10.9.8.7:3128"), "");
            let builder = world.gateway_builder().configuration(&file);
            builder.environment(&allowing(&[API])).start()
        };
        let good = with(&format!("gate%20way:{password}@"));
        assert_eq!(good.curl(URL).run().status, 200);
        assert_eq!(good.curl(URL).body("x").run().status, 200);
        let raw = origin.raw();
        assert_secret_absent(&raw, &password);
        assert!(!String::from_utf8_lossy(&raw).to_lowercase().contains("proxy-auth"));
        let wrong = canary(24);
        for (gateway, sent) in [(with(&format!("gate%20way:{wrong}@")), 1), (with(""), 1)] {
            let before = proxy.connections();
            let answer = gateway.curl(URL).run();
            assert_eq!((answer.status, answer.reason()), (502, Some("origin_connect")));
            let text = answer.text();
            assert!(text.contains("the upstream proxy answered 407"), "{text}");
            assert!(!text.contains("secret page") && !text.contains("10.9.8.7"), "{text}");
            let line = &gateway.wait_audit(1)[0];
            let error = line["error"].as_str().expect("an error");
            assert!(error.contains("10.9.8.7:3128 answered 407: check the user"), "{error}");
            assert_eq!(proxy.connections() - before, sent, "asked once");
            for secret in [&password, &wrong] {
                assert_secret_absent(format!("{text}{}", gateway.output()), secret);
            }
        }
        assert_secret_absent(good.output(), &password);
    });
}

#[test]
fn whatever_else_it_answers_is_502_and_nothing_is_sent() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let plain = world.http(API).start();
        for (answer, says) in [
            ("HTTP/1.1 403 Forbidden\r\n\r\nthe proxy's page", "answered 403"),
            ("HTTP/1.1 502 Bad\r\nContent-Length: 4\r\n\r\npage", "answered 502"),
            ("HTTP/1.1 504 Late\r\n\r\n", "answered 504"),
            ("HTTP/1.1 302 Found\r\nLocation: https://login.corp/\r\n\r\n", "answered 302"),
            ("SSH-2.0-what\r\n", "not HTTP"),
            ("", "without an answer"),
            ("HTTP/1.1 200 OK\r\nA: b\r\n", "without an answer"),
        ] {
            let proxy = UpstreamProxy::at(PROXY).answer(|_| Reply::Say(answer.into())).start();
            let environment = json!({"network": {"allowlist": [
                {"domain": API}, {"domain": API, "ports": [2222], "protocol": "tcp"},
            ]}});
            let gateway = behind(&world, &environment).start();
            for url in [URL, "http://api.example.com/"] {
                let refused = gateway.curl(url).run();
                let said = (refused.status, refused.reason());
                assert_eq!(said, (502, Some("origin_connect")), "{answer:?} {url}");
                assert!(refused.text().contains(says), "{} {says}", refused.text());
                assert!(!refused.text().contains("page"), "{}", refused.text());
            }
            let tunnel = gateway.client().try_connect_tunnel("api.example.com:2222").err();
            let tunnel = tunnel.expect("no way to it");
            assert_eq!(tunnel.header("outgate-reason"), Some("origin_connect"), "{answer:?}");
            assert!(proxy.connections() >= 3);
        }
        assert_eq!((origin.connections(), plain.connections()), (0, 0));
    });
}

#[test]
fn what_never_answers_or_never_ends_is_given_up_in_time() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let huge = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(1 << 20));
        let drip = b"HTTP/1.1 200 OK\r\n\r\n".repeat(9)[..17].to_vec();
        for (reply, says) in [
            (Reply::Silence, "in time"),
            (
                Reply::Drip([drip, b"X: y".repeat(999)].concat(), Duration::from_millis(30)),
                "in time",
            ),
            (Reply::Say(huge.into_bytes()), "over 8192 bytes"),
        ] {
            let given = reply.clone();
            let proxy = UpstreamProxy::at(PROXY).answer(move |_| given.clone()).start();
            let file = upstream(&format!("http://{PROXY}"), "[limits]\nconnect = \"1500ms\"");
            let builder = world.gateway_builder().configuration(&file);
            let gateway = builder.environment(&allowing(&[API])).start();
            let begun = std::time::Instant::now();
            let answer = gateway.curl(URL).run();
            assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
            assert_eq!(answer.reason(), Some("origin_connect"), "{reply:?}");
            assert!(answer.text().contains(says), "{says}: {}", answer.text());
            assert!(proxy.connections() >= 1);
        }
        assert_eq!(origin.connections(), 0);
    });
}

#[test]
fn a_proxy_that_is_not_there_is_told_without_its_address() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        for (host, says) in
            [("10.9.8.7:3128", "can't be reached"), ("proxy.nowhere.test:1", "can't be looked up")]
        {
            let file = upstream(&format!("http://{host}"), "");
            let builder = world.gateway_builder().configuration(&file);
            let gateway = builder.environment(&allowing(&[API])).start();
            let answer = gateway.curl(URL).run();
            assert_eq!((answer.status, answer.reason()), (502, Some("origin_connect")), "{host}");
            assert!(answer.text().contains(says), "{}", answer.text());
            assert!(!answer.text().contains("10.9.8.7") && !answer.text().contains("nowhere"));
            let error = gateway.wait_audit(1)[0]["error"].to_string();
            assert!(error.contains(host), "{error}");
        }
        assert_eq!(origin.connections(), 0, "never directly instead");
    });
}

#[test]
fn a_proxy_over_tls_is_verified_before_it_is_told_anything() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        world.name("proxy.corp.test", "10.9.8.7");
        let password = canary(24);
        let file = upstream(&format!("https://user:{password}@proxy.corp.test:3128"), "");
        let builder = world.gateway_builder().configuration(&file).environment(&allowing(&[API]));
        let leaf = || world.pki.leaf("proxy.corp.test");
        for (identity, status) in [
            (leaf().issue(), 200),
            (leaf().by_unknown_root().issue(), 502),
            (world.pki.leaf(API).issue(), 502),
        ] {
            let proxy = UpstreamProxy::at(PROXY).tls(identity).start();
            let gateway = builder.clone().start();
            let answer = gateway.curl(URL).run();
            assert_eq!(answer.status, status, "{answer:?}");
            let told = proxy.heads();
            if status == 200 {
                assert!(told[0].contains(&basic(&format!("user:{password}"))), "{told:?}");
            } else {
                assert_eq!(answer.reason(), Some("origin_connect"));
                assert_eq!((proxy.connections(), told.len()), (1, 0));
            }
        }
        assert_eq!(origin.connections(), 1);
    });
}

fn basic(both: &str) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(both);
    format!("Proxy-Authorization: Basic {text}\r\n")
}
