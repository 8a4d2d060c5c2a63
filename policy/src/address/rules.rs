//! What does the operator open and shut, on top of the classes?

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv6Net};

use super::class::{AddressClass, embedded_ipv4};
use super::set::AddressSet;
use super::{SYNTHETIC_IPV4, SYNTHETIC_IPV6};
use crate::problem::{Problem, Problems};

/// Both families of them are sandboxes' addresses whatever the operator says.
const SYNTHETIC: [IpNet; 2] = [IpNet::V4(SYNTHETIC_IPV4), IpNet::V6(SYNTHETIC_IPV6)];

/// The lengths that a NAT64 prefix can have (RFC 6052 §2.2).
const NAT64_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// The `[addresses]` table of the operator's file, and what the gateway knows of its sandboxes.
#[derive(Clone, Debug, Default)]
pub struct AddressConfig {
    /// Ranges to open, for instance a private network.
    pub allow: Vec<IpNet>,
    /// Ranges to shut, stronger than everything else.
    pub deny: Vec<IpNet>,
    /// Prefixes behind which this network's NAT64 translates to IPv4.
    pub nat64_prefixes: Vec<Ipv6Net>,
    /// Every `source_addresses`; the synthetic ranges are always among them.
    pub sandboxes: Vec<IpNet>,
    /// Single addresses with their port that are opened whatever their class is.
    pub dangerously_allow: Vec<SocketAddr>,
}

/// Which addresses may be dialled. The default opens nothing but the public internet.
#[derive(Clone, Debug)]
pub struct AddressRules {
    allow: AddressSet,
    deny: AddressSet,
    sandboxes: AddressSet,
    nat64_prefixes: Vec<Ipv6Net>,
    dangerously_allow: HashSet<SocketAddr>,
}

/// An address that is not dialled. For the log: the client learns `address_not_allowed` only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is not dialled: {class}")]
pub struct AddressRefusal {
    /// The address as it was about to be dialled.
    pub address: SocketAddr,
    /// Why.
    pub class: AddressClass,
}

impl AddressRules {
    /// Compiles the operator's rules. Fails on rules that can never have an effect.
    pub fn new(config: AddressConfig) -> Result<AddressRules, Problems> {
        let rules = AddressRules {
            allow: AddressSet::new(config.allow.iter().copied()),
            deny: AddressSet::new(config.deny.iter().copied()),
            sandboxes: AddressSet::new(config.sandboxes.iter().copied().chain(SYNTHETIC)),
            dangerously_allow: config
                .dangerously_allow
                .iter()
                .map(|at| SocketAddr::new(judged_as(at.ip(), &config.nat64_prefixes), at.port()))
                .collect(),
            nat64_prefixes: config.nat64_prefixes.clone(),
        };
        let problems: Vec<_> = nat64_problems(&config.nat64_prefixes)
            .chain(rules.allow_problems(&config.allow))
            .chain(rules.exception_problems(&config.dangerously_allow))
            .collect();
        if problems.is_empty() {
            Ok(rules)
        } else {
            Err(Problems { problems, warnings: Vec::new() })
        }
    }

    /// Whether this address may be dialled on this port.
    pub fn judge(&self, address: SocketAddr) -> Result<(), AddressRefusal> {
        let written = address.ip();
        let judged = judged_as(written, &self.nat64_prefixes);
        let refuse = |class| Err(AddressRefusal { address, class });
        // Both forms: an operator who shuts a NAT64 prefix means the addresses behind it.
        let is_in = |set: &AddressSet| set.contains(judged) || set.contains(written);

        if is_in(&self.deny) {
            return refuse(AddressClass::Denied);
        }
        if self.dangerously_allow.contains(&SocketAddr::new(judged, address.port())) {
            return Ok(());
        }
        if is_in(&self.sandboxes) {
            return refuse(AddressClass::Sandbox);
        }
        match AddressClass::of(judged) {
            None => Ok(()),
            Some(class) if class.opens_by_range() && self.allow.contains(judged) => Ok(()),
            Some(class) => refuse(class),
        }
    }

    /// Ranges in `allow` in which there is nothing that `allow` could open.
    fn allow_problems(&self, allow: &[IpNet]) -> impl Iterator<Item = Problem> {
        allow.iter().enumerate().filter_map(|(index, net)| {
            let (first, last) = (net.network(), net.broadcast());
            let class = AddressClass::of(first).filter(|class| !class.opens_by_range())?;
            // The classes that a range can't open are whole blocks: same class at both ends, and
            // no other class can lie between them, means the same class throughout.
            if AddressClass::of(last) != Some(class) {
                return None;
            }
            let hint = if class.never_works() {
                "no TCP connection can go there"
            } else {
                "name the one address and port in `dangerously_allow` if it must be"
            };
            let message = format!("{net}: a range opens no {class} address; {hint}");
            Some(Problem::new(format!("addresses.allow[{index}]"), message))
        })
    }

    fn exception_problems(&self, exceptions: &[SocketAddr]) -> impl Iterator<Item = Problem> {
        exceptions.iter().enumerate().filter_map(|(index, at)| {
            let judged = judged_as(at.ip(), &self.nat64_prefixes);
            let why = if at.port() == 0 {
                "0 is no port"
            } else if AddressClass::of(judged).is_some_and(AddressClass::never_works) {
                "no TCP connection can go there"
            } else if self.deny.contains(judged) || self.deny.contains(at.ip()) {
                "`deny` covers it and is stronger"
            } else {
                return None;
            };
            let place = format!("addresses.dangerously_allow[{index}]");
            Some(Problem::new(place, format!("{at}: can never work: {why}")))
        })
    }
}

impl Default for AddressRules {
    fn default() -> AddressRules {
        AddressRules {
            allow: AddressSet::default(),
            deny: AddressSet::default(),
            sandboxes: AddressSet::new(SYNTHETIC),
            nat64_prefixes: Vec::new(),
            dangerously_allow: HashSet::new(),
        }
    }
}

/// The address that a connection to `address` would reach.
fn judged_as(address: IpAddr, nat64_prefixes: &[Ipv6Net]) -> IpAddr {
    let IpAddr::V6(outer) = address else {
        return address;
    };
    let behind =
        |prefix: &Ipv6Net| prefix.contains(&outer).then(|| nat64_ipv4(outer, prefix.prefix_len()));
    embedded_ipv4(outer)
        .or_else(|| nat64_prefixes.iter().find_map(behind))
        .map_or(address, IpAddr::V4)
}

/// The IPv4 address after a prefix of this length; bits 64 to 71 are not part of it (RFC 6052
/// §2.2).
fn nat64_ipv4(address: Ipv6Addr, prefix_len: u8) -> Ipv4Addr {
    const U_OCTET: usize = 8;
    let octets = address.octets();
    let mut inner = [0u8; 4];
    let after_prefix = (usize::from(prefix_len / 8)..16).filter(|at| *at != U_OCTET);
    for (octet, at) in inner.iter_mut().zip(after_prefix) {
        *octet = octets[at];
    }
    Ipv4Addr::from(inner)
}

fn nat64_problems(prefixes: &[Ipv6Net]) -> impl Iterator<Item = Problem> {
    prefixes.iter().enumerate().filter_map(|(index, prefix)| {
        let fits = NAT64_LENGTHS.contains(&prefix.prefix_len());
        let place = format!("addresses.nat64_prefixes[{index}]");
        let message = format!("{prefix}: a NAT64 prefix is 32, 40, 48, 56, 64 or 96 bits long");
        (!fits).then(|| Problem::new(place, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(list: &[&str]) -> Vec<IpNet> {
        list.iter().map(|net| net.parse().expect("a range")).collect()
    }

    fn judge(rules: &AddressRules, at: &str) -> Result<(), AddressClass> {
        rules.judge(at.parse().expect("an address")).map_err(|refusal| refusal.class)
    }

    fn rules(config: AddressConfig) -> AddressRules {
        AddressRules::new(config).expect("rules that can work")
    }

    #[test]
    fn opens_only_the_private_range_that_is_named() {
        let rules = rules(AddressConfig {
            allow: nets(&["10.1.2.0/24", "fd12::/16"]),
            ..Default::default()
        });
        for open in [
            "10.1.2.3:443",
            "[::ffff:10.1.2.3]:443",
            "[64:ff9b::10.1.2.3]:443",
            "[fd12::1]:1",
            "11.22.33.44:80",
        ] {
            assert_eq!(judge(&rules, open), Ok(()), "{open}");
        }
        assert_eq!(judge(&rules, "10.1.3.0:443"), Err(AddressClass::Private));
        assert_eq!(judge(&rules, "[fd13::1]:443"), Err(AddressClass::Private));
    }

    #[test]
    fn keeps_loopback_metadata_and_sandboxes_shut_under_any_range() {
        let rules = rules(AddressConfig {
            allow: nets(&["0.0.0.0/0", "::/0", "10.0.0.0/8"]),
            sandboxes: nets(&["10.20.0.2/32", "fd99::/64"]),
            ..Default::default()
        });
        let shut = [
            "127.0.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "10.20.0.2",
            "198.18.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "255.255.255.255",
        ];
        for address in shut {
            assert!(judge(&rules, &format!("{address}:443")).is_err(), "{address}");
            assert!(judge(&rules, &format!("[::ffff:{address}]:443")).is_err(), "mapped {address}");
        }
        for address in [
            "::1",
            "::",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd99::1",
            "fd6f:7574:6761:7465::1",
            "ff02::1",
        ] {
            assert!(judge(&rules, &format!("[{address}]:443")).is_err(), "{address}");
        }
        assert_eq!(judge(&rules, "10.20.0.3:443"), Ok(()));
        assert_eq!(judge(&rules, "169.254.1.1:443"), Ok(()));
    }

    #[test]
    fn opens_a_dangerous_address_on_its_port_alone() {
        let rules = rules(AddressConfig {
            dangerously_allow: ["127.0.0.1:8443", "[::ffff:169.254.169.254]:80"]
                .map(|at| at.parse().expect("an address"))
                .to_vec(),
            ..Default::default()
        });
        for open in ["127.0.0.1:8443", "[::ffff:127.0.0.1]:8443", "169.254.169.254:80"] {
            assert_eq!(judge(&rules, open), Ok(()), "{open}");
        }
        assert_eq!(judge(&rules, "127.0.0.1:8444"), Err(AddressClass::Loopback));
        assert_eq!(judge(&rules, "127.0.0.2:8443"), Err(AddressClass::Loopback));
    }

    #[test]
    fn lets_deny_win_over_everything() {
        let rules = rules(AddressConfig {
            allow: nets(&["10.0.0.0/8"]),
            deny: nets(&["10.1.0.0/16", "11.22.33.44/32", "64:ff9b::/96"]),
            ..Default::default()
        });
        for shut in [
            "10.1.2.3:443",
            "11.22.33.44:443",
            "[::ffff:11.22.33.44]:443",
            "[64:ff9b::8.8.8.8]:443",
        ] {
            assert_eq!(judge(&rules, shut), Err(AddressClass::Denied), "{shut}");
        }
        assert_eq!(judge(&rules, "8.8.8.8:443"), Ok(()));
    }

    #[test]
    fn reads_ipv4_behind_the_networks_own_nat64_prefix() {
        let examples = [
            ("2a00:db8::/32", "2a00:db8:a9fe:a9fe::"),
            ("2a00:db8:100::/40", "2a00:db8:1a9:fea9:fe::"),
            ("2a00:db8:122::/48", "2a00:db8:122:a9fe:a9:fe00::"),
            ("2a00:db8:122:300::/56", "2a00:db8:122:3a9:fe:a9fe::"),
            ("2a00:db8:122:344::/64", "2a00:db8:122:344:a9:fea9:fe00::"),
            ("2a00:db8:122:344::/96", "2a00:db8:122:344::169.254.169.254"),
        ];
        for (prefix, address) in examples {
            let rules = rules(AddressConfig {
                nat64_prefixes: vec![prefix.parse().expect("a prefix")],
                ..Default::default()
            });
            let at = format!("[{address}]:80");
            assert_eq!(judge(&rules, &at), Err(AddressClass::Metadata), "{prefix}");
            assert_eq!(judge(&AddressRules::default(), &at), Ok(()), "{prefix} unknown");
        }
    }

    #[test]
    fn refuses_rules_that_can_never_work() {
        let config = AddressConfig {
            allow: nets(&["127.0.0.0/8", "169.254.169.254/32", "ff00::/8", "10.0.0.0/8"]),
            deny: nets(&["10.9.0.0/16"]),
            nat64_prefixes: vec!["2a00::/33".parse().expect("a prefix")],
            dangerously_allow: ["10.9.1.1:1", "224.0.0.1:1", "127.0.0.1:0", "127.0.0.1:1"]
                .map(|at| at.parse().expect("an address"))
                .to_vec(),
            ..Default::default()
        };
        let problems = AddressRules::new(config).expect_err("none of these can work").problems;
        let places: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(
            places,
            [
                "addresses.nat64_prefixes[0]",
                "addresses.allow[0]",
                "addresses.allow[1]",
                "addresses.allow[2]",
                "addresses.dangerously_allow[0]",
                "addresses.dangerously_allow[1]",
                "addresses.dangerously_allow[2]",
            ]
        );
    }
}
