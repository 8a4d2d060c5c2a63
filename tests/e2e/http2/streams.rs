//! Is each stream an exchange of its own, whole?

use outgate_tests::prelude::*;

use crate::{NAME, OTHER, Step, open_gateway};

#[test]
fn many_streams_interleave_and_each_gets_its_own_answer() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut open: Vec<_> = (0..80)
            .map(|number| client.open(client.request("POST", &format!("/{number}"))))
            .collect();
        for round in 0..3 {
            for (number, exchange) in open.iter_mut().enumerate() {
                exchange.send(format!("{number}.{round} "));
            }
        }
        // Ended in another order than begun.
        for exchange in open.iter_mut().rev() {
            exchange.finish();
        }
        for (number, exchange) in open.into_iter().enumerate() {
            let echo = exchange.answer().expect("an answer").json();
            assert_eq!(echo["target"], format!("/{number}"));
            assert_eq!(echo["body"], format!("{number}.0 {number}.1 {number}.2 "));
        }
        assert_eq!(origin.requests().len(), 80);
        assert_eq!(gateway.final_audit().len(), 80);
    });
}

#[test]
fn takes_as_many_streams_as_it_says_and_no_more() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let go = step.clone();
        let _origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                assert!(go.wait(1));
                stream.answer(200, &[], b"late");
            })
            .start();
        let gateway = world
            .gateway_builder()
            .environment(&crate::open_environment())
            .configuration("[limits]\nstreams = 3\n")
            .start();
        let client = gateway.http2(NAME).connect();
        let open: Vec<_> = (0..3).map(|_| client.open_get("/")).collect();
        // A fourth in spite of SETTINGS is refused, so that it can be said again.
        let mut raw = gateway.frames(NAME);
        let fields =
            [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/")];
        for stream in [1, 3, 5, 7] {
            raw.send(frames::headers(stream, &fields));
        }
        let refused = raw.answer(7);
        assert_eq!(refused.reset, Some(7), "REFUSED_STREAM: {refused:?}");
        step.reach(1);
        for exchange in open {
            assert_eq!(exchange.answer().expect("an answer").body, b"late");
        }
        assert_eq!(raw.answer(5).status(), 200);
    });
}

#[test]
fn trailers_pass_both_ways_between_every_pair() {
    isolated(|| {
        let world = world!();
        let newer = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.body();
                stream.respond(200, &[]);
                stream.send("body");
                stream.finish_with(&[
                    ("x-sum", "down"),
                    ("set-cookie", "a=b"),
                    ("content-length", "7"),
                ]);
            })
            .start();
        let lines = ["X-Sum: down", "Set-Cookie: a=b"];
        let older = world.https(OTHER).script(scripts::chunked(&["body"], &lines)).start();
        let gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let client = gateway.http2(name).connect();
            let request = client.request("POST", "/").header("te", "trailers");
            let mut exchange = client.open(request.header("trailer", "x-check"));
            exchange.send("up");
            exchange.finish_with(&[("x-check", "up"), ("authorization", "Bearer mine")]);
            let answer = exchange.answer().expect("an answer");
            assert_eq!(answer.body, b"body", "{name}");
            assert_eq!(answer.trailer("x-sum"), Some("down"), "{name}: {answer:?}");
            for harmful in ["set-cookie", "content-length"] {
                assert_eq!(answer.trailer(harmful), None, "{name}: {answer:?}");
            }
        }
        let up = [("x-check".to_owned(), "up".to_owned())];
        assert_eq!(newer.requests()[0].trailers, up);
        let trailers = &older.requests()[0].trailers;
        assert_eq!(trailers.len(), 1, "{trailers:?}");
        assert!(trailers[0].name.eq_ignore_ascii_case("x-check") && trailers[0].value == "up");
    });
}

#[test]
fn trailers_reach_an_http1_client_that_takes_them_where_they_are_announced() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.respond(200, &[("trailer", "x-sum")]);
                stream.send("body");
                stream.finish_with(&[("x-sum", "down"), ("x-more", "never said")]);
            })
            .start();
        let gateway = open_gateway(&world);
        for (fields, due) in [("TE: trailers\r\nConnection: TE\r\n", 1), ("", 0)] {
            let tunnel = gateway.client().connect_tunnel("api.example.com:443");
            let mut client = tunnel.tls(&Hello::to(NAME));
            let answer = client.exchange(format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n{fields}\r\n"));
            assert_eq!((answer.text().as_str(), answer.trailers.len()), ("body", due), "{fields}");
            assert!(answer.trailers.iter().all(|one| one.name.eq_ignore_ascii_case("x-sum")));
        }
    });
}

#[test]
fn a_body_where_none_is_expected_is_framed_exactly() {
    isolated(|| {
        let world = world!();
        let newer = world.http2(NAME).start();
        let older = world.https(OTHER).start();
        let gateway = open_gateway(&world);
        let body = "GET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
        for name in [NAME, OTHER] {
            let client = gateway.http2(name).connect();
            for method in ["GET", "DELETE", "OPTIONS"] {
                let answer = client.ask(client.request(method, "/outer"), body);
                assert_eq!(answer.status, 200, "{name} {method}");
                let length = client.request(method, "/outer").header("content-length", body.len());
                assert_eq!(client.ask(length, body).status, 200, "{name} {method}");
            }
        }
        // Whether two requests had become one, or one two, a strict parser would say.
        assert_eq!((newer.requests().len(), older.requests().len()), (6, 6));
        assert!(newer.requests().iter().all(|request| request.body == body.as_bytes()));
        assert!(older.requests().iter().all(|request| request.body == body.as_bytes()));
    });
}

#[test]
fn answers_without_a_body_have_none() {
    isolated(|| {
        let world = world!();
        let _newer = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                let request = stream.request();
                let status = request.path[1..].parse().expect("a status");
                stream.respond_only(status, &[("etag", "\"1\"")]);
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        for (method, status) in [("GET", 204), ("GET", 304), ("HEAD", 200), ("GET", 200)] {
            let answer = client.ask(client.request(method, &format!("/{status}")), "");
            assert_eq!((answer.status, answer.body.len()), (status, 0), "{method} {status}");
            assert_eq!(answer.header("etag"), Some("\"1\""));
        }
    });
}

#[test]
fn alt_svc_and_fields_of_a_connection_do_not_come_back() {
    isolated(|| {
        let world = world!();
        let _newer = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                stream.answer(200, &[("alt-svc", "h3=\":443\""), ("x-one", "1")], b"");
            })
            .start();
        let response = "HTTP/1.1 200 OK\r\nAlt-Svc: h3=\":443\"\r\nConnection: X-Mine\r\n\
                        Keep-Alive: timeout=5\r\nX-Mine: 1\r\nX-One: 1\r\nContent-Length: 0\r\n\r\n";
        let _older = world.https(OTHER).respond(response).start();
        let gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let answer = gateway.http2(name).connect().get("/");
            assert_eq!(answer.header("x-one"), Some("1"), "{name}: {answer:?}");
            for gone in ["alt-svc", "connection", "keep-alive", "x-mine", "via"] {
                assert_eq!(answer.header(gone), None, "{name}: {answer:?}");
            }
        }
    });
}

#[test]
fn expect_100_continue_is_not_delayed_by_an_http2_origin() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let gateway = open_gateway(&world);
        let tunnel = gateway.client().connect_tunnel("api.example.com:443");
        let mut client = tunnel.tls(&Hello::to(NAME)).read_timeout(Duration::from_millis(800));
        client.send(
            "POST / HTTP/1.1\r\nHost: api.example.com\r\nExpect: 100-continue\r\n\
             Content-Length: 4\r\n\r\n",
        );
        // Long before the second that a silent origin is waited for.
        let interim = client.read_some().expect("100 Continue at once");
        assert!(interim.starts_with(b"HTTP/1.1 100 "), "{}", interim.escape_ascii());
        client.send("body");
        assert_eq!(client.read_response().json()["body"], "body");
        assert_eq!(origin.requests()[0].header("expect"), None);
    });
}

#[test]
fn as_many_streams_as_anybody_may_configure_are_served() {
    isolated(|| {
        let world = world!();
        let _api = world.http2("api.example.com").start();
        let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
        let builder = world.gateway_builder().environment(&environment);
        let mut gateway = builder.configuration("[limits]\nstreams = 100000\n").start();
        let client = gateway.http2("api.example.com").connect();
        assert_eq!(client.get("/").status, 200);
        assert!(gateway.is_running());
    });
}
