//! Is every special-purpose block shut whole, and nothing beside it?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use outgate_policy::{AddressConfig, AddressRules};
use proptest::prelude::*;

const IPV4_BLOCKS: [&str; 21] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    // Not in the registry: a metadata service in public space.
    "168.63.129.16/32",
    "255.255.255.254/31",
];

/// Within 2000::/3, outside of which nothing is open.
const IPV6_BLOCKS: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

fn is_open(address: IpAddr) -> bool {
    AddressRules::default().judge(SocketAddr::new(address, 443)).is_ok()
}

fn ipv4_blocks() -> Vec<Ipv4Net> {
    IPV4_BLOCKS.iter().map(|block| block.parse().expect("a block")).collect()
}

fn expected_ipv4(address: Ipv4Addr) -> bool {
    !ipv4_blocks().iter().any(|block| block.contains(&address))
}

fn expected_ipv6(address: Ipv6Addr) -> bool {
    let within = |block: &str| block.parse::<Ipv6Net>().expect("a block").contains(&address);
    within("2000::/3") && !IPV6_BLOCKS.iter().any(|block| within(block))
}

#[test]
fn shuts_every_ipv4_block_from_its_first_to_its_last_address() {
    for block in ipv4_blocks() {
        for inside in [block.network(), block.broadcast()] {
            assert!(!is_open(inside.into()), "{inside} of {block}");
            let mapped = inside.to_ipv6_mapped();
            assert!(!is_open(mapped.into()), "{mapped} of {block}");
        }
        let before = block.network().to_bits().checked_sub(1).map(Ipv4Addr::from);
        let after = block.broadcast().to_bits().checked_add(1).map(Ipv4Addr::from);
        for neighbour in before.into_iter().chain(after) {
            let expected = expected_ipv4(neighbour);
            assert_eq!(is_open(neighbour.into()), expected, "{neighbour} beside {block}");
            assert_eq!(is_open(neighbour.to_ipv6_mapped().into()), expected, "mapped {neighbour}");
        }
    }
}

#[test]
fn leaves_the_neighbours_open() {
    let open = [
        "9.255.255.255",
        "11.0.0.0",
        "1.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "191.255.255.255",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "168.63.129.17",
        "2000::",
        "2001:200::",
        "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",
        "2001:ffff::",
        "2003::",
        "3ffe:ffff::",
        "3fff:1000::",
        "3fff:ffff::1",
        "2a00:1450::1",
    ];
    for address in open {
        assert!(is_open(address.parse().expect("an address")), "{address}");
    }
}

#[test]
fn shuts_every_ipv6_block_from_its_first_to_its_last_address() {
    let outside = [
        "::/128",
        "::1/128",
        "100::/64",
        "5f00::/16",
        "64:ff9b:1::/48",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
        "1000::/4",
        "4000::/3",
        "e000::/4",
    ];
    for block in IPV6_BLOCKS.iter().chain(&outside) {
        let block: Ipv6Net = block.parse().expect("a block");
        for inside in [block.network(), block.broadcast()] {
            assert!(!is_open(inside.into()), "{inside} of {block}");
        }
        let before = block.network().to_bits().checked_sub(1).map(Ipv6Addr::from);
        let after = block.broadcast().to_bits().checked_add(1).map(Ipv6Addr::from);
        for neighbour in before.into_iter().chain(after) {
            assert_eq!(is_open(neighbour.into()), expected_ipv6(neighbour), "{neighbour}");
        }
    }
}

#[test]
fn opens_public_ipv4_behind_a_translator_and_nothing_else() {
    for prefix in ["::ffff:", "::", "64:ff9b::"] {
        let at = |inner: &str| format!("{prefix}{inner}").parse().expect("an address");
        assert!(is_open(at("11.22.33.44")), "{prefix}");
        for inner in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "168.63.129.16", "0.0.0.0"] {
            assert!(!is_open(at(inner)), "{prefix}{inner}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_list_of_blocks_everywhere(bits in any::<u32>()) {
        let address = Ipv4Addr::from(bits);
        prop_assert_eq!(is_open(address.into()), expected_ipv4(address));
    }

    #[test]
    fn agrees_with_the_list_of_ipv6_blocks(bits in any::<u128>(), short in any::<u16>()) {
        // Random bits nearly never fall into the blocks, so their first parts are drawn too.
        for first in [(bits >> 112) as u16, 0x2000, 0x2001, 0x2002, 0x3fff, short] {
            let address = Ipv6Addr::from_bits((bits << 16 >> 16) | (u128::from(first) << 112));
            // Embedded IPv4 and metadata are judged otherwise, and have tests of their own.
            if first != 0 && first != 0x64 && first != 0xfd00 && first != 0xfd20 {
                prop_assert_eq!(is_open(address.into()), expected_ipv6(address), "{}", address);
            }
        }
    }

    #[test]
    fn opens_by_a_range_nothing_outside_of_it(bits in any::<u32>(), prefix in 0u8..=32, other in any::<u32>()) {
        let net = Ipv4Net::new(Ipv4Addr::from(bits), prefix).expect("a prefix").trunc();
        let Ok(rules) = AddressRules::new(AddressConfig {
            allow: vec![IpNet::V4(net)],
            ..AddressConfig::default()
        }) else {
            return Ok(());
        };
        let other = Ipv4Addr::from(other);
        if !net.contains(&other) {
            let judged = rules.judge(SocketAddr::new(other.into(), 443)).is_ok();
            prop_assert_eq!(judged, expected_ipv4(other));
        }
        for shut in ["127.0.0.1", "169.254.169.254", "168.63.129.16", "198.18.0.1", "0.0.0.0"] {
            let shut = SocketAddr::new(shut.parse().expect("an address"), 443);
            prop_assert!(rules.judge(shut).is_err(), "{}", shut);
        }
    }
}
