//! `protocol: "tcp"`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use super::*;

#[test]
fn a_server_that_speaks_first_is_heard_and_half_close_is_kept() {
    isolated(|| {
        let world = world!();
        let origin = banner_origin();
        let mut gateway = world.gateway(open_to_any_bytes());
        let mut tunnel = gateway.client().connect_tunnel(GIT);
        assert_eq!(tunnel.read_exact(BANNER.len()), BANNER);
        let said = b"\x00\x01 any bytes\r\n";
        tunnel.send(said);
        assert_eq!(tunnel.read_exact(said.len()), said);
        tunnel.finish_sending();
        assert_eq!(tunnel.read_to_end().expect("a clean end"), said);
        assert!(origin.wait_closed());
        assert_eq!(origin.raw(), said);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 1, "{audit:#?}");
        let line = &audit[0];
        assert_eq!((&line["kind"], &line["verdict"]), (&json!("tunnel"), &json!("allow")));
        assert_eq!((&line["domain"], &line["port"]), (&json!(API), &json!(2222)));
        assert_eq!((&line["address"], &line["entry"]), (&json!("11.22.33.44:2222"), &json!(1)));
        assert_eq!(line["bytes_up"], json!(said.len()));
        assert_eq!(line["bytes_down"], json!(BANNER.len() + 2 * said.len()));
        assert_eq!(line.get("error"), None, "{line}");
    });
}

#[test]
fn tls_and_http_pass_unread_too() {
    isolated(|| {
        let world = world!();
        let origin = Origin::https(&world.pki, EVIL, "11.22.33.44:2222").start();
        let gateway = world.gateway(open_to_any_bytes());
        let client = RawClient::connect(gateway.explicit(), world.pki.roots());
        let mut tunnel = client.connect_tunnel(GIT).tls(&Hello::to(EVIL));
        let answer = tunnel.exchange("GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n");
        assert_eq!(answer.status, 200);
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn a_connection_that_can_t_be_made_is_told_before_the_tunnel_is_open() {
    isolated(|| {
        let world = world!();
        world.name("private.example.com", "10.0.0.9");
        for refusals in ["status", "inside"] {
            let gateway = world
                .gateway_builder()
                .configuration(&format!("[refusals]\nconnect = \"{refusals}\"\n"))
                .environment(&json!({"network": {"allowlist": [
                    {"domain": "*.example.com", "ports": [2222], "protocol": "tcp"},
                ]}}))
                .start();
            for (host, status, reason) in [
                (API, 502, "origin_connect"),
                ("private.example.com", 403, "address_not_allowed"),
                ("nowhere.example.com", 502, "origin_dns"),
            ] {
                let refused = gateway.client().try_connect_tunnel(&format!("{host}:2222"));
                let refused = refused.err().expect("nobody is there");
                assert_eq!(refused.status, status, "{refusals} {host}");
                assert_eq!(refused.header("outgate-reason"), Some(reason));
            }
            let audit = gateway.wait_audit(3);
            assert_eq!(audit.len(), 3, "{audit:#?}");
            assert!(audit.iter().all(|line| line["kind"] == "tunnel"), "{audit:#?}");
        }
    });
}

#[test]
fn what_is_open_to_any_bytes_is_not_open_to_requests_nor_on_another_port() {
    isolated(|| {
        let world = world!();
        let origin = Origin::http("11.22.33.44:2222").start();
        let other = world.silent("11.22.33.44:2223");
        let gateway = world.gateway(open_to_any_bytes());
        let request = format!("GET http://{GIT}/ HTTP/1.1\r\nHost: {GIT}\r\n\r\n");
        let refused = gateway.client().exchange(request);
        assert_eq!(refused.header("outgate-reason"), Some("protocol_not_allowed"), "{refused:?}");
        let refused = gateway.client().try_connect_tunnel("api.example.com:2223").err();
        let refused = refused.expect("no entry names this port");
        assert_eq!(refused.header("outgate-reason"), Some("port_not_allowed"));
        // The same name on another port is intercepted as ever.
        let mut tunnel = gateway.client().connect_tunnel("api.example.com:443");
        tunnel.send(BANNER);
        assert!(tunnel.is_closed());
        assert_eq!((origin.connections(), other.connections()), (0, 0));
        let audit = gateway.wait_audit(3);
        assert_eq!(audit[2]["reason"], "protocol_not_allowed", "{audit:#?}");
    });
}

#[test]
fn much_passes_whole_both_ways_at_once() {
    const LENGTH: usize = 8 << 20;
    isolated(|| {
        let world = world!();
        let _origin = Origin::http("11.22.33.44:2222")
            .script(|connection| {
                let mut left = LENGTH;
                while left > 0 {
                    let bytes = connection.bytes();
                    assert!(!bytes.is_empty(), "{left} bytes are missing");
                    left -= bytes.len();
                    connection.send(&bytes);
                }
            })
            .start();
        let mut gateway = world.gateway(open_to_any_bytes());
        let sent: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let socket = TcpStream::connect_timeout(&gateway.explicit(), Duration::from_secs(5));
        let socket = socket.expect("it listens");
        let mut writing = socket.try_clone().expect("a socket has two handles");
        let head = format!("CONNECT {GIT} HTTP/1.1\r\nHost: {GIT}\r\n\r\n");
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                writing.write_all(head.as_bytes()).expect("open");
                writing.write_all(&sent).expect("open");
                writing.shutdown(Shutdown::Write).expect("open");
            });
            let mut received = Vec::new();
            (&socket).read_to_end(&mut received).expect("a clean end");
            received
        });
        let body = received.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer") + 4;
        assert!(received[body..] == sent, "{} of {LENGTH} bytes", received.len() - body);
        let line = &gateway.final_audit()[0];
        assert_eq!((&line["bytes_up"], &line["bytes_down"]), (&json!(LENGTH), &json!(LENGTH)));
    });
}
