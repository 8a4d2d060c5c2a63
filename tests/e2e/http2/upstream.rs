//! Are connections to HTTP/2 origins shared as far as the origin allows, and replaced when it leaves?

use std::collections::HashSet;

use outgate_tests::http2::{Reason, reason};
use outgate_tests::prelude::*;

use crate::{NAME, OTHER, Step, open_environment, open_gateway};

#[test]
fn requests_of_all_clients_share_one_connection() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let gateway = open_gateway(&world);
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        for _ in 0..3 {
            let client = gateway.http2(NAME).connect();
            for exchange in (0..20).map(|_| client.open_get("/")).collect::<Vec<_>>() {
                assert_eq!(exchange.answer().expect("an answer").status, 200);
            }
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        }
        assert_eq!((origin.requests().len(), origin.connections()), (64, 1));
    });
}

#[test]
fn no_more_connections_rest_than_may() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let environment = json!({"network": {"allowlist": [{"domain": NAME}]}});
        let builder = world.gateway_builder().environment(&environment);
        let gateway = builder.configuration("[limits]\nidle_upstream = 0\n").start();
        let ask = || assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        ask();
        ask();
        assert_eq!(origin.connections(), 1, "the control: until it is swept it is shared");
        let swept = || {
            ask();
            origin.connections() > 1
        };
        std::thread::sleep(Duration::from_secs(6));
        assert!(wait_until(Duration::from_secs(6), swept), "it rests though none may");
    });
}

#[test]
fn an_origin_that_takes_one_stream_at_a_time_gets_no_second() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let (go, running) = (step.clone(), Step::default());
        let most = running.clone();
        let origin = world
            .http2(NAME)
            .settings(|settings| {
                settings.max_concurrent_streams(1);
            })
            .script(move |stream: &mut Stream| {
                if stream.request().path == "/long" {
                    most.reach(most.reached() + 1);
                    assert!(go.wait(1));
                }
                stream.answer(200, &[], b"");
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/").status, 200);
        let one = client.open_get("/long");
        assert!(running.wait(1));
        // While it runs, others are served all the same.
        assert_eq!(client.get("/").status, 200);
        let two = client.open_get("/long");
        assert!(running.wait(2), "a second long one waits behind the first");
        assert_eq!(client.get("/").status, 200);
        step.reach(1);
        for exchange in [one, two] {
            assert_eq!(exchange.answer().expect("an answer").status, 200);
        }
        let requests = origin.requests();
        let of_long: HashSet<usize> = requests
            .iter()
            .filter(|request| request.path == "/long")
            .map(|request| request.connection)
            .collect();
        assert_eq!(of_long.len(), 2, "two at a time, so two connections");
        assert_eq!(origin.connections(), 3);
    });
}

#[test]
fn many_at_once_to_a_fresh_origin_are_never_stuck_behind_each_other() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let (go, running) = (step.clone(), Step::default());
        let most = running.clone();
        let lock = std::sync::Mutex::new(());
        let _origin = world
            .http2(NAME)
            .settings(|settings| {
                settings.max_concurrent_streams(1);
            })
            .script(move |stream: &mut Stream| {
                {
                    let _guard = lock.lock().expect("nobody panics");
                    most.reach(most.reached() + 1);
                }
                assert!(go.wait(1));
                stream.answer(200, &[], b"");
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let open: Vec<_> = (0..10).map(|_| client.open_get("/")).collect();
        assert!(running.wait(10), "{} of 10 run", running.reached());
        step.reach(1);
        for exchange in open {
            assert_eq!(exchange.answer().expect("an answer").status, 200);
        }
    });
}

#[test]
fn before_an_origin_has_said_how_many_it_takes_it_gets_one() {
    isolated(|| {
        let world = world!();
        // It reads, and says nothing at all.
        let origin = world
            .https(NAME)
            .alpn(&["h2"])
            .script(|connection: &mut Connection| while !connection.bytes().is_empty() {})
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let first = client.open_get("/");
        let asked = || {
            let raw = origin.raw();
            let frames = frames::parse(raw.get(frames::PREFACE.len()..).unwrap_or_default());
            frames.iter().filter(|frame| frame.kind == frames::HEADERS).count()
        };
        assert!(wait_until(Duration::from_secs(5), || asked() == 1));
        let second = client.open_get("/");
        assert!(wait_until(Duration::from_secs(5), || origin.connections() == 2), "it waits");
        drop((first, second));
    });
}

#[test]
fn after_goaway_what_runs_is_finished_and_what_comes_goes_elsewhere() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let go = step.clone();
        let origin = world
            .http2(NAME)
            .script(move |stream: &mut Stream| {
                if stream.request().path == "/long" {
                    stream.respond(200, &[]);
                    stream.send("begun");
                    assert!(go.wait(1));
                    stream.send(", ended");
                    return stream.finish();
                }
                stream.echo();
            })
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut long = client.open_get("/long");
        assert_eq!(long.head().expect("an answer").status, 200);
        assert_eq!(long.data().expect("open").as_deref(), Some(&b"begun"[..]));
        origin.go_away();
        std::thread::sleep(Duration::from_millis(200));
        for method in ["GET", "POST"] {
            let answer = client.ask(client.request(method, "/"), "after");
            assert_eq!((answer.status, &answer.json()["body"]), (200, &json!("after")));
        }
        step.reach(1);
        assert_eq!(long.rest().expect("it ends in order").0, b", ended");
        let connections: Vec<_> = origin.requests().iter().map(|one| one.connection).collect();
        assert_eq!(connections, [0, 1, 1]);
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 3);
        assert!(audit.iter().all(|line| line["error"].is_null()), "{audit:#?}");
    });
}

#[test]
fn an_origin_that_breaks_a_connection_off_breaks_what_runs_on_it_and_no_more() {
    isolated(|| {
        let world = world!();
        let origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| match stream.request().path.as_str() {
                "/long" => {
                    stream.respond(200, &[]);
                    stream.send("begun");
                    stream.wait_reset();
                }
                _ => stream.echo(),
            })
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        let mut long = client.open_get("/long");
        assert_eq!(long.head().expect("an answer").status, 200);
        assert_eq!(long.data().expect("open").as_deref(), Some(&b"begun"[..]));
        origin.abort(Reason::INTERNAL_ERROR);
        let outcome = long.rest();
        assert!(reason(&outcome).is_some(), "{outcome:?}");
        assert_eq!(client.get("/").status, 200);
        assert_eq!(origin.connections(), 2);
        assert_eq!(gateway.final_audit().len(), 2);
    });
}

#[test]
fn nothing_is_shared_between_names_or_environments() {
    isolated(|| {
        let world = world!();
        // Both names at one address, with one certificate: what HTTP/2 clients coalesce.
        world.name(OTHER, "11.22.33.44");
        let identity = world.pki.leaf(NAME).names(&[NAME, OTHER]).issue();
        let origin = world.http2(NAME).identity(identity).start();
        let environment = |id: &str| {
            let mut environment = open_environment();
            environment["environment_id"] = json!(id);
            environment
        };
        let gateway = world
            .gateway_builder()
            .environment(&environment("one"))
            .environment(&environment("two"))
            .configuration(
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:7001\"\n\
                 environment = \"one\"\n[[listener]]\nkind = \"explicit\"\n\
                 bind = \"127.0.0.1:7002\"\nenvironment = \"two\"\n",
            )
            .listeners_from_configuration()
            .start();
        for proxy in ["127.0.0.1:7001", "127.0.0.1:7002"] {
            for name in [NAME, OTHER, NAME, OTHER] {
                let answer = Curl::new(&format!("https://{name}/"))
                    .proxy(proxy.parse().expect("an address"))
                    .ca(gateway.ca())
                    .http2()
                    .run();
                assert_eq!(answer.status, 200, "{answer:?}");
            }
        }
        let requests = origin.requests();
        let pairs: HashSet<_> =
            requests.iter().map(|one| (one.connection, one.authority.clone())).collect();
        assert_eq!((requests.len(), pairs.len(), origin.connections()), (8, 4, 4));
    });
}

#[test]
fn a_leaf_has_one_name_only() {
    isolated(|| {
        let world = world!();
        let identity = world.pki.leaf(NAME).names(&[NAME, OTHER, "*.example.com"]).issue();
        let _origin = world.http2(NAME).identity(identity).start();
        let gateway = open_gateway(&world);
        for name in [NAME, OTHER] {
            let tunnel = gateway.client().connect_tunnel(&format!("{name}:443"));
            let client = tunnel.tls(&Hello::to(name).alpn(&["h2"]));
            let leaf = &client.certificates()[0];
            // Each name of a certificate stands in it as it is (RFC 5280 §4.2.1.6).
            let has = |name: &str| leaf.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(has(name), "{name}");
            let other = if name == NAME { OTHER } else { NAME };
            assert!(!has(other) && !has("*.exam"), "{name}: it invites others");
        }
    });
}

#[test]
fn an_answer_over_the_bounds_of_a_head_is_the_origins_fault() {
    isolated(|| {
        let world = world!();
        let _origin = world
            .http2(NAME)
            .script(|stream: &mut Stream| {
                let long = "v".repeat(70 << 10);
                let many = vec![("x", "1"); 150];
                match stream.request().path.as_str() {
                    "/size" => stream.respond_only(200, &[("x", &long)]),
                    "/count" => stream.respond_only(200, &many),
                    _ => stream.respond_only(200, &many[..90]),
                }
            })
            .start();
        let mut gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/fits").status, 200);
        for path in ["/size", "/count"] {
            let answer = client.get(path);
            assert_eq!((answer.status, answer.reason()), (502, Some("origin_protocol")), "{path}");
        }
        assert_eq!(client.get("/fits").status, 200);
        assert_eq!(gateway.final_audit().len(), 4);
    });
}
