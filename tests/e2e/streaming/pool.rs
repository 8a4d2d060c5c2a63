//! Is a connection to an origin used again only where that is safe?

use outgate_tests::prelude::*;

use crate::{REQUEST, answered_by};

/// An origin whose connections answer one request, then do `then` with the second.
fn once_then(then: fn(&mut Connection)) -> Box<origin::Script> {
    Box::new(move |connection: &mut Connection| {
        connection.request();
        connection.send(scripts::ok("first"));
        then(connection);
    })
}

fn post() -> String {
    REQUEST.replace("GET", "POST").replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello")
}

#[test]
fn uses_a_connection_again_for_other_clients_of_the_same_name() {
    isolated(|| {
        let both = answered_by(&world!(), scripts::echo);
        for way in Way::ALL {
            for _ in 0..5 {
                assert_eq!(both.ask(way, REQUEST).status, 200);
                assert_eq!(both.ask(way, post()).status, 200);
            }
            assert_eq!(both.origin(way).connections(), 1, "{way}");
        }
    });
}

#[test]
fn one_name_never_uses_anothers_connection() {
    isolated(|| {
        let world = world!();
        world.name("other.example.com", "11.22.33.44");
        let names = ["api.example.com", "other.example.com"];
        let identity = world.pki.leaf("api.example.com").names(&names).issue();
        let origin = world.https("api.example.com").identity(identity).start();
        let plain = world.http("api.example.com").start();
        let gateway =
            world.gateway(json!({"network": {"allowlist": [{"domain": "*.example.com"}]}}));
        for _ in 0..2 {
            for name in ["api.example.com", "other.example.com"] {
                assert_eq!(gateway.curl(&format!("https://{name}/")).run().status, 200);
                assert_eq!(gateway.curl(&format!("http://{name}/")).run().status, 200);
            }
        }
        assert_eq!((origin.connections(), plain.connections()), (2, 2));
        for record in origin.records() {
            let handshake = record.handshake().expect("TLS").expect("it succeeds");
            let name = handshake.server_name.expect("SNI");
            let raw = String::from_utf8_lossy(&record.raw()).into_owned();
            assert_eq!(raw.matches(&format!("Host: {name}\r\n")).count(), 2, "{raw}");
        }
    });
}

#[test]
fn one_environment_never_uses_anothers_connection() {
    isolated(|| {
        let world = world!();
        let origin = world.https("api.example.com").start();
        let allowlist = json!([{"domain": "api.example.com"}]);
        let environment =
            |id: &str| json!({"environment_id": id, "network": {"allowlist": allowlist}});
        let listener = |id: &str| {
            format!(
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\nenvironment = \"{id}\"\n"
            )
        };
        let gateway = world
            .gateway_builder()
            .environment(&environment("e1"))
            .environment(&environment("e2"))
            .listeners_from_configuration()
            .configuration(&[listener("e1"), listener("e2")].concat())
            .start();
        for _ in 0..2 {
            for number in 0..2 {
                let address = gateway.ready()["explicit"][number].as_str().expect("two listeners");
                let address = address.parse().expect("an address");
                let client = RawClient::connect(address, gateway.ca());
                let tunnel = client.connect_tunnel("api.example.com:443");
                let mut client = tunnel.tls(&Hello::to("api.example.com"));
                assert_eq!(client.exchange(Way::Tunnel.write(REQUEST)).status, 200);
            }
        }
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn a_connection_that_was_closed_while_it_rested_costs_nobody_an_answer() {
    isolated(|| {
        let both = answered_by(&world!(), || once_then(|_| {}));
        for way in Way::ALL {
            for request in [REQUEST.to_owned(), post(), REQUEST.to_owned(), post()] {
                assert_eq!(both.ask(way, request).text(), "first", "{way}");
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(both.origin(way).requests().len(), 4, "{way}: one was sent twice");
        }
        both.audited(8);
    });
}

#[test]
fn says_a_request_again_only_where_twice_does_no_more_than_once() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            once_then(|connection| {
                connection.request();
            })
        });
        for way in Way::ALL {
            assert_eq!(both.ask(way, REQUEST).status, 200, "{way}");
            // The second on that connection is read and not answered; a fresh one answers.
            assert_eq!(both.ask(way, REQUEST).text(), "first", "{way}");
            let answer = both.ask(way, post());
            assert_eq!(
                (answer.status, answer.header("outgate-reason")),
                (502, Some("origin_protocol"))
            );
            let requests = both.origin(way).requests();
            let posts = requests.iter().filter(|request| request.method == "POST").count();
            assert_eq!((requests.len(), posts), (4, 1), "{way}: {requests:?}");
        }
        both.audited(6);
    });
}

#[test]
fn a_fresh_connection_that_breaks_is_not_tried_again() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            Box::new(|connection: &mut Connection| drop(connection.request()))
        });
        for way in Way::ALL {
            assert_eq!(both.ask(way, REQUEST).status, 502, "{way}");
            assert_eq!(both.origin(way).connections(), 1, "{way}");
        }
        both.audited(2);
    });
}

#[test]
fn a_connection_left_in_the_middle_of_a_body_is_not_used_again() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            scripts::slow(scripts::ok(vec![b'x'; 4000]), 1000, Duration::from_millis(200))
        });
        for way in Way::ALL {
            let mut client = both.sent(way, REQUEST);
            client.read_some().expect("it begins");
            drop(client);
            assert!(both.origin(way).wait_closed(), "{way}");
            assert_eq!(both.ask(way, REQUEST).body.len(), 4000, "{way}");
            assert_eq!(both.origin(way).connections(), 2, "{way}");
        }
    });
}

#[test]
fn obeys_an_origin_that_says_close() {
    isolated(|| {
        let both = answered_by(&world!(), || {
            scripts::respond("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        });
        for way in Way::ALL {
            let mut client = both.client(way);
            for count in 1..=2 {
                client.send(way.write(REQUEST));
                assert_eq!(client.read_response().text(), "ok", "{way}");
                assert_eq!(both.origin(way).connections(), count, "{way}");
            }
        }
    });
}
