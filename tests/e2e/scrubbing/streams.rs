//! Does a stream still stream?

use std::time::Instant;

use outgate_tests::prelude::*;

use crate::{GET, NAME, environment, stars, tunnel};

/// What an event may take: a tenth of a second, and what a busy machine adds.
const AT_ONCE: Duration = Duration::from_millis(1000);

#[test]
fn events_arrive_when_they_are_sent_and_values_cut_between_them_do_not() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let told = secret.clone();
        let script = move |connection: &mut Connection| {
            connection.request();
            let (one, other) = told.split_at(17);
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
            for event in ["data: 1\n\n", "{\"line\": 2}\n"] {
                connection.send(chunk(event));
                // The next one comes only after this one was read.
                connection.pause(Duration::from_secs(2));
            }
            connection.send(chunk(&format!("data: {one}")));
            connection.pause(Duration::from_millis(300));
            connection.send(chunk(&format!("{other}\n\n")));
            connection.send("0\r\n\r\n");
        };
        let _origin = world.https(NAME).script(script).start();
        let gateway = world.gateway(environment(&secret, true));
        let mut client = tunnel(&gateway);
        client.send(GET);
        let mut read = Vec::new();
        for event in ["data: 1\n\n", "{\"line\": 2}\n"] {
            let begun = Instant::now();
            while !read.windows(event.len()).any(|window| window == event.as_bytes()) {
                read.extend(client.read_some().expect("the stream goes on"));
            }
            assert!(begun.elapsed() < Duration::from_secs(2) + AT_ONCE, "{event} was late");
        }
        while !read.ends_with(b"0\r\n\r\n") {
            read.extend(client.read_some().expect("the stream goes on"));
        }
        let all = String::from_utf8_lossy(&read);
        assert!(all.contains(&stars(&secret)), "{all}");
        assert_secret_absent(&read, &secret);
    });
}
