//! Does `/metrics` tell what audit tells, whatever clients send?

use super::*;

fn key(gateway: &Gateway) -> String {
    fs::read_to_string(gateway.state().join("management.key")).expect("the key").trim().to_owned()
}

#[test]
fn metrics_need_the_key() {
    isolated(|| {
        let gateway = world!().gateway(json!({"network": "disabled"}));
        let ask = |lines: &str| {
            let request =
                format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{lines}Connection: close\r\n\r\n");
            gateway.management(request)
        };
        assert_eq!(ask("").status, 401);
        assert_eq!(ask("x-goog-api-key: nonsense\r\n").status, 401);
        let answer = ask(&format!("x-goog-api-key: {}\r\n", key(&gateway)));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    });
}

#[test]
fn counts_are_those_of_the_audit() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).respond(scripts::ok("12345")).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
        for _ in 0..3 {
            assert_eq!(gateway.curl("https://api.example.com/").body("abc").run().status, 200);
        }
        for _ in 0..2 {
            assert_eq!(gateway.curl("https://evil.example.test/").run().connect_status, 403);
        }
        assert_eq!(gateway.curl("http://evil.example.test/").run().status, 403);
        assert_eq!(gateway.wait_audit(6).len(), 6);
        let metric = |series: &str| gateway.metric(series);
        let counted = || metric("outgate_requests_total{verdict=\"allow\",reason=\"none\"}") == 3.0;
        assert!(wait_until(Duration::from_secs(5), counted));
        let denied = "{verdict=\"deny\",reason=\"domain_not_allowed\"}";
        assert_eq!(metric(&format!("outgate_requests_total{denied}")), 1.0);
        assert_eq!(metric(&format!("outgate_tunnels_total{denied}")), 2.0);
        assert_eq!(metric("outgate_bytes_total{direction=\"up\"}"), 9.0);
        assert_eq!(metric("outgate_bytes_total{direction=\"down\"}"), 15.0);
        assert_eq!(metric("outgate_request_duration_seconds_count"), 4.0);
        assert_eq!(metric("outgate_environments"), 1.0);
        assert_eq!(metric("outgate_problems"), 0.0);
    });
}

#[test]
fn nothing_that_clients_choose_becomes_a_series() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
        let send = |round: usize| {
            for number in 0..20 {
                let name = format!("n{round}-{number}.example.test");
                let mut client = gateway.client();
                let method = format!("M{}", "A".repeat(number));
                client.exchange(format!(
                    "{method} http://{name}/{number}{round} HTTP/1.1\r\nHost: {name}\r\n\r\n"
                ));
                client.exchange(format!(
                    "GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\
                     Proxy-Authorization: Basic {}\r\n\r\n",
                    STANDARD.encode(format!("env{round}-{number}:x"))
                ));
                let refused = gateway.client().try_connect_tunnel(&format!("{name}:443"));
                assert!(refused.is_err());
            }
            gateway.wait_audit((round + 1) * 60);
        };
        let series = || {
            let text = gateway.metrics();
            let names = text.lines().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name);
            let mut names: Vec<_> = names.map(str::to_owned).collect();
            names.sort();
            names
        };
        send(0);
        let denied = "outgate_tunnels_total{verdict=\"deny\",reason=\"domain_not_allowed\"}";
        let counted =
            |count: f64| wait_until(Duration::from_secs(5), || gateway.metric(denied) == count);
        assert!(counted(20.0));
        let before = series();
        (1..5).for_each(send);
        assert!(counted(100.0));
        assert_eq!(series(), before);
    });
}
