//! Does an origin that is slow or silent meet every limit, and does a client wait no longer?

use std::time::Instant;

use outgate_tests::prelude::*;

/// A limit of half a second has been met within this, also on a busy machine.
const IN_TIME: Duration = Duration::from_secs(4);

fn limited(world: &World, limits: &str) -> Gateway {
    world
        .gateway_builder()
        .configuration(&format!("[limits]\n{limits}\n"))
        .environment(&json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}))
        .start()
}

/// Asks for `url`; the gateway must answer with this reason, in time, and say it in its one line.
fn refused(gateway: &Gateway, url: &str, status: u16, reason: &str) -> String {
    let started = Instant::now();
    let answer = gateway.curl(url).run();
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    let told = if answer.status == 0 { answer.connect_status } else { answer.status };
    assert_eq!((told, answer.reason()), (status, Some(reason)), "{answer:?}");
    let audit = gateway.wait_audit(1);
    assert_eq!(audit.len(), 1, "{audit:#?}");
    assert_eq!((&audit[0]["reason"], &audit[0]["status"]), (&json!(reason), &json!(status)));
    format!("{} {}", answer.text(), audit[0]["error"].as_str().expect("why, in a sentence"))
}

#[test]
fn an_address_that_never_answers_is_given_up() {
    isolated(|| {
        let world = world!();
        let _hole = Blackhole::start("11.22.33.44:443");
        let gateway = limited(&world, "connect = \"500ms\"");
        let said = refused(&gateway, "https://api.example.com/", 502, "origin_connect");
        assert!(said.contains("in time") && said.contains("500ms"), "{said}");
    });
}

#[test]
fn an_address_that_refuses_is_told_as_such() {
    isolated(|| {
        let world = world!();
        let gateway = limited(&world, "connect = \"5s\"");
        let said = refused(&gateway, "https://api.example.com/", 502, "origin_connect");
        assert_eq!(said.matches("refused").count(), 2, "in the answer and in the line: {said}");
    });
}

#[test]
fn a_family_that_leads_nowhere_stalls_nobody() {
    isolated(|| {
        let world = world!();
        world.dns.name("api.example.com", &["2606:4700::99", "11.22.33.44"]);
        let _hole = Blackhole::start("[2606:4700::99]:443");
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let _api = world.https("api.example.com").respond(closing).start();
        let mut gateway = limited(&world, "happy_eyeballs = \"100ms\"");
        // Each by a connection of its own.
        for _ in 0..5 {
            let answer =
                gateway.curl("https://api.example.com/").header("Connection", "close").run();
            assert_eq!(answer.status, 200);
        }
        let connects: Vec<_> = gateway
            .final_audit()
            .iter()
            .filter_map(|line| line["milliseconds"]["connect"].as_f64())
            .collect();
        assert_eq!(connects.len(), 5);
        // The hole comes first each time. A busy machine may take longer now and then.
        assert!(connects.iter().all(|took| *took >= 100.0), "{connects:?}");
        assert!(connects.iter().any(|took| *took < 300.0), "{connects:?}");
    });
}

#[test]
fn a_handshake_that_an_origin_never_answers_is_given_up() {
    isolated(|| {
        let world = world!();
        let silent = world.silent("11.22.33.44:443");
        let gateway = limited(&world, "origin_handshake = \"500ms\"");
        refused(&gateway, "https://api.example.com/", 502, "origin_tls");
        assert_eq!(silent.connections(), 1);
    });
}

#[test]
fn an_answer_that_never_begins_is_504() {
    isolated(|| {
        let world = world!();
        let script = |connection: &mut Connection| while !connection.bytes().is_empty() {};
        let api = world.https("api.example.com").script(script).start();
        let gateway = limited(&world, "response_head = \"500ms\"");
        refused(&gateway, "https://api.example.com/", 504, "origin_timeout");
        assert!(api.wait_closed(), "the connection is of no more use");
        assert_eq!(api.connections(), 1, "and the request was not sent again");
    });
}

#[test]
fn a_body_may_take_longer_than_every_limit_as_long_as_it_moves() {
    isolated(|| {
        let world = world!();
        let stream =
            [scripts::ok("")[..17].to_vec(), b"Content-Length: 12\r\n\r\n".to_vec()].concat();
        let _api = world
            .https("api.example.com")
            .script(move |connection| {
                if connection.request().is_some() && connection.send(&stream) {
                    for _ in 0..12 {
                        connection.pause(Duration::from_millis(250));
                        connection.send("x");
                    }
                }
            })
            .start();
        let limits = "response_head = \"1s\"\nidle_tunnel = \"1s\"\nidle_keep_alive = \"1s\"\n\
                      connect = \"1s\"\nrequest_head = \"1s\"\nclient_handshake = \"1s\"";
        let gateway = limited(&world, limits);
        let answer = gateway.curl("https://api.example.com/").run();
        assert_eq!((answer.status, answer.text().as_str()), (200, "xxxxxxxxxxxx"), "{answer:?}");
    });
}

#[test]
fn a_name_that_no_server_answers_for_is_given_up() {
    isolated(|| {
        let world = world!();
        world.dns.reply("api.example.com", &Reply::silence());
        let gateway = limited(&world, "dns = \"500ms\"");
        refused(&gateway, "https://api.example.com/", 502, "origin_dns");
    });
}

#[test]
fn an_unused_connection_to_an_origin_is_closed() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let gateway = limited(&world, "idle_keep_alive = \"1s\"");
        for _ in 0..2 {
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        }
        assert_eq!(api.connections(), 1, "the control: it is used again before");
        let all_ended = || api.records().iter().all(|record| record.ended());
        assert!(wait_until(Duration::from_secs(12), all_ended));
        let none = limited(&world, "idle_upstream = 0");
        for _ in 0..2 {
            assert_eq!(none.curl("https://api.example.com/").run().status, 200);
        }
        assert_eq!(api.connections(), 3);
    });
}

#[test]
fn an_upload_does_not_wait_for_ever_for_an_origins_100() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let gateway = limited(&world, "continue_wait = \"300ms\"");
        let started = Instant::now();
        let curl = gateway.curl("https://api.example.com/").header("Expect", "100-continue");
        let answer = curl.argument("--expect100-timeout").argument("15").body("abc").run();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(api.requests()[0].body, b"abc");
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(300) && took < IN_TIME, "{took:?}");
    });
}

#[test]
fn an_answers_head_has_no_more_bytes_and_headers_than_it_may() {
    isolated(|| {
        let world = world!();
        let answer = |fields: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
        let long = format!("X: {}\r\n", "x".repeat(90_000));
        for (fields, status) in
            [("X: 1\r\n".repeat(5), 200), ("X: 1\r\n".repeat(20), 502), (long, 502)]
        {
            let _api = world.https("api.example.com").respond(answer(&fields)).start();
            let gateway = limited(&world, "request_head_bytes = 8192\nheaders = 10");
            let seen = gateway.curl("https://api.example.com/").run();
            assert_eq!(seen.status, status, "{seen:?}");
        }
    });
}

#[test]
fn a_drain_ends_what_does_not_end_by_itself() {
    isolated(|| {
        let world = world!();
        let script = scripts::respond_after(Duration::from_secs(30), scripts::ok("late"));
        let api = world.https("api.example.com").script(script).start();
        let mut gateway = limited(&world, "drain = \"1s\"");
        let waiting = gateway.curl("https://api.example.com/").start();
        assert_eq!(api.wait_requests(1).len(), 1);
        let started = Instant::now();
        assert_eq!(gateway.stop(), 0);
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(900) && took < IN_TIME, "{took:?}");
        assert_ne!(waiting.wait().exit_code, 0);
        assert_eq!(gateway.audit().len(), 1);
    });
}
