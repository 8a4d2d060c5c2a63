//! How does one test get an "internet" of its own?
//!
//! The test harness has many threads, and a process with threads can't enter a user namespace. So
//! the test binary is started again for this one test, and the forked child enters the namespaces
//! before it executes anything.

pub mod frames;
mod host;
mod namespace;
mod neighbour;
mod plug;
mod recorder;
mod ring;
mod rtnetlink;
mod site;

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getegid, geteuid};

use crate::wait::wait_for;

pub use host::{Host, Mac};
pub use namespace::{connection_attempts, set_hosts, set_resolver};
pub use neighbour::Neighbour;
pub use plug::Plug;
pub use recorder::{Packet, Recorder};
pub use site::{GATEWAY4, GATEWAY6, RESOLVER, Site};

/// Names the folder of the test; its presence says "you are the child, inside".
const FOLDER_VARIABLE: &str = "OUTGATE_TEST_FOLDER";

/// Left in the folder by a test that ran to its end. Without it "0 tests ran" would count as a pass.
const FINISHED: &str = "finished";

/// A test that takes longer hangs: the longest takes a third of it where nothing else runs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the body of the current `#[test]` inside fresh user, network and mount namespaces.
///
/// Called once per test, around everything the test does. Inside, every IPv4 and IPv6 address is
/// local, nothing leads out, ports below 1024 may be bound, the resolver is 127.0.0.53, and
/// `/etc/hosts` belongs to the test.
///
/// # Panics
/// When the test fails, hangs for two minutes, or when user namespaces are missing.
pub fn isolated(test: impl FnOnce()) {
    isolated_for(DEADLINE, test);
}

/// [`isolated`] with another deadline.
///
/// # Panics
/// As [`isolated`].
pub fn isolated_for(deadline: Duration, test: impl FnOnce()) {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let folder = PathBuf::from(folder);
        namespace::set_up(&folder);
        test();
        fs::write(folder.join(FINISHED), b"").expect("the test's folder stays writable");
    } else {
        run_current_test_inside(deadline);
    }
}

/// The folder of the running isolated test, removed when the test is over, however it ends.
///
/// # Panics
/// Outside [`isolated`].
pub fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE)
        .map(PathBuf::from)
        .expect("this must be called inside `isolated`")
}

fn run_current_test_inside(deadline: Duration) {
    let name = current_test();
    let folder = tempfile::Builder::new()
        .prefix("outgate-")
        .tempdir()
        .unwrap_or_else(|fault| panic!("no temporary folder for the test: {fault}"));
    let mut child = start_inside(&name, folder.path());
    let status = wait_or_kill(&mut child, deadline);
    show(&fs::read(folder.path().join("output")).unwrap_or_default());
    match status {
        None => panic!("{name} was still running after {deadline:?} and was killed"),
        Some(status) if !status.success() => panic!("{name} failed in its namespaces: {status}"),
        Some(_) => assert!(
            folder.path().join(FINISHED).exists(),
            "{name} did not run to its end in its namespaces"
        ),
    }
}

fn current_test() -> String {
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => panic!(
            "`isolated` starts the test again by the name of its thread, and this thread has none: \
             call it from the test function itself"
        ),
    }
}

fn start_inside(name: &str, folder: &Path) -> Child {
    let output = File::create(folder.join("output")).expect("the new folder is writable");
    let errors = output.try_clone().expect("a file can be opened twice");
    let binary = std::env::current_exe().expect("a test binary knows its own path");
    let mut command = Command::new(binary);
    command
        .args([name, "--exact", "--nocapture", "--test-threads=1", "--include-ignored"])
        .env(FOLDER_VARIABLE, folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        // A group of its own, so that a hung test takes what it started along.
        .process_group(0);
    let user_map = format!("0 {} 1", geteuid());
    let group_map = format!("0 {} 1", getegid());
    #[expect(
        unsafe_code,
        reason = "only a forked child without threads can enter a user namespace"
    )]
    // SAFETY: the closure makes system calls on strings that exist already.
    unsafe {
        command.pre_exec(move || enter_namespaces(&user_map, &group_map));
    }
    command.spawn().unwrap_or_else(|fault| panic!("{}", missing_namespaces(&fault)))
}

fn enter_namespaces(user_map: &str, group_map: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    // Without this an ordinary user may not write the group map (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", user_map)?;
    fs::write("/proc/self/gid_map", group_map)?;
    // After `unshare`, which clears it. The thread that starts this child waits for its end.
    set_pdeathsig(Signal::SIGKILL)?;
    Ok(())
}

fn missing_namespaces(fault: &io::Error) -> String {
    let switches = [
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let next_step = switches
        .iter()
        .find(|(file, shut, _)| fs::read_to_string(file).is_ok_and(|now| now.trim() == *shut))
        .map_or(
            "if this is a container, let it call unshare(2), \
             as with `--security-opt seccomp=unconfined`",
            |(_, _, command)| command,
        );
    format!("this test needs user namespaces, and the kernel refuses them ({fault}): {next_step}")
}

fn wait_or_kill(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    let status = wait_for(deadline, || child.try_wait().expect("the child is ours to wait for"));
    if status.is_none() {
        let group = i32::try_from(child.id()).expect("a process id is an i32");
        // The leader has not been waited for, so the group is still the one made here. Its last
        // process may have ended this moment, which is as good.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        child.wait().expect("the child is ours to wait for");
    }
    status
}

#[expect(clippy::print_stdout, reason = "the harness shows a test's output when it fails")]
fn show(output: &[u8]) {
    print!("{}", String::from_utf8_lossy(output));
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn binds_api_and_holds_it_for_a_moment() {
        let listener = TcpListener::bind("11.22.33.44:443").unwrap();
        // Long enough for the twin of this test to meet the same address.
        thread::sleep(Duration::from_millis(300));
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect_timeout(&address, Duration::from_secs(1)).unwrap();
        assert_eq!(client.peer_addr().unwrap().ip(), IpAddr::from([11, 22, 33, 44]));
        listener.accept().unwrap();
    }

    #[test]
    fn binds_a_global_address() {
        isolated(binds_api_and_holds_it_for_a_moment);
    }

    #[test]
    fn binds_the_same_global_address_beside_another_test() {
        isolated(binds_api_and_holds_it_for_a_moment);
    }

    #[test]
    fn reaches_a_global_ipv6_address() {
        isolated(|| {
            let address: Ipv6Addr = "2606:4700::1111".parse().unwrap();
            let origin =
                crate::origin::SilentListener::start(&SocketAddr::from((address, 443)).to_string());
            let client =
                TcpStream::connect_timeout(&(address, 443).into(), Duration::from_secs(1)).unwrap();
            assert_eq!(client.peer_addr().unwrap().ip(), IpAddr::from(address));
            assert_eq!(origin.connections(), 1);
        });
    }

    #[test]
    fn counts_every_attempt_to_connect() {
        isolated(|| {
            let before = connection_attempts();
            let refused =
                TcpStream::connect_timeout(&"8.8.8.8:443".parse().unwrap(), Duration::from_secs(1));
            assert!(refused.is_err());
            assert_eq!(connection_attempts() - before, 1);
        });
    }

    #[test]
    fn gives_the_test_its_own_hosts_and_resolver() {
        isolated(|| {
            set_hosts("10.0.0.9 a.ok.example.test\n");
            assert_eq!(fs::read_to_string("/etc/hosts").unwrap(), "10.0.0.9 a.ok.example.test\n");
            assert!(fs::read_to_string("/etc/resolv.conf").unwrap().contains("127.0.0.53"));
        });
        // Here the inner run passes too, on its way out.
        if std::env::var_os(FOLDER_VARIABLE).is_none() {
            assert!(!fs::read_to_string("/etc/hosts").unwrap().contains("10.0.0.9 a.ok"));
        }
    }

    #[test]
    #[should_panic(expected = "failed in its namespaces")]
    fn fails_when_the_isolated_body_fails() {
        // Inside, the panic would count as what `should_panic` asks for: end the process instead.
        isolated(|| std::process::exit(101));
    }

    #[test]
    #[should_panic(expected = "did not run to its end")]
    fn fails_when_the_isolated_body_ends_early() {
        isolated(|| std::process::exit(0));
    }

    #[test]
    #[should_panic(expected = "was still running")]
    fn kills_a_test_that_hangs() {
        isolated_for(Duration::from_secs(1), || thread::sleep(Duration::from_secs(50)));
    }

    #[test]
    fn carries_bytes_over_loopback() {
        isolated(|| {
            let listener = TcpListener::bind("127.0.0.1:80").unwrap();
            let address = listener.local_addr().unwrap();
            let mut client = TcpStream::connect_timeout(&address, Duration::from_secs(1)).unwrap();
            client.write_all(b"ping").unwrap();
            let mut received = [0; 4];
            listener.accept().unwrap().0.read_exact(&mut received).unwrap();
            assert_eq!(&received, b"ping");
        });
    }
}
