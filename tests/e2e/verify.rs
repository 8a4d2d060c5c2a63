//! Does `outgate verify` say that a sandbox holds, and would it notice if one did not?

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::thread;

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::network::{Neighbour, isolated_for};
use outgate_tests::prelude::*;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

/// Where nothing is refused, many of the prober's questions wait for an answer.
const DEADLINE: Duration = Duration::from_secs(50);

/// Addresses that the prober tries.
const FOREIGN: [&str; 2] = ["192.0.2.1", "[2001:db8::1]"];

/// What each probe must see where nothing is in its way.
const NOTICED: [(&str, &str); 48] = [
    ("proxy-variables", "https_proxy"),
    ("inherited-descriptors", "descriptor 900"),
    ("interfaces", "interface cable"),
    ("raw-ipv4", "192.0.2.1 port 853 was taken"),
    ("raw-ipv6", "2001:db8::1 port 443 was taken"),
    ("host-loopback", "for 127.0.0.1 port"),
    ("host-loopback", "for ::1 port"),
    ("host-loopback", "over UDP was reached"),
    ("host-interfaces", "for 10.20.0.1 port"),
    ("host-interfaces", "10.20.0.1"),
    ("host-interfaces", "over UDP was reached"),
    ("metadata", "169.254.169.254 port 80 was taken"),
    ("unknown-synthetic", "198.18.77.77 port 80 was taken"),
    ("udp", "192.0.2.1:53 answered"),
    ("udp", "over UDP was reached"),
    ("quic", "192.0.2.1:443 answered"),
    ("dns-any-server", "192.0.2.1:53 answered"),
    ("dns-any-server", "2001:db8::1 port 53 was taken"),
    ("doh", "dns.quad9.net port 443 was taken"),
    ("dot", "dns.google port 853 was taken"),
    ("domain-fronting", "stranger.example port 443 was taken"),
    ("foreign-address", "verify.example port 443 was taken"),
    ("packet-sockets", "can be made"),
    ("management", "was reached"),
    ("named-sockets", "/var/tmp/"),
    ("named-sockets", "was reached"),
    ("abstract-sockets", "was reached"),
    ("state-folder", "can be read"),
    ("state-folder", "can be listed"),
    ("state-folder", "can be made"),
    ("state-folder-mask", "behind /proc/self/root"),
    ("operator-files", "closed.json can be read"),
    ("host-temporary-files", "/tmp/"),
    ("host-temporary-files", "/dev/shm/"),
    ("kernel-settings", "ip_forward"),
    ("host-processes", "can be seen"),
    ("host-processes", "the memory of process"),
    ("tracing", "can be traced"),
    ("signals", "can be signalled"),
    ("signals", "the witness's process was reached"),
    ("terminal-input", "in disguise"),
    ("terminal-input", "the witness's terminal was reached"),
    ("terminal-console", "TIOCLINUX"),
    ("privileges", "CapEff"),
    ("privileges", "would run as its owner"),
    ("shared-objects", "shared memory"),
    ("shared-objects", "message queue"),
    ("shared-objects", "key"),
];

fn verify(arguments: &[&str]) -> Finished {
    let state = network::folder().join("state");
    let mut command = Command::new(env!("CARGO_BIN_EXE_outgate"));
    clean(&mut command).arg("verify").arg("--state-dir").arg(state).args(arguments);
    run(&mut command, b"", DEADLINE)
}

fn file(name: &str, text: &str) -> String {
    let path = network::folder().join(name);
    std::fs::write(&path, text).expect("the test's folder is writable");
    path.to_str().expect("its name is text").to_owned()
}

/// The probes that ended as `word`, in order.
fn probes(finished: &Finished, word: &str) -> Vec<String> {
    let text = finished.text();
    let of = |line: &str| line.strip_prefix(word)?.strip_prefix(' ').map(str::to_owned);
    text.lines().filter_map(of).collect()
}

/// All of them, as the page has them.
fn documented() -> Vec<String> {
    let page = include_str!("../../docs/verify.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

fn assert_all_held(finished: &Finished) {
    assert_eq!(finished.code(), 0, "{}{}", finished.text(), finished.stderr);
    assert_eq!(probes(finished, "held"), documented(), "{}", finished.text());
    assert_eq!(finished.text().lines().count(), documented().len());
}

#[test]
fn without_an_environment_all_holds_and_it_says_that_nothing_is_allowed() {
    isolated(|| {
        let finished = verify(&[]);
        assert_all_held(&finished);
        assert!(finished.stderr.contains("nothing can be reached"), "{}", finished.stderr);
    });
}

#[test]
fn all_holds_whatever_an_environment_allows() {
    isolated_for(DEADLINE * 3, || {
        let world = world!();
        let api = world.https("api.example.com").start();
        let environments: [Value; 3] = [
            json!({}),
            json!({"network": {"allowlist": [
                {"domain": "api.example.com", "transform": {"Authorization": "Bearer x"}},
                {"domain": "*"},
                {"domain": "ssh.example.com", "ports": [22], "protocol": "tcp"},
            ]}}),
            json!({"network": "disabled", "sources": [
                {"type": "repository", "source": "https://api.example.com/r", "target": "/r/r"},
                {"type": "inline", "target": "i/i", "content": "x", "read_only": true},
            ]}),
        ];
        for environment in environments {
            let environment = file("env.json", &environment.to_string());
            assert_all_held(&verify(&["--environment", &environment]));
        }
        // It would be where the request for an allowed name goes.
        assert_eq!(api.connections(), 0);
    });
}

/// Takes every connection and ends it; answers every datagram.
fn answer_at(address: &str) {
    let address: SocketAddr = address.parse().expect("an address of this file");
    let tcp = listener(address);
    thread::spawn(move || tcp.incoming().for_each(drop));
    let Ok(udp) = UdpSocket::bind(address) else { return };
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            match udp.recv_from(&mut buffer) {
                Ok((length, from)) => drop(udp.send_to(&buffer[..length], from)),
                // What an earlier answer met.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
}

fn listener(address: SocketAddr) -> TcpListener {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if address.is_ipv6() {
            // Local by a route alone, which is not enough to bind it.
            socket.set_freebind_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(64)?;
        Ok(TcpListener::from(socket))
    };
    listen().unwrap_or_else(|error: std::io::Error| panic!("{address}: {error}"))
}

#[test]
fn without_a_sandbox_every_probe_notices() {
    isolated(|| {
        // An interface whose address is the machine's own.
        let neighbour = Neighbour::new("cable", Ipv4Addr::new(10, 20, 0, 0));
        neighbour.address_here(Ipv4Addr::new(10, 20, 0, 0));
        for address in FOREIGN {
            for port in [53, 443, 853] {
                answer_at(&format!("{address}:{port}"));
            }
        }
        answer_at("169.254.169.254:80");
        answer_at("198.18.77.77:80");
        let mut command = Command::new(env!("CARGO_BIN_EXE_outgate"));
        let state = network::folder().join("state");
        clean(&mut command).args(["verify", "--without-sandbox", "--state-dir"]).arg(state);
        let finished = run(command.env("https_proxy", "http://127.0.0.1:1"), b"", DEADLINE);
        // What leaves by an interface can't be seen where all addresses are local; and there is no
        // gateway that could dial.
        let mut held = vec!["icmp", "other-protocols", "nothing-dialled"];
        if the_kernel_lets_nobody_type() {
            held.insert(2, "terminal-input");
        }
        assert_eq!(probes(&finished, "held"), held, "{}", finished.stderr);
        assert_eq!(probes(&finished, "open").len(), documented().len() - held.len());
        assert_eq!(finished.code(), 1);
        for (probe, what) in NOTICED.iter().filter(|(probe, _)| !held.contains(probe)) {
            let open = format!("{probe} is open: ");
            let mut why = finished.stderr.lines().filter(|line| line.contains(&open));
            assert!(why.any(|line| line.contains(what)), "{probe}, {what}: {}", finished.stderr);
        }
    });
}

/// Kernels may be told to refuse TIOCSTI to everyone (tty_ioctl(4)).
fn the_kernel_lets_nobody_type() -> bool {
    let switch = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    switch.is_ok_and(|switch| switch.trim() == "0")
}

#[test]
fn without_a_sandbox_it_notices_what_leaves_by_an_interface() {
    isolated(|| {
        let neighbour = Neighbour::new("cable", Ipv4Addr::new(10, 20, 0, 0));
        let finished = neighbour.inside(|| verify(&["--without-sandbox"]));
        let open = probes(&finished, "open");
        let leaving = ["raw-ipv4", "udp", "quic", "dns-any-server", "icmp", "other-protocols"];
        for probe in leaving {
            assert!(open.iter().any(|it| it == probe), "{probe}: {}", finished.stderr);
            let left = format!("{probe} is open: ");
            let why = finished.stderr.lines().filter(|line| line.contains(&left));
            assert!(why.into_iter().any(|line| line.contains("left by eth0")), "{left}");
        }
    });
}

#[test]
fn it_notices_what_the_gateway_dials() {
    isolated(|| {
        let world = world!();
        let metadata = world.silent("169.254.169.254:80");
        let environment =
            file("env.json", r#"{"network": {"allowlist": [{"domain": "169.254.169.254"}]}}"#);
        let operator =
            file("outgate.toml", "[addresses]\ndangerously_allow = [\"169.254.169.254:80\"]\n");
        let finished = verify(&["--environment", &environment, "--config", &operator]);
        assert_eq!(probes(&finished, "open"), ["metadata", "nothing-dialled"], "{finished:?}");
        assert_eq!((finished.code(), metadata.connections()), (1, 1));
        assert!(finished.stderr.contains("169.254.169.254:80 for"), "{}", finished.stderr);
    });
}
