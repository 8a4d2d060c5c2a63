//! What of the gateway's own machine, and of the sandbox beside it, can a sandbox reach?

use std::io::{Read, Write};

use outgate_tests::origin::SilentListener;

use outgate_tests::wait::SOON;

use super::attacks::{Attacks, TWO4, TWO6};
use super::*;

for_every_kind![
    only_outgates_ports_are_reached,
    no_program_of_the_machine_reaches_a_sandbox,
    one_sandbox_can_not_take_all_connections,
    one_sandbox_can_not_reach_another,
];

/// C11: whoever else listens on the machine, on whatever address of it.
fn only_outgates_ports_are_reached(kind: Kind) {
    let scene = Scene::new(kind);
    let host = &scene.site.gateway;
    let (ssh, udp) = host.inside(|| {
        let ssh = ["0.0.0.0:22", "[::]:22"].map(SilentListener::start);
        let udp = ["0.0.0.0:161", "[::]:162"].map(|at| UdpSocket::bind(at).expect("a free port"));
        (ssh, udp)
    });
    let more = "[[listener]]\nkind = \"explicit\"\nbind = \"10.20.0.1:8090\"\nenvironment = \"two\"\n\
                [addresses]\ndeny = [\"11.99.0.2\", \"2a00:99::2\"]\n";
    let own = ["10.20.0.1", "10.20.1.1", "10.20.2.1", "11.99.0.2", "fd10:20::1", "2a00:99::2"];
    for (number, address) in own.iter().enumerate() {
        scene.world.dns.name(&format!("own{number}.example.test"), &[address]);
    }
    let gateway = scene.builder(&json!([{"domain": "*", "ports": [22, 443]}]), more).start();
    let descriptors = gateway.descriptors();
    for (number, address) in own.iter().enumerate() {
        let at = |port| SocketAddr::new(address.parse().expect("an address"), port).to_string();
        for port in [22, 8053, 8081, 8090] {
            let said = scene.one.inside(|| said_to(&at(port), b"CONNECT x:443 HTTP/1.1\r\n\r\n"));
            assert!(!said.contains(" 200 "), "{} says {said:?}", at(port));
        }
        for port in [161, 162, 8053, 8080] {
            let refused = scene.one.inside(|| datagram(&at(port), b"secret"));
            assert_eq!(refused, Err(ErrorKind::ConnectionRefused), "{}", at(port));
        }
        let name = format!("own{number}.example.test:22");
        let said = scene.one.inside(|| asked_of_proxy(&name));
        assert!(said.contains("address_not_allowed"), "{address}: {said}");
    }
    if kind != Kind::Vm {
        // With TPROXY it is outgate that finds out: see above.
        let itself = scene.one.inside(|| connect("10.20.0.1:8081").map(drop));
        assert_eq!(itself, Err(ErrorKind::ConnectionRefused));
    }
    assert_eq!(ssh.iter().map(SilentListener::connections).sum::<usize>(), 0);
    for socket in udp {
        socket.set_nonblocking(true).expect("it is open");
        assert_eq!(
            socket.recv(&mut [0; 16]).map_err(|fault| fault.kind()),
            Err(ErrorKind::WouldBlock)
        );
    }
    assert_eq!(scene.site.leaked(&[]), []);
    let flat = wait_until(Duration::from_secs(5), || gateway.descriptors() <= descriptors);
    assert!(flat, "{} descriptors, then {}", descriptors, gateway.descriptors());
}

/// Whatever outgate is made to dial, the kernel begins nothing towards a sandbox.
fn no_program_of_the_machine_reaches_a_sandbox(kind: Kind) {
    let scene = Scene::new(kind);
    let heard_by_one = scene.one.inside(|| Recorder::start("eth0"));
    scene.site.gateway.inside(|| {
        for to in ["10.20.1.2:443", "[fd10:20:1::2]:443"] {
            assert!(connect(to).is_err(), "{to}");
            assert!(datagram(to, b"secret").is_err(), "{to}");
        }
    });
    assert_eq!(beyond_the_link(&heard_by_one), []);
}

/// The kernel's table of connections is for all of them.
fn one_sandbox_can_not_take_all_connections(kind: Kind) {
    let scene = Scene::new(kind);
    kind.load_rules_from(&scene.site.gateway, &Kind::rules_with_at_most(8));
    let gateway = scene.gateway(&json!([{"domain": API}]));
    let open = scene.one.inside(|| (0..8).map(|_| connect("11.22.33.44:443")).collect::<Vec<_>>());
    assert!(open.iter().all(Result::is_ok), "{open:?}");
    for more in ["11.22.33.44:443", "[2a00:1122:3344::44]:443", "10.20.0.1:8080"] {
        let silence = scene.one.inside(|| connect(more).map(drop));
        assert_eq!(silence, Err(ErrorKind::TimedOut), "{more}");
    }
    assert!(scene.two.inside(|| connect("11.22.33.44:443")).is_ok());
    drop((open, gateway));
    let again = || scene.one.inside(|| connect("11.22.33.44:443").map(drop));
    assert!(wait_until(SOON, || again() == Err(ErrorKind::ConnectionRefused)), "{:?}", again());
}

/// C14, also where the operator opened all private addresses.
fn one_sandbox_can_not_reach_another(kind: Kind) {
    let scene = Scene::new(kind);
    let (arrived, listeners) = scene.two.inside(|| {
        let listeners = ["10.20.2.2:443", "[fd10:20:2::2]:443"].map(SilentListener::start);
        (Recorder::start("eth0"), listeners)
    });
    let open = "[addresses]\nallow = [\"10.0.0.0/8\", \"fd00::/8\"]\n";
    scene.world.dns.name("two.example.test", &["10.20.2.2", "fd10:20:2::2"]);
    let gateway = scene.builder(&json!([{"domain": "two.example.test"}]), open).start();
    let said = scene.one.inside(|| asked_of_proxy("two.example.test:443"));
    assert!(said.contains("address_not_allowed"), "{said}");
    for (host, led_to, reason) in [
        ("two.example.test", "10.20.2.2", "address_not_allowed"),
        ("two.example.test", "[fd10:20:2::2]", "address_not_allowed"),
        ("10.20.2.2", "10.20.2.2", "domain_not_allowed"),
        ("[fd10:20:2::2]", "[fd10:20:2::2]", "domain_not_allowed"),
    ] {
        let curl = Curl::new(&format!("https://{host}/")).ca(gateway.ca());
        let curl = curl.argument("--connect-to").argument(format!("::{led_to}:"));
        let answer = scene.one.inside(|| curl.run());
        assert_eq!((answer.status, answer.reason()), (403, Some(reason)), "{answer:?}");
    }
    Attacks::of_one_on(&scene, (TWO4, TWO6)).send(&scene.one);
    assert_eq!(scene.site.leaked(&[]), []);
    assert_eq!(beyond_the_link(&arrived), []);
    assert_eq!(listeners.iter().map(SilentListener::connections).sum::<usize>(), 0);
}

/// What the explicit proxy says to a CONNECT.
fn asked_of_proxy(to: &str) -> String {
    said_to("10.20.0.1:8080", format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes())
}

/// What comes back for these bytes before the connection ends, or nothing.
fn said_to(to: &str, bytes: &[u8]) -> String {
    let Ok(mut stream) = connect(to) else { return String::new() };
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("above zero");
    let mut said = [0; 4096];
    let length = stream.write_all(bytes).and_then(|()| stream.read(&mut said)).unwrap_or(0);
    String::from_utf8_lossy(&said[..length]).into_owned()
}
