//! Was what each server read what was judged, and was it judged once?

use std::collections::BTreeMap;
use std::thread;

use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;

use crate::readings::{Readings, Whole};
use crate::servers::{Server, Servers};
use crate::{cases, streams};

/// An answer comes long before, also on a busy machine; what waits longer waits for bytes that
/// never come.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the gateway keeps of a path in its audit.
const PATH_BYTES: usize = 512;

const STRICT: &str = Server::Strict.name();

/// A gateway with all servers behind it.
pub(crate) struct Scene {
    gateway: Gateway,
    servers: Servers,
    /// What is injected into each request.
    value: String,
}

/// What the gateway says of one server's requests, by method and path.
#[derive(Default)]
struct Judged {
    /// Read to the end, and answered by the program behind the server.
    answered: Count,
    /// Sent up, and answered by the server itself.
    refused: Count,
    /// Sent up in part, until it turned out to be malformed: never to be read as a whole.
    cut: Count,
    /// Left by the client before its answer had come.
    left: Count,
}

type Key = (String, String);
type Count = BTreeMap<Key, usize>;

/// How a test went, for whoever reads its output.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests that each server read, over both ports.
    pub(crate) read: BTreeMap<&'static str, usize>,
    /// That a server refused itself.
    pub(crate) refused: usize,
    /// That the gateway cut on their way up.
    pub(crate) cut: usize,
    /// That the client gave up.
    pub(crate) left: usize,
    /// That the gateway refused.
    pub(crate) denied: usize,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let world = world!();
        let servers = Servers::start(&world);
        let value = canary(32);
        let entry = |server: Server| {
            json!({"domain": server.name(), "transform": {"X-Injected": value},
                   "allow_plaintext": true})
        };
        let list = Server::ALL.map(entry);
        let gateway = world.gateway(json!({"network": {"allowlist": list}}));
        Scene { gateway, servers, value }
    }

    /// Sends all of them, each on a connection of its own, to every server by both ways.
    pub(crate) fn send(&self, cases: &[Vec<u8>]) {
        thread::scope(|scope| {
            for server in Server::ALL {
                for way in Way::ALL {
                    scope.spawn(move || {
                        for (number, case) in cases.iter().enumerate() {
                            self.send_one(server, way, number, case);
                        }
                    });
                }
            }
        });
    }

    /// Sends streams of HTTP/2, each on a connection of its own, to every server.
    pub(crate) fn send_streams(&self, asked: &[streams::Asked]) {
        thread::scope(|scope| {
            for server in Server::ALL {
                scope.spawn(move || {
                    for (number, one) in asked.iter().enumerate() {
                        streams::send(&self.gateway, server.name(), number, one);
                    }
                });
            }
        });
    }

    fn send_one(&self, server: Server, way: Way, number: usize, case: &[u8]) {
        let mut client = self.gateway.client();
        if way == Way::Tunnel {
            let tunnel = client.connect_tunnel(&format!("{}:443", server.name()));
            client = tunnel.tls(&Hello::to(server.name()));
        }
        let mut client = client.read_timeout(PATIENCE);
        client.send(cases::written(case, number, server, way));
        // However it ends: what was read is what counts.
        drop(client.read_to_end());
    }

    /// Sends a request past the gateway, as one that was smuggled would come.
    pub(crate) fn stray(&self, server: Server) {
        let address = format!("{}:80", server.address()).parse().expect("an address");
        let mut client = RawClient::connect(address, self.gateway.ca());
        let (name, value) = (server.name(), &self.value);
        let fields = format!("Host: {name}\r\nX-Injected: {value}\r\nConnection: close\r\n");
        let answer = client.exchange(format!("GET /stray HTTP/1.1\r\n{fields}\r\n"));
        assert_eq!(answer.status, 299, "{server:?}");
    }

    /// Drains the gateway and compares.
    pub(crate) fn check(mut self) -> Tally {
        let audit = self.drain();
        let mut tally = Tally::default();
        for port in [80, 443] {
            for server in Server::ALL {
                self.compare(&audit, server, port, &mut tally);
            }
        }
        tally
    }

    /// Drains the gateway; what it has judged.
    pub(crate) fn drain(&mut self) -> Vec<Value> {
        self.gateway.final_audit()
    }

    /// Compares one server's readings on one port with what was judged.
    pub(crate) fn compare(&self, audit: &[Value], server: Server, port: u16, tally: &mut Tally) {
        let due = Judged::of(audit, Server::Strict, port, &mut Tally::default());
        let strict = self.wait_readings(Server::Strict, port, &due).whole;
        let judged = Judged::of(audit, server, port, tally);
        let readings = self.wait_readings(server, port, &judged);
        let at = format!("{server:?} on port {port}");
        judged.assert_read(&readings, &at);
        assert_same(server, &readings.whole, &strict, &judged);
        self.assert_honest(&readings.whole, server, &at);
        *tally.read.entry(server.name()).or_default() += readings.whole.len();
    }

    /// Some write down what they have read only after they have answered.
    fn wait_readings(&self, server: Server, port: u16, judged: &Judged) -> Readings {
        let due = total(&judged.answered);
        let look = || Readings::of(&self.servers, server, port);
        wait_until(SOON, || look().whole.len() >= due);
        look()
    }

    /// Each under its own name, with what is injected, once.
    fn assert_honest(&self, whole: &[Whole], server: Server, at: &str) {
        for one in whole {
            let host = one.host.iter().map(String::as_str).collect::<Vec<_>>();
            assert_eq!(host, [server.name()], "{at}: {one:?}");
            assert_eq!(one.injected, [self.value.as_str()], "{at}: {one:?}");
        }
    }
}

impl Judged {
    fn of(audit: &[Value], server: Server, port: u16, tally: &mut Tally) -> Judged {
        let mut judged = Judged::default();
        for line in audit {
            if line["domain"] != server.name() || line["port"] != port || line["kind"] != "request"
            {
                continue;
            }
            if line.get("address").is_none() {
                tally.denied += 1;
                continue;
            }
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let key = (text("method"), text("path"));
            let (count, told) = match (line.get("error"), line["verdict"] == "deny") {
                (None, false) if line["status"] == 299 => (&mut judged.answered, None),
                (None, _) => (&mut judged.refused, Some(&mut tally.refused)),
                (Some(_), true) => (&mut judged.cut, Some(&mut tally.cut)),
                (Some(_), false) => (&mut judged.left, Some(&mut tally.left)),
            };
            *count.entry(key).or_default() += 1;
            if let Some(told) = told {
                *told += 1;
            }
        }
        judged
    }

    /// Every request that a server read was judged, and every one that it answered was read.
    fn assert_read(&self, readings: &Readings, at: &str) {
        let mut read = Count::new();
        for one in &readings.whole {
            *read.entry((one.method.clone(), path(&one.target))).or_default() += 1;
        }
        for key in read.keys().chain(self.answered.keys()) {
            let (read, answered, left) =
                (of(&read, key), of(&self.answered, key), of(&self.left, key));
            let fits = answered <= read && read <= answered + left;
            assert!(
                fits,
                "{at} read {key:?} {read} times, judged were {answered}, and {left} left"
            );
        }
        let mut refused = Count::new();
        for line in &readings.refused {
            *refused.entry(of_line(line)).or_default() += 1;
        }
        for (key, count) in &refused {
            let most = of(&self.refused, key) + of(&self.cut, key) + of(&self.left, key);
            assert!(*count <= most, "{at} was sent {key:?} {count} times, judged were {most}");
        }
    }
}

/// Byte for byte what the strict one read, but for the names. It may be less: what a server refuses
/// itself may end the client's connection, with what stands behind it.
fn assert_same(server: Server, whole: &[Whole], strict: &[Whole], judged: &Judged) {
    let mut by_strict = BTreeMap::<_, usize>::new();
    for Whole { method, target, body, .. } in strict {
        let one = (method.as_str(), target.as_bytes().to_vec(), body.clone());
        *by_strict.entry(one).or_default() += 1;
    }
    let neutral = |text: &[u8]| cases::replace(text, &server.name()[..3], &STRICT[..3]);
    let mut alone = Count::new();
    for Whole { method, target, body, .. } in whole {
        let one = (method.as_str(), neutral(target.as_bytes()), neutral(body));
        match by_strict.get_mut(&one).filter(|times| **times > 0) {
            Some(times) => *times -= 1,
            None => *alone.entry((method.clone(), path(target))).or_default() += 1,
        }
    }
    for (key, times) in alone {
        assert!(times <= of(&judged.left, &key), "{server:?} alone read {key:?} so");
    }
}

fn of(count: &Count, key: &Key) -> usize {
    count.get(key).copied().unwrap_or(0)
}

fn total(count: &Count) -> usize {
    count.values().sum()
}

/// Method and path of a request line; of anything else, what nobody has judged.
fn of_line(line: &str) -> Key {
    let mut parts = line.split(' ');
    let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    (method.to_owned(), path(target))
}

/// As the audit has it.
fn path(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    path[..path.floor_char_boundary(PATH_BYTES)].to_owned()
}
