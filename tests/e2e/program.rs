//! Does the program start, speak and end as the contract says?

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use outgate_tests::command::Finished;
use outgate_tests::prelude::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

fn only_api() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": "api.example.com"}]}})
}

fn write(name: &str, text: &str) -> String {
    let path: PathBuf = network::folder().join(name);
    fs::write(&path, text).expect("the test's folder is writable");
    path.display().to_string()
}

/// One sentence for a person on stderr, and nothing on stdout.
fn assert_one_sentence(ended: &Finished, code: i32, said: &str) {
    assert_eq!(ended.code(), code, "{}", ended.stderr);
    assert!(ended.stderr.contains(said), "{said} is not in {}", ended.stderr);
    assert_eq!((ended.stderr.lines().count(), ended.text().as_str()), (1, ""), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn says_where_it_listens_when_every_listener_is_bound() {
    isolated(|| {
        let world = world!();
        let mut gateway = world.gateway(only_api());
        let ready = gateway.ready().clone();
        let state = gateway.state().display().to_string();
        assert_ne!(gateway.explicit().port(), 0);
        assert_eq!(
            ready,
            json!({"event": "ready", "explicit": [gateway.explicit().to_string()], "socks": [],
                   "transparent": [], "dns": [], "management": format!("unix:{state}/management.sock"),
                   "ca": format!("{state}/ca.pem")})
        );
        assert_eq!(gateway.stop(), 0);
        assert_eq!(gateway.output().matches("ready").count(), 1, "one line on stdout");
    });
}

#[test]
fn exit_codes_tell_whose_fault_it_was() {
    isolated(|| {
        let world = world!();
        let occupied = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let taken = occupied.local_addr().expect("it is bound").to_string();
        let state = network::folder().join("state").display().to_string();
        let environment = write("e.json", "{}");
        let serve = |more: &[&str]| {
            let start = ["serve", "--state-dir", &state, "--environment", &environment];
            world.outgate(&[&start[..], more].concat())
        };
        assert_one_sentence(&serve(&["--listen", &taken]), 70, &taken);
        assert_one_sentence(&serve(&["--config", "/nowhere.toml"]), 1, "/nowhere.toml");
        let absent = ["serve", "--state-dir", &state, "--environment", "/nowhere.json"];
        assert_one_sentence(&world.outgate(&absent), 1, "/nowhere.json");
        for (wrong, said) in [
            (&["--listen", "8080"][..], "8080"),
            (&["--lisen", "127.0.0.1:0"], "--lisen"),
            (&["more"], "more"),
        ] {
            let ended = serve(wrong);
            assert_eq!((ended.code(), ended.text().as_str()), (64, ""), "{}", ended.stderr);
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
        }
        assert_eq!(world.outgate(&[]).code(), 64);
        assert_eq!(world.outgate(&["hook", "pre"]).code(), 64, "not built yet, not offered");
        for shown in ["--help", "--version"] {
            let ended = world.outgate(&[shown]);
            assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
            assert!(ended.text().contains("outgate"));
        }
    });
}

#[test]
fn drains_under_load_without_a_failed_request() {
    isolated(|| {
        let world = world!();
        let slow = scripts::respond_after(Duration::from_millis(100), scripts::ok("whole"));
        let _api = world.https("api.example.com").script(slow).start();
        let mut gateway = world.gateway(only_api());
        let stop = Arc::new(AtomicBool::new(false));
        let address = gateway.explicit();
        let ca = gateway.ca().to_owned();
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (stop, ca) = (Arc::clone(&stop), ca.clone());
                thread::spawn(move || ask_until_closed(address, &ca, &stop))
            })
            .collect();
        thread::sleep(Duration::from_millis(1500));
        let long = gateway.curl("https://api.example.com/").start();
        thread::sleep(Duration::from_millis(150));
        gateway.terminate();
        assert!(gateway.wait_log("draining"));
        // The log speaks before the listening sockets are closed.
        let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2));
        let refused = wait_until(Duration::from_secs(2), || connect().is_err());
        assert!(refused, "new clients are refused at once");
        stop.store(true, Ordering::Relaxed);
        let started = Instant::now();
        assert_eq!(gateway.wait(), 0);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(long.wait().text(), "whole");
        let served: usize =
            clients.into_iter().map(|client| client.join().expect("no request failed")).sum();
        assert!(served > 20, "{served}");
        assert_eq!(gateway.audit().len(), served + 1);
        assert!(gateway.audit().iter().all(|line| line["status"] == 200));
    });
}

/// Asks on one connection until the gateway closes it between two requests; how many were answered.
fn ask_until_closed(
    address: std::net::SocketAddr,
    ca: &std::path::Path,
    stop: &AtomicBool,
) -> usize {
    let tunnel = RawClient::connect(address, ca).connect_tunnel("api.example.com:443");
    let mut client = tunnel.tls(&Hello::to("api.example.com"));
    let mut answered = 0;
    loop {
        let sent = client.send(GET);
        match client.try_read_response("GET") {
            Ok(response) => {
                assert_eq!((response.status, response.text().as_str()), (200, "whole"));
                answered += 1;
                if response.header("connection") == Some("close") {
                    return answered;
                }
            }
            // A request that crossed with the close was not begun: RFC 9112 9.6 lets it be lost.
            Err(ReadFault::Closed | ReadFault::Reset { .. }) => return answered,
            Err(fault) => panic!("a request failed ({sent}): {fault}"),
        }
        if stop.load(Ordering::Relaxed) {
            return answered;
        }
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    isolated(|| {
        let world = world!();
        let slow = scripts::respond_after(Duration::from_secs(20), scripts::ok("late"));
        let api = world.https("api.example.com").script(slow).start();
        let mut gateway = world.gateway(only_api());
        let waiting = gateway.curl("https://api.example.com/").start();
        assert_eq!(api.wait_requests(1).len(), 1);
        gateway.terminate();
        assert!(gateway.wait_log("draining") && gateway.is_running());
        let ready = gateway.management("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!((ready.status, &ready.json()["missing"][0]), (503, &json!("draining")));
        let started = Instant::now();
        assert_eq!(gateway.stop(), 0);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        assert_ne!(waiting.wait().exit_code, 0);
        assert_eq!(gateway.audit().len(), 1);
    });
}

#[test]
fn checks_files_and_names_every_problem_with_its_place() {
    isolated(|| {
        let world = world!();
        let good = write("good.json", &only_api().to_string());
        let bad = write(
            "bad.json",
            r#"{"network": {"allowlist": [{"domian": "a.example.com"}, {"domain": "https://b/"}]}}"#,
        );
        let ok = world.outgate(&["check", &good]);
        assert_eq!((ok.code(), ok.text()), (0, format!("{good}: ok\n")), "{}", ok.stderr);
        let found = world.outgate(&["check", &good, &bad, "/nowhere.json"]);
        assert_eq!(found.code(), 1);
        for said in ["good.json: ok", "allowlist[0].domian", "allowlist[1].domain", "/nowhere.json"]
        {
            assert!(found.text().contains(said), "{said} is not in {}", found.text());
        }
        let secret = canary(40);
        let leaky = json!({"network": {"allowlist": [
            {"domain": "a.example.com", "transform": {"Host": secret, "X-Key": format!("{secret}\u{1}")}},
        ]}});
        let leaky = world.outgate(&["check", &write("leaky.json", &leaky.to_string())]);
        assert_eq!(leaky.code(), 1);
        assert_secret_absent(leaky.text() + &leaky.stderr, &secret);
    });
}

#[test]
fn explains_a_verdict_as_the_data_path_gives_it() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let environment = json!({"environment_id": "e1", "network": {"allowlist": [
            {"domain": "api.example.com", "methods": ["GET"], "transform": {"X-Key": secret}},
        ]}});
        let _api = world.https("api.example.com").start();
        let gateway = world.gateway(environment.clone());
        let file = write("e1.json", &environment.to_string());
        for (method, url) in [
            ("GET", "https://api.example.com/"),
            ("PUT", "https://api.example.com/"),
            ("GET", "http://api.example.com/"),
            ("GET", "https://evil.example.test/"),
            ("GET", "https://api.example.com:8443/"),
        ] {
            let said = world.outgate(&["explain", "--json", "--environment", &file, method, url]);
            let verdict: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
            let answer = gateway.curl(url).method(method).run();
            assert_eq!(verdict["reason"].as_str(), answer.reason(), "{method} {url}: {verdict}");
            assert_eq!(said.code() == 0, answer.status == 200, "{method} {url}: {verdict}");
            assert_secret_absent(said.text() + &said.stderr, &secret);
        }
        let said = world.outgate(&["explain", "--environment", &file, "https://api.example.com/"]);
        assert!(said.text().contains("x-key") && said.text().contains("allowlist[0]"));
        let nonsense = world.outgate(&["explain", "--environment", &file, "api.example.com"]);
        assert_one_sentence(&nonsense, 1, "https://");
    });
}

#[test]
fn does_not_start_beside_the_proxy_of_a_service_mesh() {
    isolated(|| {
        let world = world!();
        let outgoing = TcpListener::bind("127.0.0.1:15001").expect("a port is free");
        assert!(world.gateway_builder().environment(&only_api()).try_start().is_ok());
        let incoming = TcpListener::bind("0.0.0.0:15006").expect("a port is free");
        let failed = world.gateway_builder().environment(&only_api()).try_start();
        let failed = failed.err().expect("it doesn't get ready");
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(70), ""));
        assert!(failed.output.contains("the proxy of Istio"), "{}", failed.output);
        assert!(failed.output.contains("sidecar.istio.io/inject"), "{}", failed.output);
        drop((outgoing, incoming));
    });
}
