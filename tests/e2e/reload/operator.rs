//! What of the operator's file does SIGHUP put in force?

use std::fs;

use super::*;

/// A gateway with the environment `one` in the operator's file, and this besides.
fn start(world: &World, more: &str) -> Gateway {
    fs::write(network::folder().join("one.json"), allowing(&["*"]).to_string()).expect("writable");
    world.gateway_builder().configuration(&with_one(more)).start()
}

fn with_one(more: &str) -> String {
    let file = network::folder().join("one.json");
    format!("[[environment]]\nfile = {file:?}\n{more}")
}

#[test]
fn addresses_are_opened_and_shut_when_asked() {
    isolated(|| {
        let world = world!();
        world.name("in.example.test", "10.1.2.3");
        let _inside = world.https("in.example.test").start();
        let gateway = start(&world, "");
        let answer = || gateway.curl("https://in.example.test/").run();
        let is_shut = || answer().reason() == Some("address_not_allowed");
        assert!(is_shut());
        gateway.set_configuration(&with_one("[addresses]\nallow = [\"10.1.2.0/24\"]\n"));
        gateway.reload();
        assert!(wait_until(SOON, || answer().status == 200));

        gateway.set_configuration(&with_one(""));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(answer().status, 200, "nobody asked yet");
        gateway.reload();
        assert!(wait_until(SOON, is_shut));
    });
}

#[test]
fn environments_are_added_and_taken_away_when_asked() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let folder = network::folder();
        let section = |id: &str, source: &str| {
            let file = folder.join(format!("{id}.json"));
            fs::write(&file, allowing(&[API]).to_string()).expect("writable");
            format!("[[environment]]\nfile = {file:?}\nsource_addresses = [\"{source}\"]\n")
        };
        let listener = "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n";
        let (one, two) = (section("one", "10.20.0.1"), section("two", "10.20.0.2"));
        let builder = world.gateway_builder().configuration(&[listener, &one].concat());
        let gateway = builder.listeners_from_configuration().start();
        let status = |source: &str| {
            let source = source.parse().expect("an address");
            let client = RawClient::connect_from(source, gateway.explicit(), gateway.ca());
            let tunnel = client.try_connect_tunnel("api.example.com:443");
            tunnel.map_or_else(|refusal| refusal.status, |_| 200)
        };
        assert_eq!((status("10.20.0.1"), status("10.20.0.2")), (200, 407));
        gateway.set_configuration(&[listener, &one, &two].concat());
        gateway.reload();
        assert!(wait_until(SOON, || status("10.20.0.2") == 200));
        assert_eq!(status("10.20.0.1"), 200);
        gateway.set_configuration(&[listener, &two].concat());
        gateway.reload();
        assert!(wait_until(SOON, || status("10.20.0.1") == 407));
        assert_eq!(status("10.20.0.2"), 200);
    });
}

/// Whoever was the only environment's neighbour must not become it.
#[test]
fn a_listener_of_the_only_environment_is_nobody_s_once_there_were_two() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, "");
        wait_admission(&gateway, API, true);
        let two = network::folder().join("two.json");
        fs::write(&two, allowing(&[API]).to_string()).expect("writable");
        gateway.set_configuration(&with_one(&format!("[[environment]]\nfile = {two:?}\n")));
        gateway.reload();
        wait_admission(&gateway, API, false);
        gateway.set_configuration(&with_one(""));
        gateway.reload();
        assert!(wait_until(SOON, || gateway.metric("outgate_environments") == 1.0));
        wait_admission(&gateway, API, false);
    });
}

#[test]
fn a_broken_operator_s_file_changes_nothing_and_is_loud() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, "");
        for broken in ["[adresses]\n", "[addresses]\nallow = [\"127.0.0.0/8\"]\n", "= 1\n"] {
            gateway.set_configuration(broken);
            gateway.reload();
            assert!(wait_until(SOON, || gateway.problems().len() == 1), "{broken}");
            let expected = "the operator's file can't be used: what it said last is in force; the log says why";
            assert_eq!(gateway.problems(), [expected]);
            wait_admission(&gateway, API, true);
            gateway.set_configuration(&with_one(""));
            gateway.reload();
            assert!(wait_until(SOON, || gateway.problems().is_empty()), "{broken}");
        }
        assert!(gateway.wait_log("outgate.toml:1: unknown field `adresses`"));
        assert!(gateway.wait_log("addresses.allow[0]"));
        // Environments are read all the same.
        gateway.set_configuration("= 1\n");
        let one = network::folder().join("one.json");
        fs::write(&one, allowing(&[OK]).to_string()).expect("writable");
        gateway.reload();
        wait_admission(&gateway, API, false);
        wait_admission(&gateway, OK, true);
    });
}

#[test]
fn what_needs_a_restart_is_named_and_not_done() {
    isolated(|| {
        let world = world!();
        let gateway = start(&world, "");
        gateway.set_configuration(&with_one(
            "[limits]\nconnections = 1\n[refusals]\nconnect = \"inside\"\n",
        ));
        gateway.reload();
        for name in ["limits", "refusals"] {
            assert!(gateway.wait_log(&format!("[{name}] has changed: a restart")), "{name}");
        }
        let _one = gateway.client().connect_tunnel("api.example.com:443");
        wait_admission(&gateway, API, true);
        assert!(gateway.problems().is_empty());
    });
}

#[test]
fn the_audit_file_is_opened_anew() {
    isolated(|| {
        let world = world!();
        let folder = network::folder();
        let (file, rotated) = (folder.join("audit.jsonl"), folder.join("audit.1"));
        let mut gateway = start(&world, &format!("[audit]\nfile = {file:?}\n"));
        let lines = |path: &std::path::Path| {
            fs::read_to_string(path).map_or(0, |text| text.lines().count())
        };
        let refused = |gateway: &Gateway| gateway.curl("http://localhost/").run().status;
        assert_eq!(refused(&gateway), 403);
        assert!(wait_until(SOON, || lines(&file) == 1));
        fs::rename(&file, &rotated).expect("writable");
        assert_eq!(refused(&gateway), 403);
        assert!(wait_until(SOON, || lines(&rotated) == 2), "the old file, until asked");
        gateway.reload();
        assert!(wait_until(SOON, || file.exists()));
        assert_eq!(refused(&gateway), 403);
        assert!(wait_until(SOON, || lines(&file) == 1));

        // One that can't be opened leaves the old one.
        fs::rename(&file, folder.join("audit.2")).expect("writable");
        fs::create_dir(&file).expect("writable");
        gateway.reload();
        assert!(wait_until(SOON, || gateway.problems().len() == 1));
        assert!(gateway.problems()[0].contains("the old one is written on"));
        assert_eq!(refused(&gateway), 403);
        assert_eq!(gateway.stop(), 0);
        assert_eq!((lines(&rotated), lines(&folder.join("audit.2"))), (2, 2));
    });
}
