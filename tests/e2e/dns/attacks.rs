//! What can a hostile sandbox do to the gateway, or to another sandbox, by its questions?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use outgate_tests::names::{framed, question};

use super::*;

/// Names known at a time in these tests.
const FEW: usize = 64;

/// `e1` and `e2` with few names and connections each, known by their addresses.
fn start_two(world: &World, more: &str) -> Gateway {
    let folder = network::folder();
    let mut file = "[[listener]]\nkind = \"explicit\"\nbind = \"10.20.0.1:0\"\n\
                    [[listener]]\nkind = \"dns\"\nbind = \"10.20.0.1:0\"\n"
        .to_owned();
    for (id, source) in [("e1", "10.20.0.2"), ("e2", "10.20.0.3")] {
        let path = folder.join(format!("{id}.json"));
        std::fs::write(&path, allowing_api().to_string()).expect("writable");
        file += &format!("[[environment]]\nfile = {path:?}\nsource_addresses = [\"{source}\"]\n");
    }
    file += &format!("[limits]\nnames = {FEW}\n{more}");
    world.gateway_builder().configuration(&file).listeners_from_configuration().start()
}

fn of(gateway: &Gateway, last: u8) -> Names {
    gateway.names().from(IpAddr::from([10, 20, 0, last]))
}

fn request_of_e2(gateway: &Gateway) -> Duration {
    let began = Instant::now();
    let curl = gateway.curl("https://api.example.com/").argument("--interface");
    assert_eq!(curl.argument("10.20.0.3").run().status, 200);
    began.elapsed()
}

#[test]
fn a_hundred_thousand_names_take_no_more_memory_than_a_few() {
    isolated(|| {
        let world = world!();
        let gateway = start_two(&world, "");
        let kept = of(&gateway, 3).address("kept.example.com", RecordType::A);
        let mut connection = of(&gateway, 2).connect();
        let ask = |connection: &mut outgate_tests::names::Conversation, batch: usize| {
            let names = (0..500).map(|number| format!("{}-{batch}-{number}.test", "n".repeat(50)));
            let questions: Vec<u8> =
                names.flat_map(|name| framed(&question(&name, RecordType::A))).collect();
            connection.send_raw(&questions).expect("it reads");
            for _ in 0..500 {
                connection.receive().expect("an answer");
            }
        };
        ask(&mut connection, 0);
        let before = gateway.resident_kib();
        for batch in 1..200 {
            ask(&mut connection, batch);
        }
        let grown = gateway.resident_kib().saturating_sub(before);
        // The names alone would be 6 MiB, and what has to be kept beside them as much again.
        assert!(grown < 2048, "{grown} KiB more after 100,000 names");
        assert_eq!(of(&gateway, 3).name(kept).as_deref(), Some("kept.example.com"));
        let last = of(&gateway, 2).address("last.example.com", RecordType::A);
        assert_eq!(of(&gateway, 2).name(last).as_deref(), Some("last.example.com"));
    });
}

#[test]
fn a_flood_of_questions_holds_up_no_other_sandbox() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).respond(scripts::ok("here")).start();
        let gateway = start_two(&world, "");
        request_of_e2(&gateway);
        let descriptors = gateway.descriptors();
        let stop = Arc::new(AtomicBool::new(false));
        let socket = of(&gateway, 2).datagrams(Duration::from_secs(1));
        let flooding = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let asked = question("flood.example.com", RecordType::A);
                while !stop.load(Ordering::Relaxed) {
                    socket.send(&asked).expect("a datagram can be sent");
                }
            })
        };
        let answered = "outgate_dns_queries_total{answer=\"address\"}";
        assert!(wait_until(Duration::from_secs(10), || gateway.metric(answered) > 1000.0));
        assert!(request_of_e2(&gateway) < Duration::from_secs(2));
        let told = of(&gateway, 3).connect().ask("other.example.com", RecordType::A);
        assert_eq!(told.expect("an answer").data().len(), 1);
        stop.store(true, Ordering::Relaxed);
        flooding.join().expect("no panic");
        let settled = || gateway.descriptors() <= descriptors;
        assert!(
            wait_until(Duration::from_secs(10), settled),
            "{} descriptors",
            gateway.descriptors()
        );
    });
}

#[test]
fn whatever_bytes_come_the_next_question_is_answered() {
    isolated(|| {
        let world = world!();
        let mut gateway = start_two(&world, "");
        let names = of(&gateway, 2);
        let socket = names.datagrams(Duration::from_millis(1));
        let mut random = canary(1 << 16).into_bytes();
        for round in 0..500 {
            let length = round * 7 % 1500;
            random.rotate_left(length + 1);
            // Half of them with a header that could be a question's.
            let header: &[u8] =
                if round % 2 == 0 { b"\0\x01\x01\0\0\x01\0\0\0\0\0\0" } else { b"" };
            let message = [header, &random[..length]].concat();
            socket.send(&message).expect("a datagram can be sent");
            let mut connection = names.connect();
            connection.send(&message).expect("it reads");
            if round % 3 == 0 {
                connection.send_raw(&random[..length]).ok();
            }
        }
        assert!(is_synthetic(names.address(API, RecordType::A)));
        let told = names.connect().ask(API, RecordType::A).expect("an answer");
        assert_eq!(told.data().len(), 1);
        assert!(gateway.is_running());
        assert!(gateway.logs().iter().all(|line| !line.contains("panicked")));
    });
}

#[test]
fn connections_for_questions_are_the_sandboxs_own_and_counted() {
    isolated(|| {
        let world = world!();
        let gateway = start_two(&world, "connections = 4\nstrangers = 2\n");
        let mut held: Vec<_> = (0..4).map(|_| of(&gateway, 2).connect()).collect();
        for connection in &mut held {
            connection.ask(API, RecordType::A).expect("a place");
        }
        assert_eq!(gateway.metric("outgate_connections{environment=\"e1\"}"), 4.0);
        assert!(of(&gateway, 2).connect().ask(API, RecordType::A).is_err(), "a fifth place");
        assert_eq!(of(&gateway, 2).ask(API, RecordType::A).data().len(), 1);
        of(&gateway, 3).connect().ask(API, RecordType::A).expect("another sandbox's place");
        held.pop();
        let free = || of(&gateway, 2).connect().ask(API, RecordType::A).is_ok();
        assert!(wait_until(Duration::from_secs(5), free));

        let mut strangers: Vec<_> = (0..2).map(|_| of(&gateway, 9).connect()).collect();
        for connection in &mut strangers {
            assert_eq!(
                connection.ask(API, RecordType::A).expect("an answer").code().low(),
                REFUSED
            );
        }
        assert!(of(&gateway, 9).connect().ask(API, RecordType::A).is_err(), "a third place");
    });
}
