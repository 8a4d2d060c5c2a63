//! Which addresses are never dialled, however they are spelled and whoever has them?

#[path = "addresses/asking.rs"]
mod asking;

use outgate_tests::prelude::*;

use asking::{assert_reached, assert_refused, bracketed, open};

#[test]
fn an_odd_spelling_of_an_address_is_no_host_at_all() {
    isolated(|| {
        let world = world!();
        let silent = ["127.0.0.1:80", "127.0.0.1:443"].map(|address| world.silent(address));
        let gateway = world.gateway(open());
        let odd = [
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.1.",
            "127.0.0.1..",
            "0",
            "00000127.0.0.1",
            "127.0.0.01",
            "127.0.0.256",
            "1.2.3.4.5",
            "11.22.33.044",
            "a.0x7f",
            "example.1",
            "4294967296",
        ];
        assert_refused(&gateway, &odd, "malformed_host");
        for host in
            ["127.0.0.1%00", "\u{2460}\u{2461}\u{2466}.0.0.1", "127.0.0.1 ", "127\u{3002}0.0.1"]
        {
            for door in Door::ALL {
                let refused = door.get(&gateway, host);
                assert_eq!(refused.status, 400, "{door:?} {host} {refused:?}");
            }
        }
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        assert_eq!(world.dns.questions(), []);
        let _origin = world.http("api.example.com").start();
        assert_reached(&gateway, "11.22.33.44");
    });
}

#[test]
fn no_spelling_of_an_address_opens_what_is_shut() {
    isolated(|| {
        let world = world!();
        let silent =
            ["127.0.0.1:80", "127.0.0.1:443", "[::1]:80", "[::1]:443", "169.254.169.254:80"]
                .map(|address| world.silent(address));
        let gateway = world.gateway(open());
        let shut = [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::FFFF:A9FE:A9FE]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::10.1.2.3]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[4000::1]",
            "[fe80::1]",
            "[fc00::1]",
            "[fec0::1]",
            "[ff02::1]",
        ];
        assert_refused(&gateway, &shut, "address_not_allowed");
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        let origins = ["11.22.33.44:80", "[2a00:1::1]:80"].map(|at| Origin::http(at).start());
        assert_reached(&gateway, "11.22.33.44");
        assert_reached(&gateway, "[::ffff:11.22.33.44]");
        assert_reached(&gateway, "[2A00:1:0::1]");
        assert_eq!(origins[1].requests()[0].header("host"), Some("[2a00:1::1]"));
    });
}

#[test]
fn an_ipv6_literal_keeps_its_port() {
    isolated(|| {
        let world = world!();
        let name = "2a00:1::1";
        let origin = Origin::https(&world.pki, name, "[2a00:1::1]:8443").start();
        let list = json!([{"domain": name, "ports": [8443]}]);
        let gateway = world.gateway(json!({"network": {"allowlist": list}}));
        for door in Door::TLS {
            let answer = door.get_port(&gateway, "[2a00:1::1]", 8443);
            assert_eq!(answer.status, 200, "{door:?} {answer:?}");
        }
        let sent = origin.requests();
        assert!(sent.iter().all(|request| request.header("host") == Some("[2a00:1::1]:8443")));
        let refused = Door::ConnectTls.get(&gateway, "[2a00:1::1]");
        assert_eq!(refused.header("outgate-reason"), Some("port_not_allowed"));
        let refused = Door::ConnectTls.get_port(&gateway, "[2a00:1::2]", 8443);
        assert_eq!(refused.header("outgate-reason"), Some("domain_not_allowed"));
    });
}

#[test]
fn no_sandbox_reaches_another_through_the_gateway() {
    isolated(|| {
        let world = world!();
        let folder = network::folder();
        for (name, list) in
            [("one", json!([{"domain": "*"}, {"domain": "10.20.9.9"}])), ("two", json!([]))]
        {
            let environment = json!({"network": {"allowlist": list}});
            std::fs::write(folder.join(format!("{name}.json")), environment.to_string())
                .expect("writable");
        }
        let others = ["10.20.0.3", "fd12::3", "2a00:1::3"];
        for (number, address) in others.iter().enumerate() {
            world.dns.name(&format!("s{number}.ok.example.test"), &[address]);
        }
        let silent = others.map(|address| world.silent(&format!("{}:80", bracketed(address))));
        let file = format!(
            "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\nenvironment = \"one\"\n\
             [[environment]]\nfile = \"{0}/one.json\"\nsource_addresses = [\"10.20.0.2/32\"]\n\
             [[environment]]\nfile = \"{0}/two.json\"\n\
             source_addresses = [\"10.20.0.3/32\", \"fd12::/64\", \"2a00:1::/64\"]\n\
             [addresses]\nallow = [\"10.0.0.0/8\", \"fd00::/8\"]\n",
            folder.display()
        );
        let builder = world.gateway_builder().configuration(&file);
        let gateway = builder.listeners_from_configuration().start();
        let literals = others.map(bracketed);
        let names = ["s0.ok.example.test", "s1.ok.example.test", "s2.ok.example.test"];
        let all: Vec<&str> = literals.iter().map(String::as_str).chain(names).collect();
        assert_refused(&gateway, &all, "address_not_allowed");
        assert_refused(&gateway, &["10.20.0.2"], "address_not_allowed");
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        let _neighbours = ["10.20.9.9", "2a00:2::3"].map(|address| Origin::http(address).start());
        assert_reached(&gateway, "10.20.9.9");
        assert_reached(&gateway, "[2a00:2::3]");
    });
}
