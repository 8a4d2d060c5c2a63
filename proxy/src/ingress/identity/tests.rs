//! Who is let in as whom?

use outgate_certs::{Authority, OriginRoots};
use outgate_policy::{AddressRules, Policy};

use super::*;
use crate::limits::Limits;
use crate::snapshot::Snapshot;

fn environment(id: &str) -> Arc<Environment> {
    let folder = tempfile::tempdir().expect("a folder");
    Authority::open_or_create(folder.path()).expect("a CA");
    let mut roots = OriginRoots::none();
    roots.add_pem(&folder.path().join("ca.pem")).expect("roots");
    let policy = Arc::new(Policy::deny_all());
    let snapshot =
        Snapshot { policy, addresses: AddressRules::default(), profiles: Arc::default() };
    let id = EnvironmentId::parse(id).expect("an id");
    Arc::new(Environment::new(&id, snapshot, &roots, &Limits::default()).expect("TLS"))
}

fn by_address(blocks: &[&str]) -> Clients {
    let blocks = blocks.iter().map(|block| block.parse().expect("a block"));
    Clients { source_addresses: blocks.collect(), ..Clients::default() }
}

fn by_interface(name: &std::ffi::CStr, blocks: &[&str]) -> Clients {
    Clients { interface: Some(name.into()), ..by_address(blocks) }
}

fn with_token() -> Clients {
    Clients { token: Token::new("secret"), ..Clients::default() }
}

/// Environments with these ids.
fn environments(all: &[(&str, Clients)]) -> Environments {
    let mut environments = Environments::default();
    for (id, clients) in all {
        environments.add(environment(id), clients.clone());
    }
    environments
}

/// Whose a connection is that comes from `client` by loopback's interface: `+` stands before an id
/// that a token must prove, `!` for nobody, `?` for unknown.
fn whose(environments: &Environments, ownership: Ownership, public: bool, client: &str) -> String {
    let owner = Owner { ownership, public };
    let client = Some(client.parse().expect("an address"));
    match environments.of_connection(&owner, client, Some(Interface::loopback())) {
        Provenance::Known(environment) => environment.id().to_string(),
        Provenance::Unproven(environment) => format!("+{}", environment.id()),
        Provenance::Nobody => "!".to_owned(),
        Provenance::Unknown => "?".to_owned(),
    }
}

fn named(id: &str) -> Ownership {
    Ownership::Named(EnvironmentId::parse(id).expect("an id"))
}

#[test]
fn a_listener_is_the_only_environment_s_while_there_never_was_another() {
    let one = environments(&[("one", Clients::default())]);
    for ownership in [Ownership::Only, Ownership::OnlyIfUnprovable, named("one")] {
        assert_eq!(whose(&one, ownership, false, "127.0.0.1"), "one");
    }
    assert_eq!(whose(&one, Ownership::Nobody, false, "127.0.0.1"), "?");
    let known = environments(&[("one", with_token())]);
    assert_eq!(whose(&known, Ownership::Only, false, "127.0.0.1"), "one");
    assert_eq!(whose(&known, Ownership::OnlyIfUnprovable, false, "127.0.0.1"), "?");
    let both = environments(&[("one", Clients::default()), ("two", Clients::default())]);
    assert_eq!(whose(&both, Ownership::Only, false, "127.0.0.1"), "?");
    assert_eq!(whose(&both, named("two"), false, "127.0.0.1"), "two");
    let mut left = Environments::new(true);
    left.add(environment("one"), Clients::default());
    assert_eq!(whose(&left, Ownership::Only, false, "127.0.0.1"), "?");
}

#[test]
fn a_listener_whose_environment_is_gone_lets_nobody_in() {
    let one = environments(&[("one", by_address(&["10.0.0.0/8"]))]);
    assert_eq!(whose(&one, named("two"), false, "127.0.0.1"), "!");
    assert_eq!(whose(&one, named("two"), false, "10.0.0.1"), "!");
}

#[test]
fn a_listener_that_others_reach_proves_nothing() {
    let one = environments(&[("one", by_address(&["10.0.0.0/8"])), ("two", with_token())]);
    assert_eq!(whose(&one, named("one"), true, "10.0.0.1"), "one");
    assert_eq!(whose(&one, named("one"), true, "11.0.0.1"), "+one");
    assert_eq!(whose(&one, named("two"), true, "10.0.0.1"), "!");
}

#[test]
fn the_narrower_block_decides() {
    let all = [
        ("wide", by_address(&["10.0.0.0/8", "fd00::/8"])),
        ("narrow", by_address(&["10.1.0.0/16"])),
        ("one", by_address(&["10.1.2.3/32"])),
    ];
    let environments = environments(&all);
    for (client, id) in [
        ("10.9.9.9", "wide"),
        ("10.1.9.9", "narrow"),
        ("10.1.2.3", "one"),
        ("::ffff:10.1.2.3", "one"),
        ("fd00::1", "wide"),
        ("11.0.0.1", "?"),
    ] {
        assert_eq!(whose(&environments, Ownership::Nobody, true, client), id, "{client}");
    }
}

#[test]
fn a_block_of_two_environments_is_nobody_s() {
    let same = || by_address(&["10.1.0.0/16"]);
    let all = [("one", same()), ("two", same()), ("wide", by_address(&["10.0.0.0/8"]))];
    let all = environments(&all);
    assert_eq!(whose(&all, Ownership::Nobody, true, "10.1.2.3"), "!");
    assert_eq!(whose(&all, Ownership::Nobody, true, "10.2.2.3"), "wide");
    let twice =
        environments(&[("one", by_interface(c"lo", &[])), ("two", by_interface(c"lo", &[]))]);
    assert_eq!(whose(&twice, Ownership::Nobody, true, "10.1.2.3"), "!");
}

#[test]
fn an_interface_that_is_somebody_s_lets_nobody_else_in() {
    let mine = by_interface(c"lo", &["10.1.0.0/16"]);
    let other = by_address(&["10.0.0.0/8", "10.1.2.3/32"]);
    let both = environments(&[("mine", mine), ("other", other.clone())]);
    assert_eq!(whose(&both, Ownership::Nobody, true, "10.1.2.3"), "mine");
    assert_eq!(whose(&both, Ownership::Nobody, true, "10.2.0.1"), "!");
    let elsewhere = by_interface(c"veth-none", &["10.1.0.0/16"]);
    let both = environments(&[("elsewhere", elsewhere), ("other", other)]);
    assert_eq!(whose(&both, Ownership::Nobody, true, "10.1.9.9"), "other");
    let any = environments(&[("any", by_interface(c"lo", &[]))]);
    assert_eq!(whose(&any, Ownership::Nobody, true, "192.0.2.1"), "any");
}

#[test]
fn an_interface_that_can_t_be_told_is_nobody_s_where_interfaces_count() {
    let owner = Owner { ownership: Ownership::Nobody, public: true };
    let client = Some("10.0.0.1".parse().expect("an address"));
    let by_interface = by_interface(c"veth-none", &[]);
    let both = environments(&[("one", by_interface), ("two", by_address(&["10.0.0.0/8"]))]);
    let untold = Some(Interface::untold());
    assert!(matches!(both.of_connection(&owner, client, untold), Provenance::Nobody));
    let two = environments(&[("two", by_address(&["10.0.0.0/8"]))]);
    assert!(matches!(two.of_connection(&owner, client, untold), Provenance::Known(_)));
}

#[test]
fn reads_basic_credentials_whatever_the_case_of_the_scheme() {
    let claim = basic(b"bAsIc ZTE6dG9rOmVu").expect("credentials");
    assert_eq!((claim.user.as_slice(), claim.password.as_slice()), (&b"e1"[..], &b"tok:en"[..]));
}

#[test]
fn refuses_credentials_that_are_not_basic() {
    for value in ["", "Basic", "Basic ", "Bearer ZTE6eA==", "Basic !!!!", "Basic ZTE="] {
        assert!(basic(value.as_bytes()).is_none(), "{value:?}");
    }
}
