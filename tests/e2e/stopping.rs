//! Does an end cost no more than it must, and is the next start there at once?

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use outgate_tests::client::RunningCurl;
use outgate_tests::prelude::*;

const API: &str = "api.example.com";
const OPEN: &str = "open.example.com";
/// The namespace is the test's own, and so are its ports.
const LISTEN: &str = "127.0.0.1:18080";
/// A gateway is back within this, also on a busy machine.
const BACK: Duration = Duration::from_secs(2);

/// Short, long and upgraded exchanges, by their paths.
fn answer(connection: &mut Connection) {
    while let Some(request) = connection.request() {
        let sent = match request.target.as_str() {
            "/long" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n";
                connection.send(head)
                    && (0..40).all(|_| {
                        connection.pause(Duration::from_millis(50));
                        connection.send("x")
                    })
            }
            "/events" => connection.send(scripts::ok(r#"{"decision": "allow"}"#)),
            _ => connection.send(scripts::ok("short")),
        };
        if !sent {
            return;
        }
    }
}

fn configuration() -> String {
    let hooks = network::folder().join("hooks.json");
    let hook = json!({"type": "http", "url": format!("https://{API}/events")});
    let every_call = json!({"all": {"pre_tool_execution": [{"matcher": "*", "hooks": [hook]}]}});
    fs::write(&hooks, every_call.to_string()).expect("the test's folder is writable");
    format!("[limits]\ndrain = \"5s\"\n[hooks]\nfile = {hooks:?}\n")
}

/// Asks on one connection until the gateway closes it between two requests; how many were answered.
fn ask_on_one_connection(address: SocketAddr, ca: &Path) -> usize {
    let tunnel = RawClient::connect(address, ca).connect_tunnel("api.example.com:443");
    let mut client = tunnel.tls(&Hello::to(API));
    for answered in 0.. {
        client.send(format!("GET / HTTP/1.1\r\nHost: {API}\r\n\r\n"));
        match client.try_read_response("GET") {
            Ok(response) => {
                assert_eq!((response.status, response.text().as_str()), (200, "short"));
                if response.header("connection") == Some("close") {
                    return answered + 1;
                }
            }
            // A request that crossed with the close was not begun: RFC 9112 9.6 lets it be lost.
            Err(ReadFault::Closed | ReadFault::Reset { .. }) => return answered,
            Err(fault) => panic!("a request failed: {fault}"),
        }
    }
    unreachable!("the gateway closes it")
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, BACK)
}

/// Asks by a new connection each time until the gateway takes none; how many were answered.
fn ask_by_new_connections(address: SocketAddr, stopped: &AtomicBool) -> usize {
    let ask = format!("GET http://{OPEN}/ HTTP/1.1\r\nHost: {OPEN}\r\nConnection: close\r\n\r\n");
    for answered in 0.. {
        let Ok(mut client) = connect(address) else { return answered };
        let mut answer = Vec::new();
        let _ = client.write_all(ask.as_bytes()).and_then(|()| client.read_to_end(&mut answer));
        if answer.is_empty() {
            // Nobody had accepted it when the listening socket was closed.
            assert!(stopped.load(Ordering::Relaxed), "a connection was lost before the stop");
            return answered;
        }
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("short"), "{text}");
    }
    unreachable!("the gateway ends")
}

fn websocket(gateway: &Gateway) -> RawClient {
    let mut socket = gateway.client().connect_tunnel("a.ok.example.test:443");
    socket = socket.tls(&Hello::to("a.ok.example.test"));
    let upgraded = socket.exchange(
        "GET / HTTP/1.1\r\nHost: a.ok.example.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(upgraded.status, 101);
    socket
}

#[test]
fn a_stop_under_load_fails_nothing_that_had_begun_and_leaves_the_ports_to_the_next() {
    isolated(|| {
        let world = world!();
        world.name(OPEN, "11.22.33.77");
        let _api = world.https(API).script(answer).start();
        let _open = world.http(OPEN).script(answer).start();
        let _socket = world.https("a.ok.example.test").script(scripts::websocket_echo()).start();
        let entries = [API, OPEN, "a.ok.example.test"].map(|name| json!({"domain": name}));
        let environment =
            json!({"environment_id": "e1", "network": {"allowlist": entries.to_vec()}});
        let state = network::folder().join("kept");
        let builder = world.gateway_builder().environment(&environment).state(&state);
        let builder = builder.listen(LISTEN).configuration(&configuration());
        let mut gateway = builder.clone().start();
        let (address, ca) = (gateway.explicit(), gateway.ca().to_owned());

        let mut socket = websocket(&gateway);
        let stopped = AtomicBool::new(false);
        let (answered, long) = thread::scope(|scope| {
            let (ca, stopped) = (&ca, &stopped);
            let kept = (0..4).map(|_| scope.spawn(move || ask_on_one_connection(address, ca)));
            let kept: Vec<_> = kept.collect();
            let new = (0..4).map(|_| scope.spawn(move || ask_by_new_connections(address, stopped)));
            let new: Vec<_> = new.collect();
            thread::sleep(Duration::from_secs(1));
            let long = [(); 3].map(|()| gateway.curl("https://api.example.com/long").start());
            let begun = |curl: &RunningCurl| !curl.body_so_far().is_empty();
            assert!(wait_until(Duration::from_secs(10), || long.iter().all(begun)));
            let event = json!({"tool_call": {"name": "view_file", "args": {}}});
            let hook = gateway.api("POST", "/v1/environments/e1/hooks/pre_tool_execution", &event);
            assert_eq!(hook.json()["outcomes"][0]["outcome"], "allow", "{hook:?}");
            stopped.store(true, Ordering::Relaxed);
            gateway.terminate();
            let answered: Vec<usize> = kept
                .into_iter()
                .chain(new)
                .map(|client| client.join().expect("no request that had begun failed"))
                .collect();
            (answered, long)
        });
        assert!(answered.iter().all(|answered| *answered > 0), "{answered:?}");
        socket.send("ping");
        assert_eq!(socket.read_exact(4), b"ping", "a WebSocket has the time of the drain too");
        for curl in long {
            assert_eq!(curl.wait().text(), "x".repeat(40));
        }
        assert_eq!(gateway.wait(), 0);
        assert!(socket.is_closed());
        let answered: usize = answered.iter().sum();
        let audit = gateway.audit();
        let good = audit.iter().filter(|line| line["kind"] == "request" && line["status"] == 200);
        // And the hook's own request.
        assert_eq!(good.count(), answered + 3 + 1);

        let restarted = Instant::now();
        let next = builder.start();
        assert!(restarted.elapsed() < BACK, "{:?}", restarted.elapsed());
        assert_eq!(next.curl("https://api.example.com/").run().text(), "short");
    });
}

/// Sends a new value and waits for no answer.
fn rotate_and_leave(state: &Path, value: &str) -> UnixStream {
    let key = fs::read_to_string(state.join("management.key")).expect("the key is there");
    let body = json!({"token": value}).to_string();
    let mut stream = UnixStream::connect(state.join("management.sock")).expect("it listens");
    let request = format!(
        "PATCH /v1beta/credentials/key HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len(),
    );
    stream.write_all(request.as_bytes()).expect("it takes a request");
    stream
}

#[test]
fn killed_while_a_credential_changes_it_is_back_with_the_old_or_the_new_and_with_its_sockets() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let state = network::folder().join("kept");
        let socket = network::folder().join("one.sock");
        let listener = |bind: &str| {
            format!("[[listener]]\nkind = \"explicit\"\nbind = \"{bind}\"\nenvironment = \"e1\"\n")
        };
        let file = listener(LISTEN) + &listener(&format!("unix:{}", socket.display()));
        let entry = json!({"domain": API, "credential": "key"});
        let environment = json!({"environment_id": "e1", "network": {"allowlist": [entry]}});
        let builder = world.gateway_builder().environment(&environment).state(&state);
        let builder = builder.configuration(&file).listeners_from_configuration();
        let mut gateway = builder.clone().start();
        let stem = canary(32);
        let credential = json!({"id": "key", "type": "bearer_token", "token": format!("{stem}-0")});
        assert_eq!(gateway.api("POST", "/v1beta/credentials", &credential).status, 200);
        let listen = gateway.explicit();
        let mut old = 0;
        for round in 0..10 {
            let under_way = [(); 3].map(|()| gateway.curl("https://api.example.com/").start());
            let sent = rotate_and_leave(&state, &format!("{stem}-{}", old + 1));
            thread::sleep(Duration::from_millis(round * 3));
            gateway.kill();
            assert!(connect(listen).is_err(), "while it is down nothing passes");
            assert!(UnixStream::connect(&socket).is_err() && socket.exists(), "a stale socket");
            drop(sent);
            under_way.into_iter().for_each(RunningCurl::kill);
            let before = api.requests().len();

            let restarted = Instant::now();
            gateway = builder.clone().start();
            assert!(restarted.elapsed() < BACK, "{:?}", restarted.elapsed());
            UnixStream::connect(&socket).expect("the stale socket was replaced");
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
            let requests = api.requests();
            let sent = requests[before..].last().and_then(|last| last.header("authorization"));
            let value = sent.and_then(|sent| sent.strip_prefix(&format!("Bearer {stem}-")));
            let value = value.and_then(|number| number.parse().ok());
            assert!(value == Some(old) || value == Some(old + 1), "{sent:?} after {old}");
            old = value.unwrap_or(old);
        }
    });
}
