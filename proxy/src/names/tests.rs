use super::*;

fn name(text: &str) -> Name {
    match Host::from_wire(text.as_bytes()).expect("a host") {
        Host::Name(name) => name,
        Host::Address(address) => panic!("{address} is no name"),
    }
}

fn give(names: &Names, text: &str) -> Synthetic {
    names.address_of(&name(text)).expect("a free address")
}

fn meaning(names: &Names, address: impl Into<IpAddr>) -> Option<(String, Hold)> {
    match names.name_of(address.into()) {
        Meaning::Name(host, hold) => Some((host.to_string(), hold)),
        Meaning::NotSynthetic | Meaning::Unknown => None,
    }
}

fn asked(names: &Names, address: impl Into<IpAddr>) -> Option<String> {
    meaning(names, address).map(|(name, _)| name)
}

#[test]
fn gives_one_name_the_same_addresses_in_both_families_every_time() {
    let names = Names::new(8);
    let given = give(&names, "api.example.com");
    give(&names, "other.example.com");
    assert_eq!(give(&names, "api.example.com"), given);
    for address in [given.v4.into(), given.v6.into(), given.v4.to_ipv6_mapped().into()] {
        let address: IpAddr = address;
        assert_eq!(asked(&names, address).as_deref(), Some("api.example.com"), "{address}");
    }
}

#[test]
fn knows_no_name_behind_addresses_that_were_not_given_out() {
    let names = Names::new(8);
    let unknown = |address: &str| {
        matches!(names.name_of(address.parse().expect("an address")), Meaning::Unknown)
    };
    let given = give(&names, "api.example.com");
    let beside = Ipv4Addr::from(given.v4.to_bits() ^ 1);
    let far = Ipv6Addr::from(given.v6.to_bits() | 1 << 32);
    assert!(matches!(names.name_of(beside.into()), Meaning::Unknown));
    assert!(matches!(names.name_of(far.into()), Meaning::Unknown));
    for own in ["198.18.0.0", "198.18.0.1", "198.18.0.255", "198.19.255.255"] {
        assert!(unknown(own) && unknown(&format!("::ffff:{own}")), "{own}");
    }
    assert!(unknown("fd6f:7574:6761:7465::1"));
    assert!(unknown("fd6f:7574:6761:7465:ffff:ffff:ffff:ffff"));
    for other in ["11.22.33.44", "198.17.255.255", "198.20.0.0", "fd6f:7574:6761:7466::1"] {
        let address = other.parse().expect("an address");
        assert!(matches!(names.name_of(address), Meaning::NotSynthetic), "{other}");
    }
}

#[test]
fn says_nothing_of_another_environments_names() {
    let (one, two) = (Names::new(8), Names::new(8));
    let given = give(&one, "secret.example.com");
    assert_eq!(asked(&two, given.v4), None);
    give(&two, "mine.example.com");
    assert_ne!(asked(&two, given.v4).as_deref(), Some("secret.example.com"));
}

#[test]
fn takes_the_address_of_the_oldest_idle_name_once_none_is_fresh() {
    let names = Names::new(3);
    let [a, b, c] = ["a.test", "b.test", "c.test"].map(|name| give(&names, name));
    assert!(a != b && b != c && a != c);
    // Asked again, `a` is younger than `b`; connected to, `b` is younger than `c`.
    give(&names, "a.test");
    drop(meaning(&names, b.v4).expect("remembered"));
    assert_eq!(give(&names, "d.test"), c);
    assert_eq!(asked(&names, c.v6).as_deref(), Some("d.test"));
    assert_eq!(give(&names, "e.test"), a);
    assert_eq!(asked(&names, b.v4).as_deref(), Some("b.test"));
}

#[test]
fn keeps_a_name_at_its_address_while_a_connection_lives() {
    let names = Names::new(2);
    let held = give(&names, "held.test");
    let (_, first) = meaning(&names, held.v4).expect("remembered");
    let (_, second) = meaning(&names, held.v6).expect("remembered");
    for round in 0..1000 {
        assert_ne!(give(&names, &format!("n{round}.test")), held);
    }
    drop(first);
    give(&names, "one-more.test");
    assert_eq!(asked(&names, held.v4).as_deref(), Some("held.test"));
    drop(second);
    give(&names, "x.test");
    give(&names, "y.test");
    assert_ne!(asked(&names, held.v4).as_deref(), Some("held.test"));
}

#[test]
fn gives_nothing_out_while_every_address_has_connections() {
    let names = Names::new(2);
    let holds = ["a.test", "b.test"].map(|name| meaning(&names, give(&names, name).v4));
    assert_eq!(names.address_of(&name("c.test")), Err(AllHeld(2)));
    assert_eq!(asked(&names, give(&names, "a.test").v4).as_deref(), Some("a.test"));
    drop(holds);
    assert!(names.address_of(&name("c.test")).is_ok());
}

#[test]
fn stays_within_its_bound_whatever_is_asked() {
    let names = Names::new(100);
    for round in 0..100_000 {
        give(&names, &format!("n{round}.test"));
    }
    let pool = lock(&names.pool);
    assert_eq!((pool.names.len(), pool.by_name.len(), pool.idle.len()), (100, 100, 100));
}

#[test]
fn gives_out_every_address_of_the_range_but_its_own() {
    let names = Names::new(usize::MAX);
    let mut numbers: Vec<u32> =
        (0..MOST_NAMES).map(|n| give(&names, &format!("n{n}.test")).v4.to_bits()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let first = Ipv4Addr::new(198, 18, 1, 0).to_bits();
    let last = Ipv4Addr::new(198, 19, 255, 254).to_bits();
    assert_eq!(numbers.len(), MOST_NAMES as usize);
    assert_eq!((numbers.first(), numbers.last()), (Some(&first), Some(&last)));
}
