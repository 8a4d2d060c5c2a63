//! What may the operator's file open and shut?

#[path = "addresses/asking.rs"]
mod asking;

use outgate_tests::prelude::*;

use asking::{assert_reached, assert_refused, bracketed, open, reason};

fn addresses(table: &str) -> String {
    format!("[addresses]\n{table}\n")
}

#[test]
fn the_operator_opens_private_ranges_and_shuts_public_ones() {
    isolated(|| {
        let world = world!();
        for (name, address) in [
            ("in.ok.example.test", "10.1.2.3"),
            ("out.ok.example.test", "10.1.3.3"),
            ("shut.ok.example.test", "10.1.2.66"),
            ("far.ok.example.test", "11.22.33.66"),
            ("six.ok.example.test", "fd12::1"),
        ] {
            world.name(name, address);
        }
        let origins =
            ["in.ok.example.test", "six.ok.example.test"].map(|name| world.http(name).start());
        let silent = ["10.1.3.3", "10.1.2.66", "11.22.33.66"]
            .map(|address| world.silent(&format!("{address}:80")));
        let environment = json!({"network": {"allowlist": [
            {"domain": "*"}, {"domain": "*.ok.example.test"}, {"domain": "10.1.2.3"},
        ]}});
        let table = addresses(
            "allow = [\"10.1.2.0/24\", \"fd12::/64\"]\ndeny = [\"10.1.2.66\", \"11.22.33.64/28\"]",
        );
        let gateway =
            world.gateway_builder().configuration(&table).environment(&environment).start();
        let shut =
            ["out.ok.example.test", "shut.ok.example.test", "far.ok.example.test", "11.22.33.66"];
        assert_refused(&gateway, &shut, "address_not_allowed");
        for host in ["in.ok.example.test", "six.ok.example.test", "10.1.2.3"] {
            assert_reached(&gateway, host);
        }
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        assert!(origins.iter().all(|origin| origin.connections() > 0));
        let default = world.gateway(json!({"network": {"allowlist": [{"domain": "*"}]}}));
        assert_refused(
            &default,
            &["in.ok.example.test", "six.ok.example.test"],
            "address_not_allowed",
        );
    });
}

#[test]
fn no_range_opens_metadata_loopback_or_a_sandbox() {
    isolated(|| {
        let world = world!();
        let metadata = [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.169.253",
            "192.0.0.192",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd00:ec2::23",
            "fd20:ce::254",
            "127.0.0.1",
            "::1",
            "198.18.0.7",
        ];
        let names: Vec<String> =
            (0..metadata.len()).map(|number| format!("m{number}.ok.example.test")).collect();
        names.iter().zip(&metadata).for_each(|(name, address)| world.dns.name(name, &[address]));
        world.name("in.ok.example.test", "10.1.2.3");
        let _origin = world.http("in.ok.example.test").start();
        let silent = world.silent("169.254.169.254:80");
        let table = addresses(
            "allow = [\"0.0.0.0/0\", \"::/0\", \"10.0.0.0/8\", \"169.254.0.0/16\", \"fd00::/8\"]",
        );
        let gateway = world.gateway_builder().configuration(&table).environment(&open()).start();
        assert_refused(
            &gateway,
            &metadata.map(bracketed).iter().map(String::as_str).collect::<Vec<_>>(),
            "address_not_allowed",
        );
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_refused(&gateway, &names, "address_not_allowed");
        assert_eq!(silent.connections(), 0);
        assert_reached(&gateway, "in.ok.example.test");
    });
}

#[test]
fn one_address_is_opened_with_its_port_and_that_is_said() {
    isolated(|| {
        let world = world!();
        world.name("meta.ok.example.test", "169.254.169.254");
        world.name("lo.ok.example.test", "127.0.0.9");
        world.name("shut.ok.example.test", "127.0.0.8");
        let origins =
            ["meta.ok.example.test", "lo.ok.example.test"].map(|name| world.http(name).start());
        let silent =
            ["169.254.169.254:8080", "127.0.0.9:8080", "127.0.0.8:80"].map(|at| world.silent(at));
        let environment = json!({"network": {"allowlist": [
            {"domain": "*.ok.example.test", "ports": [80, 8080]},
            {"domain": "169.254.169.254", "ports": [80]},
        ]}});
        let table = addresses("dangerously_allow = [\"169.254.169.254:80\", \"127.0.0.9:80\"]");
        let gateway =
            world.gateway_builder().configuration(&table).environment(&environment).start();
        for host in ["meta.ok.example.test", "lo.ok.example.test", "169.254.169.254"] {
            assert_reached(&gateway, host);
        }
        for (host, port) in [
            ("meta.ok.example.test", 8080),
            ("lo.ok.example.test", 8080),
            ("shut.ok.example.test", 80),
        ] {
            let refused = reason(&gateway, host, port);
            assert_eq!(refused.as_deref(), Some("address_not_allowed"), "{host}:{port}");
        }
        assert!(origins.iter().all(|origin| origin.connections() > 0));
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        let said = gateway.logs().iter().filter(|line| line.contains("dangerously_allow")).count();
        assert_eq!(said, 2, "{:?}", gateway.logs());
    });
}

#[test]
fn an_address_that_can_never_be_dialled_is_an_error_in_the_file() {
    isolated(|| {
        let world = world!();
        let start = |domain: &str, table: &str| {
            let environment = json!({"network": {"allowlist": [{"domain": domain}]}});
            let builder = world.gateway_builder().configuration(&addresses(table));
            builder.environment(&environment).start()
        };
        for (domain, table) in [
            ("169.254.1.1", ""),
            ("127.0.0.1", ""),
            ("[::1]", ""),
            ("localhost", ""),
            ("x.localhost", "dangerously_allow = [\"127.0.0.1:80\"]"),
            ("169.254.1.1", "allow = [\"169.254.2.0/24\"]"),
        ] {
            let gateway = start(domain, table);
            assert!(gateway.wait_log("everything is denied to it"), "{domain} {table}");
            assert!(reason(&gateway, domain, 80).is_some(), "{domain} {table}");
        }
        for (domain, table) in [
            ("169.254.1.1", "allow = [\"169.254.0.0/16\"]"),
            ("10.1.2.3", "allow = [\"10.1.2.0/24\"]"),
            ("11.22.33.44", ""),
        ] {
            let gateway = start(domain, table);
            let refused = reason(&gateway, domain, 80);
            assert_eq!(refused.as_deref(), Some("origin_connect"), "{domain} {table}");
        }
    });
}
