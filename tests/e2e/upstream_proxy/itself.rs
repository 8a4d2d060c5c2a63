//! A proxy that is the gateway.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::*;

/// A gateway with a listener on every address, whose proxy is at `url`.
fn own(world: &World, url: &str) -> gateway::Builder {
    let environment = network::folder().join("env_test.json");
    std::fs::write(&environment, allowing(&[API]).to_string()).expect("the folder is writable");
    let file = format!(
        "{}[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n\
         [[listener]]\nkind = \"explicit\"\nbind = \"0.0.0.0:3128\"\n\
         [[environment]]\nfile = {environment:?}\nsource_addresses = [\"127.0.0.1/32\"]\n",
        upstream(url, "")
    );
    world.gateway_builder().configuration(&file).listeners_from_configuration()
}

#[test]
fn a_proxy_that_is_the_gateway_itself_keeps_it_from_starting() {
    isolated(|| {
        let world = world!();
        network::set_hosts("127.0.0.1 localhost\n10.9.8.7 gate.corp\n");
        for (url, starts) in [
            ("http://127.0.0.1:3128", false),
            ("http://10.9.8.7:3128", false),
            ("http://localhost:3128", false),
            ("http://gate.corp:3128", false),
            ("http://127.0.0.1:3129", true),
        ] {
            let builder = own(&world, url);
            match builder.try_start() {
                Ok(_) => assert!(starts, "{url}"),
                Err(failed) => {
                    assert!(!starts, "{url}: {}", failed.output);
                    assert_eq!(failed.code, Some(70), "{}", failed.output);
                    assert!(failed.output.contains("[upstream] proxy is a listener of this"));
                }
            }
        }
    });
}

/// What the name of the proxy means may change while the gateway runs.
#[test]
fn a_name_that_comes_to_mean_the_gateway_is_no_loop() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        world.name("gate.example.test", "10.9.8.7");
        let gateway = own(&world, "http://gate.example.test:3128").start();
        let before = gateway.descriptors();
        for _ in 0..3 {
            let answer = gateway.curl("https://api.example.com/").run();
            assert_eq!((answer.status, answer.reason()), (502, Some("origin_connect")));
        }
        let audit = gateway.wait_audit(3);
        assert_eq!(audit.len(), 3, "no request came back: {audit:#?}");
        assert!(audit[0]["error"].to_string().contains("is the gateway itself"), "{audit:#?}");
        assert!(gateway.descriptors() <= before + 8, "{before} {}", gateway.descriptors());
    });
}

/// As a forwarded port does: no address tells.
#[test]
fn a_port_that_leads_back_is_one_refusal_and_no_loop() {
    isolated(|| {
        let world = world!();
        let origin = world.silent("11.22.33.44:2222");
        let (to, count) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
        forward(Arc::clone(&to), Arc::clone(&count));
        let environment = json!({"network": {"allowlist": [
            {"domain": "*", "ports": [2222], "protocol": "tcp"},
        ]}});
        let gateway = behind(&world, &environment).start();
        to.set(gateway.explicit()).expect("set once");
        let refused = gateway.client().try_connect_tunnel("api.example.com:2222").err();
        let refused = refused.expect("it leads nowhere");
        assert_eq!(refused.header("outgate-reason"), Some("origin_connect"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let audit = gateway.wait_audit(2);
        assert_eq!(audit.len(), 2, "{audit:#?}");
        assert!(audit.iter().all(|line| line["reason"] == "origin_connect"), "{audit:#?}");
        assert_eq!(origin.connections(), 0);
    });
}

/// Leads every connection to [`PROXY`] on, and counts them.
#[expect(clippy::disallowed_methods, reason = "a forwarded port of the test's own")]
fn forward(to: Arc<OnceLock<SocketAddr>>, count: Arc<AtomicUsize>) {
    let listener = TcpListener::bind(PROXY).expect("the address is free");
    thread::spawn(move || {
        for client in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let address = to.get().expect("the gateway runs before anybody asks it");
            let pair = |one: &TcpStream| one.try_clone().expect("descriptors are left");
            let (client, there) =
                (client.expect("a connection"), TcpStream::connect(address).expect("it listens"));
            for (mut from, mut into) in [(pair(&client), pair(&there)), (there, client)] {
                thread::spawn(move || io::copy(&mut from, &mut into));
            }
        }
    });
}
