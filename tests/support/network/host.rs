//! Who are the machines of a test that is about the network between them?
//!
//! Each is a network namespace with a name, as `ip netns` makes them. What a closure or a shell
//! script opens in there stays in there.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns};

use crate::command::{clean, run};

/// Setting up a network takes a fraction of this, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// An ordinary user's `PATH` may lack them.
const SYSTEM_PROGRAMS: &str = "/usr/sbin:/sbin";

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// A link-layer address.
pub type Mac = [u8; 6];

/// A machine: a network namespace of the test's own.
pub struct Host {
    name: String,
    namespace: File,
}

impl Host {
    /// A new machine with nothing but `lo`, raised.
    ///
    /// # Panics
    /// Outside `isolated`, or without the program `ip`.
    pub fn new(name: &str) -> Self {
        shell(&format!("ip netns add {name}\nip -n {name} link set lo up"), &[]);
        Self::named(name)
    }

    /// One that a script has made.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn named(name: &str) -> Self {
        let file = Path::new(NAMES).join(name);
        let namespace = File::open(&file)
            .unwrap_or_else(|fault| panic!("no machine {name}, {}: {fault}", file.display()));
        Self { name: name.to_owned(), namespace }
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something in there.
    ///
    /// # Panics
    /// When `action` does.
    pub fn inside<T: Send>(&self, action: impl FnOnce() -> T + Send) -> T {
        inside(&self.namespace, action)
    }

    /// Runs a shell script in there that stops at the first failure; its standard output.
    ///
    /// # Panics
    /// When the script fails, and with what it wrote.
    pub fn shell(&self, script: &str) -> String {
        self.shell_with(script, &[])
    }

    /// [`Host::shell`] with these variables.
    ///
    /// # Panics
    /// As [`Host::shell`].
    pub fn shell_with(&self, script: &str, variables: &[(&str, &str)]) -> String {
        self.inside(|| shell(script, variables))
    }

    /// The link-layer address of one of its interfaces.
    ///
    /// # Panics
    /// When it has none of this name.
    pub fn mac(&self, interface: &str) -> Mac {
        let found = self.inside(|| {
            getifaddrs().expect("interfaces can be listed").find_map(|one| {
                let address = one.address?.as_link_addr()?.addr()?;
                (one.interface_name == interface).then_some(address)
            })
        });
        found.unwrap_or_else(|| panic!("{} has no interface {interface}", self.name))
    }
}

impl AsFd for Host {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// Does something in another network namespace than the caller's.
pub(super) fn inside<T: Send>(namespace: impl AsFd, action: impl FnOnce() -> T + Send) -> T {
    let namespace = namespace.as_fd();
    thread::scope(|scope| {
        let entered = scope.spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("it is ours");
            action()
        });
        entered.join().expect("no panic in the other namespace")
    })
}

/// Runs a script in the caller's network namespace.
pub(super) fn shell(script: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("sh");
    clean(&mut command).args(["-euc", script]).envs(variables.iter().copied());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SYSTEM_PROGRAMS}"));
    let finished = run(&mut command, b"", DEADLINE);
    assert!(
        finished.status.success(),
        "this script failed ({}; it needs the programs of `tests/real-clients`):\n{script}\n{}{}",
        finished.status,
        finished.text(),
        finished.stderr
    );
    finished.text()
}

/// Gives the test a `/run` of its own, where `ip netns` may write names.
///
/// # Panics
/// Outside `isolated`.
pub(super) fn own_run() {
    let _inside = super::folder();
    let resolver = fs::canonicalize("/etc/resolv.conf").expect("the test has its own");
    let text = fs::read_to_string(&resolver).expect("the test has its own");
    mount(None::<&str>, "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>)
        .unwrap_or_else(|fault| panic!("cannot give the test a /run of its own: {fault}"));
    // On many machines it lies under /run.
    if !resolver.exists() {
        let folder = resolver.parent().expect("a file has a folder");
        fs::create_dir_all(folder).expect("the new /run is writable");
        fs::write(&resolver, text).expect("the new /run is writable");
    }
}
