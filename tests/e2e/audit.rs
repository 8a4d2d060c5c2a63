//! Is there exactly one audit line for every request and tunnel, however it ends?

use std::sync::mpsc;

use outgate_tests::prelude::*;
use serde_json::Value;

const API: &str = "api.example.com:443";

fn only_api() -> Value {
    json!({"environment_id": "e1", "network": {"allowlist": [{"domain": "api.example.com"}]}})
}

/// An intercepted session with api.example.com.
fn session(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel(API).tls(&Hello::to("api.example.com"))
}

/// The one line that a step has added.
fn one_more(gateway: &Gateway, count: &mut usize) -> Value {
    *count += 1;
    let audit = gateway.wait_audit(*count);
    assert_eq!(audit.len(), *count, "{audit:#?}");
    audit[*count - 1].clone()
}

fn text<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_else(|| panic!("no {field} in {line}"))
}

#[test]
fn tells_of_an_allowed_request_with_every_field() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").respond(scripts::ok("12345")).start();
        let mut gateway = world.gateway(json!({"environment_id": "e1", "network": {"allowlist": [
            {"domain": "other.example.com"},
            {"domain": "api.example.com", "transform": [{"X-Team": "blue"}, {"X-Env": "prod"}]},
        ]}}));
        let url = "https://api.example.com/v1/things?page=2#end";
        assert_eq!(gateway.curl(url).body("abc").run().status, 200);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 1, "{audit:#?}");
        let line = &audit[0];
        for (field, value) in [
            ("kind", json!("request")),
            ("environment_id", json!("e1")),
            ("ingress", json!("explicit")),
            ("client", json!("127.0.0.1")),
            ("method", json!("POST")),
            ("scheme", json!("https")),
            ("domain", json!("api.example.com")),
            ("port", json!(443)),
            ("path", json!("/v1/things")),
            ("verdict", json!("allow")),
            ("entry", json!(1)),
            ("injected", json!(["x-team", "x-env"])),
            ("status", json!(200)),
            ("bytes_up", json!(3)),
            ("bytes_down", json!(5)),
            ("address", json!("11.22.33.44:443")),
            ("http", json!({"client": "1.1", "origin": "1.1"})),
        ] {
            assert_eq!(line[field], value, "{field} in {line}");
        }
        for absent in ["reason", "error", "credentials", "reflected"] {
            assert_eq!(line.get(absent), None, "{line}");
        }
        assert!(text(line, "time").ends_with('Z') && !text(line, "id").is_empty(), "{line}");
        let time = |name: &str| line["milliseconds"][name].as_f64().expect("a number");
        assert!(time("connect") <= time("tls") && time("tls") <= time("first_byte"), "{line}");
        assert!(time("first_byte") <= time("total") && time("total") < 20_000.0, "{line}");
    });
}

#[test]
fn writes_a_line_for_each_request_and_none_for_the_tunnel_they_came_by() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let mut gateway = world.gateway(only_api());
        let mut client = session(&gateway);
        for path in ["/1", "/2", "/3"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            assert_eq!(client.exchange(request).status, 200);
        }
        let mismatch = client.exchange("GET /4 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n");
        assert_eq!(mismatch.status, 421);
        drop(client);
        let audit = gateway.final_audit();
        let told: Vec<_> =
            audit.iter().map(|line| (text(line, "kind"), text(line, "path"))).collect();
        assert_eq!(told, ["/1", "/2", "/3", "/4"].map(|path| ("request", path)));
        assert_eq!(text(&audit[3], "reason"), "name_mismatch");
        assert_eq!(
            (text(&audit[3], "domain"), &audit[3]["port"]),
            ("api.example.com", &json!(443))
        );
    });
}

#[test]
fn writes_one_line_for_a_tunnel_that_no_request_came_by() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let mut gateway = world.gateway(only_api());
        let mut count = 0;
        let refused = gateway.client().try_connect_tunnel("evil.example.test:443").err();
        assert_eq!(refused.expect("a refusal").status, 403);
        let line = one_more(&gateway, &mut count);
        assert_eq!((text(&line, "verdict"), &line["status"]), ("deny", &json!(403)));
        assert_eq!((text(&line, "domain"), &line["port"]), ("evil.example.test", &json!(443)));
        let ways: [fn(RawClient); 5] = [
            drop,
            RawClient::reset,
            |mut client| {
                let hello = client.begin_tls(&Hello::to("api.example.com")).client_hello;
                client.send(&hello[..hello.len() / 2]);
            },
            |client| drop(client.tls(&Hello::to("api.example.com"))),
            |client| {
                let mut client = client.tls(&Hello::to("api.example.com"));
                client.send("GET / HTTP/1.1\r\nHost: api.exa");
                client.reset();
            },
        ];
        for vanish in ways {
            vanish(gateway.client().connect_tunnel(API));
            let line = one_more(&gateway, &mut count);
            assert_eq!((text(&line, "kind"), text(&line, "verdict")), ("tunnel", "allow"));
            assert_eq!(
                (text(&line, "domain"), text(&line, "method")),
                ("api.example.com", "CONNECT")
            );
            assert!(!text(&line, "error").is_empty());
        }
        let other = Hello::to("evil.example.test");
        assert!(gateway.client().connect_tunnel(API).try_tls(&other).is_err());
        let line = one_more(&gateway, &mut count);
        assert_eq!((text(&line, "verdict"), text(&line, "reason")), ("deny", "name_mismatch"));
        assert_eq!((gateway.final_audit().len(), api.connections()), (count, 0));
    });
}

#[test]
fn writes_one_line_however_the_client_vanishes() {
    isolated(|| {
        let world = world!();
        let _api = world
            .https("api.example.com")
            .script(|connection| {
                let Some(head) = connection.head() else { return };
                match head.start_line.split(' ').nth(1) {
                    Some("/download") => {
                        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
                        while connection.send([b'x'; 65536]) {}
                    }
                    _ => while !connection.bytes().is_empty() {},
                }
            })
            .start();
        let mut gateway = world.gateway(only_api());
        let mut count = 0;
        let host = "HTTP/1.1\r\nHost: api.example.com\r\n";

        let mut client = session(&gateway);
        client.send(format!("PUT /upload {host}Content-Length: 1000\r\n\r\n"));
        client.send([b'x'; 600]);
        std::thread::sleep(Duration::from_millis(300));
        client.reset();
        let line = one_more(&gateway, &mut count);
        assert_eq!((text(&line, "path"), &line["bytes_up"]), ("/upload", &json!(600)), "{line}");

        let mut client = session(&gateway);
        client.send(format!("GET /download {host}\r\n"));
        client.read_exact(100_000);
        client.reset();
        let line = one_more(&gateway, &mut count);
        assert_eq!((text(&line, "path"), &line["status"]), ("/download", &json!(200)));
        assert!(line["bytes_down"].as_u64() >= Some(90_000), "{line}");
        assert!(text(&line, "error").contains("client left"), "{line}");

        let mut client = session(&gateway);
        client.send(format!("GET /wait {host}\r\n"));
        std::thread::sleep(Duration::from_millis(300));
        drop(client);
        let line = one_more(&gateway, &mut count);
        assert_eq!((text(&line, "path"), text(&line, "verdict")), ("/wait", "allow"));
        assert!(!text(&line, "error").is_empty());

        let waiting = gateway.curl("https://api.example.com/wait").start();
        std::thread::sleep(Duration::from_millis(500));
        waiting.kill();
        assert_eq!(text(&one_more(&gateway, &mut count), "path"), "/wait");
        assert_eq!(gateway.final_audit().len(), count);
    });
}

#[test]
fn writes_one_line_however_the_origin_dies() {
    isolated(|| {
        let world = world!();
        let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        let mut origins = Vec::new();
        for (number, script) in [
            scripts::reset_at_once(),
            scripts::reset_after(half),
            scripts::truncated(100, 4),
            scripts::respond_and_close("not HTTP\r\n\r\n"),
            scripts::respond_and_close(""),
            scripts::respond_after(Duration::from_secs(5), scripts::ok("late")),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("n{number}.example.test");
            world.name(&name, &format!("11.22.44.{number}"));
            origins.push(world.https(&name).script(script).start());
        }
        let mut gateway = world
            .gateway_builder()
            .configuration("[limits]\nresponse_head = \"700ms\"\n")
            .environment(&json!({"network": {"allowlist": [{"domain": "*.example.test"}]}}))
            .start();
        let mut count = 0;
        for (number, status, reason) in [
            (0, 502, Some("origin_protocol")),
            (1, 200, None),
            (2, 200, None),
            (3, 502, Some("origin_protocol")),
            (4, 502, Some("origin_protocol")),
            (5, 504, Some("origin_timeout")),
        ] {
            let answer = gateway.curl(&format!("https://n{number}.example.test/")).run();
            assert_eq!((answer.status, answer.reason()), (status, reason), "{number}: {answer:?}");
            assert_eq!(answer.exit_code == 0, status != 200, "a cut answer is seen as one");
            let line = one_more(&gateway, &mut count);
            // It was permitted: the origin failed, not the policy.
            assert_eq!((text(&line, "verdict"), &line["status"]), ("allow", &json!(status)));
            assert_eq!(line["reason"].as_str(), reason, "{line}");
            assert!(!text(&line, "error").is_empty());
        }
        assert_eq!(gateway.final_audit().len(), count);
    });
}

#[test]
fn writes_every_line_when_it_drains_and_when_it_is_stopped_at_once() {
    isolated(|| {
        let world = world!();
        let (told, begun) = mpsc::channel();
        let _api = world
            .https("api.example.com")
            .script(move |connection| {
                if connection.request().is_some() {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nbegun");
                    told.send(()).expect("the test waits");
                    connection.pause(Duration::from_secs(20));
                }
            })
            .start();
        for at_once in [false, true] {
            let mut gateway = world
                .gateway_builder()
                .configuration("[limits]\ndrain = \"1s\"\n")
                .environment(&only_api())
                .start();
            let mut clients: Vec<_> = (0..3).map(|_| session(&gateway)).collect();
            for client in &mut clients {
                client.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
                begun.recv_timeout(Duration::from_secs(10)).expect("the origin was asked");
            }
            let idle = gateway.client().connect_tunnel(API);
            gateway.terminate();
            if at_once {
                assert!(gateway.wait_log("draining"));
                gateway.terminate();
            }
            assert_eq!(gateway.wait(), 0);
            drop((clients, idle));
            let audit = gateway.audit();
            let kind = |kind| audit.iter().filter(|line| line["kind"] == kind).count();
            assert_eq!((kind("request"), kind("tunnel"), audit.len()), (3, 1, 4), "{audit:#?}");
        }
    });
}
