//! What do many look-ups of one environment at a time take from the others?

use std::net::SocketAddr;
use std::time::Instant;

use outgate_tests::prelude::*;

use crate::{OK, environment};

/// Each takes a socket for every question that was not answered.
#[test]
fn names_that_nobody_answers_for_take_few_descriptors_and_nobody_elses_time() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(OK).start();
        let environment =
            |id: &str| json!({"environment_id": id, "network": environment()["network"]});
        let mut gateway = world
            .gateway_builder()
            .environment(&environment("attacker"))
            .environment(&environment("bystander"))
            .configuration(
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:7001\"\n\
                 environment = \"attacker\"\n[[listener]]\nkind = \"explicit\"\n\
                 bind = \"127.0.0.1:7002\"\nenvironment = \"bystander\"\n\
                 [limits]\nconnecting = 20\ndns = \"2s\"\nconnect = \"3s\"\n",
            )
            .listeners_from_configuration()
            .start();
        let client = |port: u16| {
            let proxy = SocketAddr::from(([127, 0, 0, 1], port));
            RawClient::connect(proxy, gateway.ca()).read_timeout(Duration::from_secs(30))
        };
        let before = gateway.descriptors();
        let many = 300;
        let hanging: Vec<_> = (0..many)
            .map(|number| {
                let name = format!("n{number}.ok.example.test");
                world.dns.reply(&name, &Reply::silence());
                let mut client = client(7001);
                client.send(format!("CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n"));
                client
            })
            .collect();
        let started = Instant::now();
        let mut most = 0;
        while started.elapsed() < Duration::from_millis(1500) {
            let asked = Instant::now();
            let tunnel = client(7002).connect_tunnel(&format!("{OK}:443"));
            let answer = tunnel
                .tls(&Hello::to(OK))
                .exchange(format!("GET / HTTP/1.1\r\nHost: {OK}\r\n\r\n"));
            assert_eq!(answer.status, 200);
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
            most = most.max(gateway.descriptors() - before);
        }
        assert!(most < many + 8 * 20, "{most} descriptors");
        for mut client in hanging {
            let refused = client.read_response();
            let reason = refused.header("outgate-reason").unwrap_or_default().to_owned();
            assert!(["origin_dns", "origin_connect"].contains(&reason.as_str()), "{refused:?}");
        }
        // Their turns have been given back.
        assert!(client(7001).try_connect_tunnel(&format!("{OK}:443")).is_ok());
        let audit = gateway.final_audit();
        let refused = audit.iter().filter(|line| line["reason"].is_string());
        assert_eq!(refused.count(), many);
    });
}
