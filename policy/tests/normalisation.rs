//! Is a host one value however it is spelt?

use outgate_policy::{Authority, Host, HostPattern, parse_port};
use proptest::prelude::*;

/// Text near the grammar of hosts: most of it valid, some just outside.
fn hostish() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-zA-Z0-9_-]{1,12}(\\.[a-zA-Z0-9_-]{1,12}){0,4}\\.?",
        1 => "(xn--[a-z0-9-]{1,10}\\.){1,2}test",
        1 => "[0-9]{1,4}(\\.[0-9x]{1,4}){0,4}",
        1 => "\\[[0-9a-f:.]{2,20}\\]",
        1 => any::<[u8; 16]>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from(bits))),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn normalises_once_and_for_all(text in hostish()) {
        if let Ok(host) = Host::from_wire(text.as_bytes()) {
            let shown = host.to_string();
            prop_assert_eq!(Host::from_wire(shown.as_bytes()), Ok(host.clone()));
            prop_assert_eq!(Host::from_config(&shown), Ok(host.clone()));
            // The shape that everything behind relies on.
            if let Some(name) = host.name() {
                let name = name.as_str();
                prop_assert!(name.len() <= 253);
                for label in name.split('.') {
                    prop_assert!((1..=63).contains(&label.len()));
                    prop_assert!(label.bytes().all(
                        |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
                    ));
                }
            }
        }
    }

    #[test]
    fn reads_the_same_host_in_a_file_and_on_the_wire(text in hostish()) {
        let config = Host::from_config(&text);
        if let Ok(wire) = Host::from_wire(text.as_bytes()) {
            prop_assert_eq!(config, Ok(wire));
        }
    }

    #[test]
    fn ignores_case_and_one_final_dot(name in "[a-z]{1,10}(\\.[a-z]{1,10}){0,3}") {
        let plain = Host::from_wire(name.as_bytes());
        prop_assert!(plain.is_ok());
        prop_assert_eq!(Host::from_wire(name.to_uppercase().as_bytes()), plain.clone());
        prop_assert_eq!(Host::from_wire(format!("{name}.").as_bytes()), plain);
        let two_dots = format!("{name}..");
        prop_assert!(Host::from_wire(two_dots.as_bytes()).is_err());
    }

    #[test]
    fn brings_international_names_to_their_a_labels(name in "[a-zäöüßéñ中文]{1,10}\\.[a-zäöü]{2,6}") {
        if let Ok(host) = Host::from_config(&name) {
            prop_assert_eq!(Host::from_wire(host.to_string().as_bytes()), Ok(host));
        }
    }

    #[test]
    fn gives_an_authority_back_as_it_was(text in hostish(), port in any::<u16>()) {
        let with_port = Authority::from_wire(format!("{text}:{port}").as_bytes());
        match (Host::from_wire(text.as_bytes()), port) {
            (Ok(host), 1..) => {
                let authority = with_port.expect("host and port are valid");
                prop_assert_eq!(&authority.host, &host);
                prop_assert_eq!(authority.port, Some(port));
                let shown = format!("{host}:{port}");
                prop_assert_eq!(Authority::from_wire(shown.as_bytes()), Ok(authority));
            }
            _ => prop_assert!(with_port.is_err()),
        }
    }

    #[test]
    fn reads_exactly_the_canonical_ports(text in "[0-9+ -]{0,7}") {
        let canonical = text.parse::<u16>().ok().filter(|port| *port > 0 && port.to_string() == text);
        prop_assert_eq!(parse_port(text.as_bytes()).ok(), canonical);
    }

    #[test]
    fn never_fails_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Authority::from_wire(&bytes);
        let _ = Host::from_wire(&bytes);
        if let Ok((pattern, _)) = HostPattern::parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(HostPattern::parse(&pattern.to_string()).is_ok());
        }
    }
}
