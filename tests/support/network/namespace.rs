//! What does a test find inside its namespaces?

use std::fs;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::mount::{MsFlags, mount};
use nix::net::if_::InterfaceFlags;

use super::rtnetlink;

const RESOLVER: &str = "nameserver 127.0.0.53\n";
const HOSTS: &str = "::1 localhost\n127.0.0.1 localhost";
/// Names of the C library too come from the two files above, not from a daemon of the host.
const NAME_SERVICE: &str = "hosts: files dns\n";

/// Makes every address local and gives the test its own resolver files.
///
/// # Panics
/// With a sentence, when anything but `lo` is there before the first packet, or a step is refused.
pub(super) fn set_up(folder: &Path) {
    refuse_a_way_out();
    enable_ipv6();
    rtnetlink::raise_loopback();
    rtnetlink::make_every_address_local();
    keep_mounts_private();
    own_file(folder, "/etc/resolv.conf", RESOLVER);
    own_file(folder, "/etc/hosts", &format!("{HOSTS} {}\n", machine_name()));
    if Path::new("/etc/nsswitch.conf").exists() {
        own_file(folder, "/etc/nsswitch.conf", NAME_SERVICE);
    }
}

/// Replaces `/etc/hosts` as the test and everything it starts see it.
///
/// # Panics
/// Outside `isolated`.
pub fn set_hosts(text: &str) {
    write_own_file("/etc/hosts", text);
}

/// Replaces `/etc/resolv.conf` as the test and everything it starts see it.
///
/// # Panics
/// Outside `isolated`.
pub fn set_resolver(text: &str) {
    write_own_file("/etc/resolv.conf", text);
}

/// How many TCP connections anyone in this namespace has tried to open so far, refused ones
/// included (`ActiveOpens` of RFC 4022): the oracle for "nothing was dialled at all".
///
/// # Panics
/// When `/proc/net/snmp` is not what Linux writes there.
pub fn connection_attempts() -> u64 {
    let counters = fs::read_to_string("/proc/net/snmp").expect("Linux counts its connections");
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let names = lines.next().expect("a line of names comes first");
    let values = lines.next().expect("a line of values follows");
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .find(|(name, _)| *name == "ActiveOpens")
        .and_then(|(_, value)| value.parse().ok())
        .expect("ActiveOpens is a number")
}

/// A gateway that fails a test would really dial a metadata service or a public host: there must
/// be no way out before the first packet.
fn refuse_a_way_out() {
    let up: Vec<String> = getifaddrs()
        .expect("interfaces can be listed")
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .map(|interface| interface.interface_name)
        .collect();
    assert!(up.is_empty(), "a fresh network namespace has no interface up, but here: {up:?}");
    let routes = fs::read_to_string("/proc/net/route").expect("routes can be listed");
    assert!(routes.lines().nth(1).is_none(), "a fresh namespace has no route, but here:\n{routes}");
    let routes = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    assert!(
        routes.lines().all(|route| route.ends_with(" lo")),
        "a fresh namespace has no IPv6 route, but here:\n{routes}"
    );
}

/// A namespace may inherit "IPv6 off". Where this can't be changed, the tests that bind an IPv6
/// address fail and say so; the others need none.
fn enable_ipv6() {
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
}

/// Some libraries look up the machine's own name (libldap under `curl`); as on any machine the
/// hosts file has it, so that the name server is asked only what the test is about.
fn machine_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn keep_mounts_private() {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .unwrap_or_else(|fault| {
            panic!(
                "this test needs a mount namespace of its own, and the kernel refuses it \
                 ({fault}): a security module may restrict user namespaces, see \
                 kernel.apparmor_restrict_unprivileged_userns"
            )
        });
}

fn own_file(folder: &Path, path: &str, text: &str) {
    let target = fs::canonicalize(path).unwrap_or_else(|fault| {
        panic!("this test puts its own {path} over the machine's, which is missing: {fault}")
    });
    let own = folder.join(target.file_name().expect("a file has a name"));
    fs::write(&own, text).expect("the test's folder is writable");
    mount(Some(&own), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .unwrap_or_else(|fault| panic!("cannot put the test's own {path} in place: {fault}"));
}

fn write_own_file(path: &str, text: &str) {
    // Outside a namespace this would be the machine's own file.
    let _inside = super::folder();
    fs::write(path, text).unwrap_or_else(|fault| panic!("cannot write the test's {path}: {fault}"));
}
