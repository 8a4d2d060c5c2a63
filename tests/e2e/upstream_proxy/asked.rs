//! What the proxy is asked for.

use super::*;

#[test]
fn the_proxy_is_asked_for_the_judged_address_and_told_nothing_else() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        let secret = canary(20);
        let mut client =
            gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to(API));
        let answer = client.exchange(format!(
            "GET /x HTTP/1.1\r\nHost: {API}\r\nProxy-Authorization: Basic {secret}\r\n\r\n"
        ));
        assert_eq!(answer.status, 200);
        let start = "CONNECT 11.22.33.44:443 HTTP/1.1\r\nHost: 11.22.33.44:443\r\nOutgate-Hop: ";
        let heads = proxy.heads();
        let mark = heads[0].strip_prefix(start).and_then(|rest| rest.strip_suffix("\r\n\r\n"));
        let mark = mark.unwrap_or_else(|| panic!("{heads:?}"));
        assert!(mark.len() == 32 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()), "{mark}");
        let handshake = origin.records()[0].handshake().expect("over").expect("good");
        assert_eq!(handshake.server_name.as_deref(), Some(API));
        assert_eq!(origin.requests()[0].header("proxy-authorization"), None);
        let line = &gateway.wait_audit(1)[0];
        assert_eq!(line["address"], "11.22.33.44:443", "{line}");
        assert_secret_absent(proxy.heads().concat(), &secret);
        assert_secret_absent(gateway.output(), &secret);
    });
}

#[test]
fn a_name_that_leads_to_a_private_address_is_refused_though_the_proxy_would_dial_it() {
    isolated(|| {
        let world = world!();
        let inside = world.silent("10.1.2.3:443");
        let _origin = world.https(API).start();
        world.name("private.example.com", "10.1.2.3");
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&["*.example.com", "10.9.8.7"])).start();
        for url in ["https://private.example.com/", "http://private.example.com/"] {
            let answer = gateway.curl(url).run();
            assert_eq!(answer.reason(), Some("address_not_allowed"), "{url}");
        }
        assert_eq!((proxy.connections(), inside.connections()), (0, 0));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!(proxy.connections(), 1);
    });
}

#[test]
fn the_proxy_s_own_address_stays_shut_to_sandboxes() {
    isolated(|| {
        let world = world!();
        world.name("proxy.example.com", "10.9.8.7");
        let proxy = UpstreamProxy::at(PROXY).start();
        let environment = json!({"network": {"allowlist": [
            {"domain": "proxy.example.com", "ports": [3128]},
        ]}});
        let gateway = behind(&world, &environment).start();
        let answer = gateway.curl("http://proxy.example.com:3128/").run();
        assert_eq!(answer.reason(), Some("address_not_allowed"));
        assert_eq!(proxy.connections(), 0);
    });
}

#[test]
fn an_address_that_the_proxy_can_t_reach_is_followed_by_the_next() {
    isolated(|| {
        let world = world!();
        let mut origin = None;
        world.dns.name(API, &["2a00:11:22::44", "11.22.33.43", "11.22.33.44"]);
        origin.replace(world.https(API).start());
        let proxy = UpstreamProxy::at(PROXY)
            .answer(|head| match head.starts_with("CONNECT 11.22.33.44:") {
                true => Reply::Tunnel,
                false if head.starts_with("CONNECT [2a00:11:22::44]:443 HTTP") => Reply::Silence,
                false => Reply::Say(b"HTTP/1.1 503 No\r\n\r\n".to_vec()),
            })
            .start();
        let gateway = behind(&world, &allowing(&[API])).start();
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        let asked = proxy.asked();
        assert_eq!(asked.last().map(String::as_str), Some("11.22.33.44:443"), "{asked:?}");
        assert_eq!(asked.len(), 3, "{asked:?}");
        assert_eq!(gateway.wait_audit(1)[0]["address"], "11.22.33.44:443");
    });
}

#[test]
fn what_the_proxy_is_not_for_is_reached_directly() {
    isolated(|| {
        let world = world!();
        for (name, address) in [
            ("git.corp.test", "11.22.33.71"),
            ("far.example.com", "11.44.1.2"),
            (API, "11.22.33.44"),
        ] {
            world.name(name, address);
        }
        let origins =
            ["git.corp.test", "far.example.com", API].map(|name| world.https(name).start());
        let proxy = UpstreamProxy::at(PROXY).start();
        let file = upstream(
            &format!("http://{PROXY}"),
            "no_proxy = [\"*.corp.test\", \"11.44.0.0/16\", \"api.example.com:8443\"]",
        );
        let environment = allowing(&["*.corp.test", "*.example.com", "11.44.1.2"]);
        let gateway =
            world.gateway_builder().configuration(&file).environment(&environment).start();
        for (name, asked) in [("git.corp.test", 0), ("far.example.com", 0), (API, 1)] {
            assert_eq!(gateway.curl(&format!("https://{name}/")).run().status, 200, "{name}");
            assert_eq!(proxy.connections(), asked, "{name}");
        }
        assert!(origins.iter().all(|origin| origin.connections() == 1));
    });
}

#[test]
fn connections_are_used_again() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        for _ in 0..3 {
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        }
        assert_eq!(proxy.connections(), 1);
    });
}
