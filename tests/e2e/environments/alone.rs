//! Does one environment get anything of another's?

use super::*;

#[test]
fn no_connection_to_an_origin_serves_two_environments() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let pair = Pair::start(&world, "");
        for (number, connections) in [(1, 1), (1, 1), (2, 2), (1, 2), (2, 2)] {
            pair.ask(number);
            assert_eq!(api.connections(), connections, "e{number}");
        }
    });
}

#[test]
fn no_session_with_an_origin_is_resumed_by_another_environment() {
    isolated(|| {
        let world = world!();
        let once = scripts::respond_and_close(scripts::ok("once"));
        let api = world.https(API).script(once).start();
        let pair = Pair::start(&world, "");
        [1, 1, 2, 2].into_iter().for_each(|number| pair.ask(number));
        let resumed = api
            .records()
            .into_iter()
            .map(|record| record.handshake().expect("TLS").expect("it was completed").resumed);
        assert_eq!(resumed.collect::<Vec<_>>(), [false, true, false, true]);
    });
}

#[test]
fn no_session_with_the_gateway_is_resumed_by_another_environment() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let pair = Pair::start(&world, "");
        for hello in [Hello::to(API), Hello::to(API).tls12()] {
            let hello = hello.remembering();
            let resumed = [1, 1, 2, 2, 1].map(|number| {
                let mut client = pair.tunnel(number, &hello);
                assert_eq!(client.exchange(GET).status, 200);
                client.resumed()
            });
            // Asked by e2, the client forgets what it had of e1.
            assert_eq!(resumed, [false, true, false, true, false]);
        }
    });
}

#[test]
fn places_of_one_are_not_taken_by_another() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let pair = Pair::start(&world, "[limits]\nconnections = 2\n");
        let open = [pair.tunnel(1, &Hello::to(API)), pair.tunnel(1, &Hello::to(API))];
        let (refused, _) = pair.connect(1, API);
        assert_eq!(refused.header("outgate-reason"), Some("too_many_connections"));
        pair.ask(2);
        assert_eq!(pair.gateway.metric("outgate_connections{environment=\"e1\"}"), 2.0);
        drop(open);
        let free = || pair.gateway.metric("outgate_connections{environment=\"e1\"}") == 0.0;
        assert!(wait_until(Duration::from_secs(5), free));
        pair.ask(1);
    });
}

#[test]
fn handshakes_of_refusals_of_one_are_not_spent_by_another() {
    isolated(|| {
        let world = world!();
        let more =
            "[refusals]\nconnect = \"inside\"\n[limits]\nrefused_handshakes_per_second = 1\n";
        let pair = Pair::start(&world, more);
        let evil = "evil.example.test";
        let is_told_why = |number| {
            let (answer, client) = pair.connect(number, evil);
            assert_eq!(answer.status, 200, "{answer:?}");
            client.try_tls(&Hello::to(evil)).is_ok_and(|mut client| {
                let request = format!("GET / HTTP/1.1\r\nHost: {evil}\r\n\r\n");
                let reason = client.exchange(request);
                reason.header("outgate-reason") == Some("domain_not_allowed")
            })
        };
        // On a slow machine a second may begin in between.
        assert!((0..50).any(|_| !is_told_why(1)), "e1 spends what it has");
        assert!(is_told_why(2), "e2 has its own");
    });
}

#[test]
fn two_files_of_one_environment_are_one_too_many() {
    isolated(|| {
        let world = world!();
        let same = json!({"environment_id": "e1", "network": {"allowlist": []}});
        let folder = network::folder();
        let second = folder.join("second.json");
        fs::write(&second, same.to_string()).expect("writable");
        let builder = world.gateway_builder().environment(&same);
        let failed = builder.argument("--environment").argument(&second).try_start().err();
        let failed = failed.expect("whose policy would it be?");
        assert_eq!(failed.code, Some(1));
        assert!(failed.output.contains("environment e1 is in"), "{}", failed.output);
    });
}

/// CVE-2025-66479: what is empty or misspelt opens nothing.
#[test]
fn empty_means_nothing_and_only_absent_means_the_default() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let with = |text: &str| world.gateway_builder().environment_text(text).start();
        for network in [
            "[]",
            "null",
            "{}",
            "\"\"",
            "0",
            "false",
            "\"enabled\"",
            "[null]",
            "{\"allowlist\": null}",
            "{\"allowlist\": {}}",
            "{\"allowlist\": \"\"}",
            "{\"allowlist\": [null]}",
            "{\"alowlist\": []}",
            "{\"allowlist\": [\"*\"]}",
            "{\"allowlist\": [], \"denylist\": []}",
        ] {
            let gateway = with(&format!("{{\"network\": {network}}}"));
            assert!(gateway.wait_log("network"), "{network}: no word of what is wrong");
            assert_eq!(
                gateway.curl("https://api.example.com/").run().connect_status,
                403,
                "{network}"
            );
            assert_eq!(gateway.problems().len(), 1, "{network}");
        }
        for nothing in ["{\"allowlist\": []}", "\"disabled\"", "{\"allowlist\": \"disabled\"}"] {
            let gateway = with(&format!("{{\"network\": {nothing}}}"));
            assert_eq!(
                gateway.curl("https://api.example.com/").run().connect_status,
                403,
                "{nothing}"
            );
            assert_eq!(gateway.problems().len(), 0, "{nothing}");
        }
        assert_eq!(api.connections(), 0);
        assert_eq!(with("{}").curl("https://api.example.com/").run().status, 200);
    });
}
