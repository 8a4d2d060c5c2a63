//! Is there exactly one audit line for every request over HTTP/2 too?

use outgate_tests::client::RunningCurl;
use outgate_tests::prelude::*;
use serde_json::Value;

fn environment() -> Value {
    json!({"environment_id": "e1", "network": {"allowlist": [
        {"domain": "api.example.com", "methods": ["GET", "POST"]},
    ]}})
}

/// Answers `/download` without end, everything else never.
fn restless(world: &World) -> Origin {
    let script = |connection: &mut Connection| {
        let Some(head) = connection.head() else { return };
        if head.start_line.contains("/download") {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
            while connection.send([b'x'; 65536]) {}
        }
        while !connection.bytes().is_empty() {}
    };
    world.https("api.example.com").script(script).start()
}

/// The one line that a step has added.
fn one_more(gateway: &Gateway, count: &mut usize) -> Value {
    *count += 1;
    let audit = gateway.wait_audit(*count);
    assert_eq!(audit.len(), *count, "{audit:#?}");
    let line = audit[*count - 1].clone();
    assert_eq!(
        (&line["kind"], &line["http"]["client"]),
        (&json!("request"), &json!("2")),
        "{line}"
    );
    line
}

#[test]
fn a_line_tells_which_leg_spoke_what_and_a_refusal_reads_the_same() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").respond(scripts::ok("12345")).start();
        let mut gateway = world.gateway(environment());
        let answer = gateway.curl("https://api.example.com/a?q=1").http2().body("abc").run();
        assert_eq!(answer.status, 200, "{answer:?}");
        let refused = gateway.curl("https://api.example.com/b").http2().method("PUT").run();
        assert_eq!((refused.status, refused.reason()), (403, Some("method_not_allowed")));
        assert_eq!(refused.header("content-type"), Some("application/json"));
        assert_eq!(refused.json()["error"]["details"][0]["reason"], "method_not_allowed");
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 2, "{audit:#?}");
        assert_eq!(audit[0]["http"], json!({"client": "2", "origin": "1.1"}));
        for (field, value) in [
            ("path", json!("/a")),
            ("status", json!(200)),
            ("bytes_up", json!(3)),
            ("bytes_down", json!(5)),
        ] {
            assert_eq!(audit[0][field], value, "{field}");
        }
        assert_eq!((&audit[1]["verdict"], &audit[1]["path"]), (&json!("deny"), &json!("/b")));
    });
}

#[test]
fn a_client_that_vanishes_leaves_one_line_and_no_connection() {
    isolated(|| {
        let world = world!();
        let api = restless(&world);
        let mut gateway = world.gateway(environment());
        let mut count = 0;
        for (path, body) in [("/download", ""), ("/wait", ""), ("/upload", "abc")] {
            let mut curl = gateway.curl(&format!("https://api.example.com{path}")).http2();
            if !body.is_empty() {
                curl = curl.body(body.repeat(5_000_000));
            }
            let running = curl.start();
            assert!(wait_until(Duration::from_secs(5), || api.connections() == count + 1));
            std::thread::sleep(Duration::from_millis(300));
            running.kill();
            let line = one_more(&gateway, &mut count);
            assert_eq!((&line["path"], &line["verdict"]), (&json!(path), &json!("allow")));
            assert!(line["error"].is_string(), "{line}");
            assert!(api.wait_closed(), "the origin is not kept busy for nobody");
        }
        assert_eq!(gateway.final_audit().len(), count);
    });
}

#[test]
fn a_drain_and_a_stop_leave_one_line_for_each_stream() {
    isolated(|| {
        let world = world!();
        let api = restless(&world);
        for (number, at_once) in [false, true].into_iter().enumerate() {
            let mut gateway = world
                .gateway_builder()
                .configuration("[limits]\ndrain = \"1s\"\n")
                .environment(&environment())
                .start();
            let start = |_| gateway.curl("https://api.example.com/wait").http2().start();
            let waiting: Vec<RunningCurl> = (0..3).map(start).collect();
            let expected = (number + 1) * 3;
            assert!(wait_until(Duration::from_secs(5), || {
                api.connections() == expected && api.records().iter().all(|r| r.received() > 0)
            }));
            gateway.terminate();
            if at_once {
                assert!(gateway.wait_log("draining"));
                gateway.terminate();
            }
            assert_eq!(gateway.wait(), 0);
            let audit = gateway.audit();
            assert_eq!(audit.len(), 3, "{audit:#?}");
            assert!(audit.iter().all(|line| line["kind"] == "request"), "{audit:#?}");
            waiting.into_iter().for_each(RunningCurl::kill);
        }
    });
}

#[test]
fn short_requests_lose_nothing_to_a_drain() {
    isolated(|| {
        let world = world!();
        let slow = scripts::respond_after(Duration::from_millis(400), scripts::ok("whole"));
        let api = world.https("api.example.com").script(slow).start();
        let mut gateway = world.gateway(environment());
        let start = |_| gateway.curl("https://api.example.com/").http2().start();
        let running: Vec<RunningCurl> = (0..5).map(start).collect();
        assert!(wait_until(Duration::from_secs(5), || api.wait_requests(5).len() == 5));
        assert_eq!(gateway.final_audit().len(), 5);
        for answer in running.into_iter().map(RunningCurl::wait) {
            assert_eq!((answer.status, answer.text().as_str()), (200, "whole"), "{answer:?}");
        }
    });
}
