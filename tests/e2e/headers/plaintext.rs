//! Does a secret go over anything but verified TLS to the very name and port it is for?

use outgate_tests::prelude::*;

use crate::injecting;

const REQUEST: &str = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

#[test]
fn refuses_plain_http_where_something_would_be_injected() {
    isolated(|| {
        let secret = canary(40);
        let world = world!();
        let other_port = world.silent("11.22.33.44:8443");
        let both = injecting(&world, json!({"Authorization": secret}));
        let absolute = both.ask(Way::Forward, REQUEST);
        let inside = |authority: &str| {
            let mut client = both.gateway.client().connect_tunnel(authority);
            let host = authority.strip_suffix(":80").unwrap_or(authority);
            client.exchange(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        };
        let plain_443 = inside("api.example.com:443");
        let plain_80 = inside("api.example.com:80");
        for answer in [&absolute, &plain_443, &plain_80] {
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (403, Some("injection_needs_tls")), "{answer:?}");
            assert_secret_absent(&answer.body, &secret);
        }
        let refused = both.gateway.client().try_connect_tunnel("api.example.com:8443");
        let reason = refused.err().map(|answer| answer.reason.clone());
        assert_eq!(reason.as_deref(), Some("port_not_allowed"));
        assert_eq!(other_port.connections(), 0);
        assert_eq!(both.origin(Way::Forward).connections(), 0);
        assert_eq!(both.origin(Way::Tunnel).connections(), 0);

        assert_eq!(both.ask(Way::Tunnel, REQUEST).status, 200);
        let request = &both.origin(Way::Tunnel).requests()[0];
        assert_eq!(request.header("authorization"), Some(secret.as_str()));
        assert_secret_absent(both.gateway.output(), &secret);
        both.audited(5);
    });
}

#[test]
fn puts_it_on_plain_http_where_every_injecting_entry_says_so() {
    isolated(|| {
        let world = world!();
        let (one, two) = (canary(40), canary(40));
        let exact = json!({"domain": "api.example.com", "transform": {"X-One": one}, "allow_plaintext": true});
        let mut wide = json!({"domain": "*.example.com", "transform": {"X-Two": two}});
        let both = BothWays::start(
            &world,
            json!({"network": {"allowlist": [exact, wide]}}),
            scripts::echo,
        );
        let answer = both.ask(Way::Forward, REQUEST);
        assert_eq!(
            (answer.status, answer.header("outgate-reason")),
            (403, Some("injection_needs_tls"))
        );
        assert_eq!(both.origin(Way::Forward).connections(), 0);
        drop(both);

        wide["allow_plaintext"] = json!(true);
        let both = BothWays::start(
            &world,
            json!({"network": {"allowlist": [exact, wide]}}),
            scripts::echo,
        );
        assert_eq!(both.ask(Way::Forward, REQUEST).status, 200);
        let request = &both.origin(Way::Forward).requests()[0];
        assert_eq!(request.header("x-one"), Some(one.as_str()));
        assert_eq!(request.header("x-two"), Some(two.as_str()));
    });
}

#[test]
fn absolute_https_on_the_forward_port_is_sent_over_tls() {
    isolated(|| {
        let secret = canary(40);
        let both = injecting(&world!(), json!({"Authorization": secret}));
        let answer = both
            .gateway
            .client()
            .exchange("GET https://api.example.com/a HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(answer.status, 200);
        let request = &both.origin(Way::Tunnel).requests()[0];
        assert_eq!(request.header("authorization"), Some(secret.as_str()));
        assert_eq!(both.origin(Way::Forward).connections(), 0);
    });
}
