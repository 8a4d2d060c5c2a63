//! Does the operator's file mean what SPEC 12 says?

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::cli::OperatorArgs;

const EVERYTHING: &str = r#"
state_dir = "state"
[[listener]]
kind = "explicit"
bind = "127.0.0.1:3128"
environment = "one"
[[listener]]
kind = "explicit"
bind = "unix:one.sock"
[[listener]]
kind = "management"
bind = "unix:m.sock"
[[environment]]
file = "one.json"
source_addresses = ["10.20.0.2/32", "2001:4860::7"]
interface = "veth-one"
token_file = "one.token"
namespaces_of = "one.pid"
[[environment]]
directory = "environments"
[ca]
certificate = "ca.pem"
key = "/secret/ca.key"
[addresses]
allow = ["10.1.2.0/24"]
deny = ["11.0.0.0/8"]
nat64_prefixes = ["2001:4860:64::/96"]
dangerously_allow = ["127.0.0.1:8443", "[::1]:443"]
[origin]
roots = ["roots.pem"]
[refusals]
connect = "inside"
[hooks]
file = "hooks.json"
pin = true
dangerously_run_hooks_on_host = true
[audit]
file = "audit.jsonl"
[limits]
connect = "3s"
connections = 7
"#;

/// An operator's file in a folder of its own, and the flags that name it.
struct Operator {
    folder: TempDir,
    args: ServeArgs,
}

impl Operator {
    fn wrote(text: &str) -> Operator {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("outgate.toml");
        fs::write(&config, text).unwrap();
        let operator = OperatorArgs { config: Some(config), ..OperatorArgs::default() };
        Operator { folder, args: ServeArgs { operator, ..ServeArgs::default() } }
    }

    fn settings(&self) -> Result<Settings, ConfigError> {
        let surroundings = Surroundings { home: Some("/home/u".into()), ..Default::default() };
        Settings::resolve(&self.args, &surroundings)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The complaint about a file, without the file's name.
fn complaint(text: &str) -> String {
    let whole = Operator::wrote(text).settings().expect_err("it was accepted").to_string();
    match whole.split_once("outgate.toml:") {
        Some((_, rest)) => rest.to_owned(),
        None => whole,
    }
}

#[test]
fn reads_every_name_relative_to_the_file() {
    let operator = Operator::wrote(EVERYTHING);
    let settings = operator.settings().unwrap();
    assert_eq!(settings.state_dir, operator.path("state"));
    assert_eq!(settings.management, BindAddress::Unix(operator.path("m.sock")));
    assert_eq!(settings.listeners.len(), 2);
    assert_eq!(settings.listeners[0].environment.as_deref(), Some("one"));
    assert_eq!(settings.listeners[1].bind, BindAddress::Unix(operator.path("one.sock")));
    let ca = settings.ca.unwrap();
    assert_eq!(ca.certificate, operator.path("ca.pem"));
    assert_eq!(ca.key, Path::new("/secret/ca.key"));
    assert_eq!(settings.origin_roots, [operator.path("roots.pem")]);
    assert_eq!(settings.connect_refusals, ConnectRefusals::Inside);
    assert_eq!(settings.audit, AuditFile::Path(operator.path("audit.jsonl")));
    let HooksSettings { file, pin, dangerously_on_host } = settings.hooks;
    assert_eq!((file, pin, dangerously_on_host), (Some(operator.path("hooks.json")), true, true));
    assert_eq!(settings.limits.connect.as_secs(), 3);
    assert_eq!(settings.limits.connections, 7);
    assert_eq!(settings.limits.headers, Limits::default().headers);
}

#[test]
fn reads_environments_and_addresses() {
    let operator = Operator::wrote(EVERYTHING);
    let settings = operator.settings().unwrap();
    let one = EnvironmentSource::File {
        path: operator.path("one.json"),
        known_by: KnownBy {
            source_addresses: vec![
                "10.20.0.2/32".parse().unwrap(),
                "2001:4860::7/128".parse().unwrap(),
            ],
            interface: Some(c"veth-one".into()),
            token_file: Some(operator.path("one.token")),
            namespaces_of: Some(operator.path("one.pid")),
        },
    };
    let many = EnvironmentSource::Directory(operator.path("environments"));
    assert_eq!(settings.environments, [one, many]);
    let AddressConfig { allow, deny, nat64_prefixes, dangerously_allow, .. } = settings.addresses;
    assert_eq!(allow, ["10.1.2.0/24".parse().unwrap()]);
    assert_eq!(deny, ["11.0.0.0/8".parse().unwrap()]);
    assert_eq!(nat64_prefixes, ["2001:4860:64::/96".parse().unwrap()]);
    assert_eq!(dangerously_allow.len(), 2);
}

#[test]
fn nothing_written_means_loopback_and_a_socket_in_the_state_folder() {
    let settings = Operator::wrote("").settings().unwrap();
    assert_eq!(settings.state_dir, Path::new("/home/u/.local/state/outgate"));
    assert_eq!(settings.listeners[0].bind.to_string(), "127.0.0.1:8080");
    assert!(settings.listeners[0].implied);
    assert_eq!(
        settings.management,
        BindAddress::Unix("/home/u/.local/state/outgate/management.sock".into())
    );
    assert_eq!(settings.audit, AuditFile::Unsaid);
    let dash = Operator::wrote("[audit]\nfile = \"-\"\n").settings().unwrap();
    assert_eq!(dash.audit, AuditFile::Stderr);
    assert_eq!(settings.limits, Limits::default());
}

#[test]
fn flags_win_over_the_file() {
    let mut operator = Operator::wrote(EVERYTHING);
    operator.args.operator.state_dir = Some("flag-state".into());
    operator.args.environments = vec!["flag.json".into()];
    operator.args.listen = Some("127.0.0.1:0".parse().unwrap());
    operator.args.management = Some("[::1]:0".parse().unwrap());
    operator.args.origin_roots = Some("flag.pem".into());
    let settings = operator.settings().unwrap();
    assert_eq!(settings.state_dir, Path::new("flag-state"));
    assert_eq!(settings.environments.len(), 1);
    assert_eq!(settings.listeners.len(), 1);
    assert!(settings.listeners[0].implied && settings.listeners[0].environment.is_none());
    assert_eq!(settings.management.to_string(), "[::1]:0");
    assert_eq!(settings.origin_roots, [Path::new("flag.pem")]);
}

#[test]
fn an_unknown_key_is_an_error_with_its_line() {
    let top = complaint("\n\nstate_dri = \"x\"\n");
    assert!(top.starts_with("3: unknown field `state_dri`"), "{top}");
    let nested = complaint("[[listener]]\nkind = \"explicit\"\nbnd = \"127.0.0.1:1\"\n");
    assert!(nested.starts_with("3: unknown field `bnd`"), "{nested}");
    let limit = complaint("[limits]\nconnect = \"3s\"\nconect = \"3s\"\n");
    assert!(limit.starts_with("3: unknown field `conect`"), "{limit}");
    let twice = complaint("state_dir = \"a\"\nstate_dir = \"b\"\n");
    assert!(twice.starts_with("2: duplicate key"), "{twice}");
}

#[test]
fn a_wrong_value_is_an_error_with_its_line_and_what_would_be_right() {
    for (text, said) in [
        ("[[listener]]\nkind = \"explict\"\nbind = \"127.0.0.1:1\"\n", "2: unknown variant"),
        ("[[listener]]\nkind = \"explicit\"\nbind = \"8080\"\n", "write 127.0.0.1:8080"),
        ("[[listener]]\nkind = \"explicit\"\n", "missing field `bind`"),
        ("[addresses]\nallow = [\"10.1.2.3/24\"]\n", "2: `10.1.2.3/24` has bits beyond"),
        ("[addresses]\nallow = [\"ten\"]\n", "2: `ten` is no block"),
        ("[addresses]\nnat64_prefixes = [\"10.0.0.0/8\"]\n", "2: `10.0.0.0/8` is no IPv6 prefix"),
        ("[addresses]\ndangerously_allow = [\"127.0.0.1\"]\n", "2: "),
        ("[refusals]\nconnect = \"outside\"\n", "2: unknown variant"),
        ("[limits]\nconnect = 3\n", "2: "),
        ("[hooks]\npin = \"yes\"\n", "2: invalid type"),
        ("[ca]\ncertificate = \"ca.pem\"\n", "missing field `key`"),
        ("[[environment]]\ninterface = \"a b\"\n", "2: `a b` is no name of a network"),
        ("[[environment]]\ninterface = \"sixteen-letters-\"\n", "is no name of a network"),
        ("state_dir = \n", "1: "),
    ] {
        let complaint = complaint(text);
        assert!(complaint.contains(said), "{text}: {complaint}");
        assert!(!complaint.contains('\n'), "{complaint}");
    }
}

#[test]
fn a_proxy_s_password_is_in_no_message_wherever_it_was_written() {
    for text in [
        "upstream = \"http://me:s3cret@proxy.corp:3128\"\n",
        "[upstream]\nno_proxy = \"http://me:s3cret@proxy.corp:3128\"\n",
        "[upstream]\nproxy = \"http://p:1\"\nno_proxy = [\"http://me:s3cret@proxy.corp:3128\"]\n",
        "[upstream]\nproxy = \"ftp://me:s3cret@proxy.corp:3128\"\n",
        "[upstream]\nproxy = [\"http://me:s3cret@proxy.corp:3128\"]\n",
        "[upstream]\ndangerously_resolve_at_proxy = \"http://me:s3cret@proxy.corp\"\n",
    ] {
        let error = complaint(text);
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn an_upstream_proxy_is_read_with_what_it_is_not_for() {
    let whole = "[upstream]\nproxy = \"http://u:hunter2@proxy.corp:3128\"\n\
                 no_proxy = [\"*.corp\", \"10.0.0.0/8\"]\ndangerously_resolve_at_proxy = true\n";
    let settings = Operator::wrote(whole).settings().unwrap();
    let UpstreamSettings::Proxy(proxy) = &settings.upstream else { panic!("no proxy") };
    assert!(proxy.dangerously_resolve);
    assert!(!format!("{settings:?}").contains("hunter2"));
    let other = Operator::wrote(&whole.replace("hunter2", "hunter3")).settings().unwrap();
    assert!(settings.differs_for_a_restart(&other).contains(&"upstream"));
    assert_eq!(Operator::wrote("").settings().unwrap().upstream, UpstreamSettings::Direct);
    for (text, said) in [
        ("[upstream]\nproxy = \"socks5://u:hunter2@p:1\"\n", "2: SOCKS"),
        ("[upstream]\nproxy = 3128\n", "2: invalid type"),
        ("[upstream]\nproxy = \"http://p:1\"\nno_proxy = [\"*corp\"]\n", "3: `*corp` in no_proxy"),
        ("[upstream]\nproxy = \"http://p:1\"\nno_proxy = [\"10.1.2.3/8\"]\n", "write 10.0.0.0/8"),
        ("[upstream]\nno_proxy = [\"*.corp\"]\n", "without `proxy`"),
        ("[upstream]\ndangerously_resolve_at_proxy = true\n", "without `proxy`"),
    ] {
        let complaint = complaint(text);
        assert!(complaint.contains(said), "{text}: {complaint}");
        assert!(!complaint.contains("hunter2"), "{complaint}");
    }
}

#[test]
fn the_store_opens_with_the_flag_s_key_then_the_variable_s_then_the_file_s() {
    let mut operator = Operator::wrote("[store]\nkey_file = \"k\"\n");
    let settings = operator.settings().unwrap();
    assert_eq!(settings.store_key, StoreKeySource::File(operator.path("k")));
    operator.args.operator.store_key_file = Some("flag".into());
    let settings = operator.settings().unwrap();
    assert_eq!(settings.store_key, StoreKeySource::File("flag".into()));
    assert_eq!(Operator::wrote("").settings().unwrap().store_key, StoreKeySource::StateFolder);
}

#[test]
fn clients_come_in_by_every_way_that_the_file_or_a_flag_names() {
    let listener = |kind, bind| format!("[[listener]]\nkind = \"{kind}\"\nbind = \"{bind}\"\n");
    let text = [
        listener("socks", "127.0.0.1:1080"),
        listener("transparent", "0.0.0.0:3129"),
        listener("transparent", "[::]:3129"),
        listener("dns", "127.0.0.1:53"),
    ]
    .concat();
    let mut operator = Operator::wrote(&text);
    let ways = |settings: Settings| -> Vec<String> {
        let all = settings.listeners.iter();
        all.map(|one| format!("{} {}", one.way.name(), one.bind)).collect()
    };
    let (socks, dns) = ("socks 127.0.0.1:1080", "dns 127.0.0.1:53");
    // Nobody asked for an explicit proxy: there is none.
    let all = [socks, "transparent 0.0.0.0:3129", "transparent [::]:3129", dns];
    assert_eq!(ways(operator.settings().unwrap()), all);
    operator.args.transparent = Some("127.0.0.1:9".parse().unwrap());
    assert_eq!(ways(operator.settings().unwrap()), [socks, "transparent 127.0.0.1:9", dns]);
    for kind in ["transparent", "dns"] {
        assert!(complaint(&listener(kind, "unix:a.sock")).contains("can't be a Unix socket"));
    }
    assert!(Operator::wrote(&listener("socks", "unix:a.sock")).settings().is_ok());
}

#[test]
fn management_stays_on_this_machine() {
    let listener = |bind| format!("[[listener]]\nkind = \"management\"\nbind = \"{bind}\"\n");
    assert!(Operator::wrote(&listener("[::1]:0")).settings().is_ok());
    assert!(Operator::wrote(&listener("127.9.9.9:0")).settings().is_ok());
    for bind in ["0.0.0.0:0", "[::]:0", "10.0.0.1:9", "192.168.1.1:9"] {
        assert!(complaint(&listener(bind)).contains("loopback"), "{bind}");
    }
    let two = format!("{}{}", listener("[::1]:0"), listener("[::1]:0"));
    assert!(complaint(&two).contains("one management listener"));
    let owned = format!("{}environment = \"e\"\n", listener("[::1]:0"));
    assert!(complaint(&owned).contains("belongs to no environment"));
}

#[test]
fn an_environment_is_one_file_or_one_folder() {
    assert!(complaint("[[environment]]\n").contains("either `file` or `directory`"));
    let both = "[[environment]]\nfile = \"a\"\ndirectory = \"b\"\n";
    assert!(complaint(both).contains("either `file` or `directory`"));
    for known in ["token_file = \"t\"", "interface = \"t\"", "source_addresses = [\"10.0.0.1\"]"] {
        let known = format!("[[environment]]\ndirectory = \"b\"\n{known}\n");
        assert!(complaint(&known).contains("name it with `file`"));
    }
}

#[test]
fn what_tells_a_client_tells_one_environment() {
    let two = |one: &str, two: &str| {
        let section = |file, known| format!("[[environment]]\nfile = \"{file}\"\n{known}\n");
        Operator::wrote(&(section("one.json", one) + &section("two.json", two))).settings()
    };
    let (veth, wide) = ("interface = \"veth\"\n", "source_addresses = [\"10.0.0.0/24\"]\n");
    let narrow = "source_addresses = [\"10.0.0.2\"]\n";
    let both = &[veth, wide].concat();
    for same in [veth, wide, both] {
        let refused = two(same, same).unwrap_err().to_string();
        assert!(refused.contains("one.json and of ") && refused.contains("two.json"), "{refused}");
    }
    for (one, other) in [(wide, narrow), (veth, wide), (veth, both), (wide, both)] {
        assert!(two(one, other).is_ok(), "{one} {other}");
    }
}

#[test]
fn what_only_a_restart_puts_in_force_is_named() {
    let settings = |text: &str| {
        let operator = Operator::wrote(text);
        (operator.settings().unwrap(), operator)
    };
    let (old, operator) = settings("");
    let changed = |text: &str| {
        fs::write(operator.path("outgate.toml"), text).unwrap();
        old.differs_for_a_restart(&operator.settings().unwrap())
    };
    assert!(changed("[addresses]\nallow = [\"10.0.0.0/8\"]\n[audit]\nfile = \"a\"\n").is_empty());
    assert!(changed("[[environment]]\nfile = \"a.json\"\n").is_empty());
    assert_eq!(changed("state_dir = \"s\"\n"), ["state_dir", "listener"]);
    assert_eq!(
        changed("[limits]\nheaders = 7\n[refusals]\nconnect = \"inside\"\n"),
        ["refusals", "limits"]
    );
}

#[test]
fn a_missing_file_is_named() {
    let mut operator = Operator::wrote("");
    operator.args.operator.config = Some(operator.path("absent.toml"));
    assert!(operator.settings().unwrap_err().to_string().contains("absent.toml"));
}
