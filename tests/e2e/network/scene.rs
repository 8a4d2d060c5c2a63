//! What does the page build, for each kind of sandbox?

use std::fs;
use std::path::{Path, PathBuf};

use outgate_tests::gateway::Builder;
use outgate_tests::network::{Host, Plug, RESOLVER, Site};
use serde_json::Value;

use super::*;

/// What is behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A network namespace at the other end of a veth pair.
    Veth,
    /// What a container engine attaches to a bridge.
    Container,
    /// A virtual machine behind a tap device.
    Vm,
}

/// A gateway's machine with the sandboxes `one` and `two` behind it and the internet before it.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) site: Site,
    pub(crate) one: Host,
    pub(crate) two: Host,
    _plugs: Vec<Plug>,
}

impl Scene {
    /// Everything the page says of this kind, but outgate itself.
    pub(crate) fn new(kind: Kind) -> Self {
        let (world, site) = internet();
        run(&site.gateway, "host", "one");
        run(&site.gateway, &format!("before-{}", kind.name()), "one");
        kind.load_rules(&site.gateway);
        let mut plugs = Vec::new();
        let [one, two] = ["one", "two"].map(|name| {
            let (sandbox, plug) = kind.add_sandbox(&site.gateway, name);
            plugs.extend(plug);
            sandbox
        });
        Self { world, site, one, two, _plugs: plugs }
    }

    /// The same on a machine that passes on whatever it gets, without any rule.
    pub(crate) fn without_rules(kind: Kind) -> Self {
        let scene = Self::new(kind);
        scene.site.gateway.shell(
            "nft flush ruleset
             for family in -4 -6; do
                 for name in one two; do ip $family rule del iif sbx-$name blackhole; done
             done
             sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
        );
        scene
    }

    /// outgate with the page's own file, in which `one` may go where `allowlist` says and `two` to
    /// the API alone.
    pub(crate) fn gateway(&self, allowlist: &Value) -> Gateway {
        self.builder(allowlist, "").start()
    }

    /// The same about to be started, with more in the operator's file.
    pub(crate) fn builder(&self, allowlist: &Value, more: &str) -> Builder {
        self.of_file(allowlist, &(block("outgate.toml") + more))
    }

    /// outgate without listeners of other kinds than the explicit one.
    pub(crate) fn explicit_only(&self, allowlist: &Value) -> Gateway {
        let file = block("outgate.toml");
        let other =
            |section: &&str| section.contains("\"transparent\"") || section.contains("\"dns\"");
        let sections = file.split("\n\n").filter(|section| !other(section));
        self.of_file(allowlist, &sections.collect::<Vec<_>>().join("\n\n")).start()
    }

    /// outgate with environments that are known by their addresses alone.
    pub(crate) fn by_address_alone(&self, allowlist: &Value) -> Gateway {
        let file = block("outgate.toml");
        let lines = file.lines().filter(|line| !line.starts_with("interface"));
        self.of_file(allowlist, &lines.collect::<Vec<_>>().join("\n")).start()
    }

    /// The API, at both of its addresses.
    pub(crate) fn api(&self) -> [Origin; 2] {
        let at = |address: &str| Origin::https(&self.world.pki, API, address).start();
        [at(API4), at(&format!("[{API6}]:443"))]
    }

    fn of_file(&self, allowlist: &Value, file: &str) -> Builder {
        let folder = network::folder().join("environments");
        fs::create_dir_all(&folder).expect("writable");
        for (id, allowlist) in [("one", allowlist), ("two", &json!([{"domain": API}]))] {
            let text = json!({"network": {"allowlist": allowlist}}).to_string();
            fs::write(folder.join(format!("{id}.json")), text).expect("writable");
        }
        let file = file.replace("environments/", &format!("{}/", folder.display()));
        let builder = self.world.gateway_builder().configuration(&file);
        builder.listeners_from_configuration().on(&self.site.gateway)
    }
}

impl Kind {
    /// Loads the rules, the first time or again.
    pub(crate) fn load_rules(self, gateway: &Host) {
        self.load_rules_from(gateway, &root().join("deploy/nft"));
    }

    /// Loads the rules of another folder.
    pub(crate) fn load_rules_from(self, gateway: &Host, folder: &Path) {
        let variables = [("RULES", folder.to_str().expect("a path of ours is text"))];
        gateway.shell_with(&block(&format!("rules-{}", self.name())), &variables);
    }

    /// A copy of the rules in which a sandbox may have no more than `most` connections.
    pub(crate) fn rules_with_at_most(most: usize) -> PathBuf {
        let folder = network::folder().join("nft");
        fs::create_dir(&folder).expect("the test's folder is writable");
        for file in fs::read_dir(root().join("deploy/nft")).expect("the folder is there") {
            let file = file.expect("the folder can be read").path();
            let text = fs::read_to_string(&file).expect("rules are text");
            let text = text.replace("ct count over 16384", &format!("ct count over {most}"));
            let name = file.file_name().expect("a file has a name");
            fs::write(folder.join(name), text).expect("the test's folder is writable");
        }
        folder
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Veth => "veth",
            Kind::Container => "container",
            Kind::Vm => "vm",
        }
    }

    fn add_sandbox(self, gateway: &Host, name: &str) -> (Host, Option<Plug>) {
        match self {
            Kind::Veth => {
                run(gateway, "veth-one", name);
                (Host::named(name), None)
            }
            Kind::Container => {
                run(gateway, "container-one", name);
                gateway.shell(&of(CONTAINER_ENGINE, name));
                (Host::named(name), None)
            }
            Kind::Vm => {
                run(gateway, "vm-one", name);
                let guest = Host::new(name);
                let plug = Plug::new((gateway, &format!("sbx-{name}")), (&guest, "eth0"));
                run(&guest, "vm-guest-one", name);
                (guest, Some(plug))
            }
        }
    }
}

/// What a container engine does with the page's commands for it. Its host forwards for others.
const CONTAINER_ENGINE: &str = "
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip link add sbx-one type bridge
ip address add 10.20.1.1/24 dev sbx-one
ip address add fd10:20:1::1/64 dev sbx-one nodad
ip link set sbx-one up
ip netns add one
ip link add veth-one master sbx-one type veth peer name eth0 netns one
ip link set veth-one up
ip -n one address add 10.20.1.2/24 dev eth0
ip -n one address add fd10:20:1::2/64 dev eth0 nodad
ip -n one link set lo up
ip -n one link set eth0 up
ip -n one route add default via 10.20.1.1
ip -n one route add default via fd10:20:1::1
";

/// The name server and the names of the cases, each with an address of either family.
fn internet() -> (World, Site) {
    let world = world!();
    world.dns.listen_on(RESOLVER.into());
    network::set_resolver(&format!("nameserver {}\n", RESOLVER.0));
    world.dns.name(API, &[API4, API6]);
    world.dns.name(EVIL, &[EVIL4, EVIL6]);
    (world, Site::set_up())
}

/// Runs a block of the page for this sandbox.
fn run(machine: &Host, block_name: &str, name: &str) {
    machine.shell(&of(&block(block_name), name));
}

/// Commands for sandbox `one` as they are for this one: its own name, its own numbers.
fn of(script: &str, name: &str) -> String {
    if name == "one" {
        return script.to_owned();
    }
    script
        .replace("one", name)
        .replace("10.20.1.", "10.20.2.")
        .replace("fd10:20:1::", "fd10:20:2::")
}

/// The block of the page that stands behind the comment `run: NAME`.
fn block(name: &str) -> String {
    let page = root().join("docs/network-gateway.md");
    let text = fs::read_to_string(&page).expect("the page is there");
    let marker = format!("<!-- run: {name} -->\n```");
    let (_, behind) = text
        .split_once(&marker)
        .unwrap_or_else(|| panic!("{} has no block `{name}`", page.display()));
    let (_, behind) = behind.split_once('\n').expect("a fence ends its line");
    behind.split_once("```").expect("a block ends").0.to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there")
}
