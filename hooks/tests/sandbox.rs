//! Do commands run inside the sandbox, and nowhere when there is none?

#[path = "support/scene.rs"]
mod scene;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Gid, Uid, chdir, chroot, fork};
use outgate_hooks::{Cause, InSandbox, Sandbox};
use scene::{ask, before_every_call, command, command_within, endings, unique_sleep, unreachable};

/// What the sandbox takes for its root.
#[derive(Copy, Clone, PartialEq)]
enum Root {
    /// That of its mount namespace.
    OfTheNamespace,
    /// A folder of it (chroot(2)).
    Changed,
}

/// A process that sleeps in namespaces of its own; PID 1 there.
struct Sleeper {
    outside: Child,
    pid: i32,
}

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper::below(Root::OfTheNamespace)
    }

    #[expect(unsafe_code, reason = "namespaces are made between fork and exec")]
    fn below(root: Root) -> Sleeper {
        let mut sleep = Command::new("sleep");
        sleep.arg("600").env_clear().env("SECRET", "of the sleeper");
        let (user, group) = (Uid::effective(), Gid::effective());
        // SAFETY: the forked child has one thread, and the test allocates nothing that it holds.
        unsafe { sleep.pre_exec(move || isolate(user, group, root)) };
        let outside = sleep.spawn().expect("user namespaces are allowed here");
        let children = format!("/proc/{0}/task/{0}/children", outside.id());
        let pid = fs::read_to_string(children).ok().and_then(|text| text.trim().parse().ok());
        Sleeper { outside, pid: pid.expect("the process in the sandbox") }
    }

    fn spawner(&self, directory: &str) -> InSandbox {
        InSandbox {
            sandbox: Arc::new(Sandbox::open(self.pid).expect("a sandbox")),
            supervisor: (PathBuf::from(env!("CARGO_BIN_EXE_supervise")), "supervise".to_owned()),
            directory: directory.to_owned(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        }
    }

    fn end(&mut self) {
        let ended = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid), Signal::SIGKILL);
        ended.expect("the sleeper runs");
        self.outside.wait().expect("it is the test's child");
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}

/// Moves the calling process into fresh namespaces, as an ordinary user of them, and forks into
/// the PID namespace; the parent waits outside.
#[expect(unsafe_code, reason = "there is no safe fork")]
fn isolate(user: Uid, group: Gid, root: Root) -> std::io::Result<()> {
    unshare(
        CloneFlags::CLONE_NEWUSER
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWPID,
    )?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("1000 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("1000 {group} 1"))?;
    // SAFETY: this process has one thread.
    match unsafe { fork() }? {
        ForkResult::Child => {
            set_pdeathsig(Signal::SIGKILL)?;
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)?;
            mount(Some("tmpfs"), "/mnt", Some("tmpfs"), MsFlags::empty(), none)?;
            fs::create_dir("/mnt/inside")?;
            if root == Root::Changed {
                mount(Some("/"), "/mnt", none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
                mount(Some("tmpfs"), "/mnt/mnt", Some("tmpfs"), MsFlags::empty(), none)?;
                fs::create_dir("/mnt/mnt/changed")?;
                chroot("/mnt")?;
                chdir("/")?;
            }
            Ok(())
        }
        ForkResult::Parent { child } => {
            // The test waits until every copy of its pipe is closed.
            // SAFETY: nothing of this process is used any more.
            unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
            let _ = nix::sys::wait::waitpid(child, None);
            // SAFETY: it ends this process.
            unsafe { libc::_exit(0) }
        }
    }
}

/// A script that denies, with what it saw as the reason.
fn telling(what: &str) -> serde_json::Value {
    command(&format!(r#"printf '{{"decision": "deny", "reason": "%s"}}' "$({what})""#))
}

async fn told(spawner: &InSandbox, what: &str) -> String {
    let answer = ask(&before_every_call(&[telling(what)]), spawner, &unreachable()).await;
    answer
        .reason
        .as_ref()
        .map_or_else(|| endings(&answer).join(","), |reason| reason.as_str().to_owned())
}

#[tokio::test]
async fn a_command_runs_in_every_namespace_of_the_sandbox() {
    let sleeper = Sleeper::start();
    let inside = sleeper.spawner("/mnt/inside");
    for namespace in ["user", "mnt", "net", "pid", "ipc"] {
        let link = |process: &str| {
            let link = fs::read_link(format!("/proc/{process}/ns/{namespace}"));
            link.expect("a namespace").to_str().expect("UTF-8").to_owned()
        };
        let seen = told(&inside, &format!("readlink /proc/self/ns/{namespace}")).await;
        assert_eq!(seen, link(&sleeper.pid.to_string()));
        assert_ne!(seen, link("self"));
    }
    assert_eq!(told(&inside, "pwd").await, "/mnt/inside");
    assert_eq!(told(&inside, "echo $(id -u) $(id -g)").await, "1000 1000");
    assert_eq!(told(&inside, "env | grep -c SECRET").await, "0");
    assert_eq!(told(&inside, "grep CapEff /proc/self/status | cut -f2").await, "0000000000000000");
    assert_eq!(told(&inside, "grep CapBnd /proc/self/status | cut -f2").await, "0000000000000000");
    assert_eq!(told(&inside, "cat /proc/$PPID/environ 2>/dev/null | wc -c").await, "0");
}

#[tokio::test]
async fn a_command_has_the_root_that_the_sandbox_has_changed_to() {
    let sleeper = Sleeper::below(Root::Changed);
    let inside = sleeper.spawner("/mnt/changed");
    assert_eq!(told(&inside, "pwd").await, "/mnt/changed");
    assert_eq!(told(&inside, "ls /mnt").await, "changed");
    assert_eq!(told(&inside, "ls /../mnt").await, "changed");
}

#[tokio::test]
async fn what_a_command_leaves_in_the_sandbox_is_ended() {
    let sleeper = Sleeper::start();
    let inside = sleeper.spawner("/");
    let sleep = unique_sleep();
    let left =
        command_within(&format!("setsid sleep {sleep} & echo '{{\"decision\": \"deny\"}}'"), 30);
    let answer = ask(&before_every_call(&[left]), &inside, &unreachable()).await;
    assert_eq!(endings(&answer), ["deny"]);
    assert!(!scene::is_running(&sleep));
    let late = command_within(&format!("trap '' TERM; setsid sleep {sleep} & sleep {sleep}"), 1);
    let answer = ask(&before_every_call(&[late]), &inside, &unreachable()).await;
    assert_eq!(endings(&answer), ["timeout"]);
    assert!(!scene::is_running(&sleep));
}

#[tokio::test]
async fn a_sandbox_that_has_ended_starts_nothing() {
    let mut sleeper = Sleeper::start();
    let inside = sleeper.spawner("/");
    assert_eq!(told(&inside, "echo here").await, "here");
    sleeper.end();
    let deadline = Instant::now() + Duration::from_secs(20);
    while inside.sandbox.is_alive() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(told(&inside, "echo here").await, "no_sandbox");
}

#[test]
fn a_process_in_one_of_the_gateways_own_namespaces_is_no_sandbox() {
    let own = i32::try_from(std::process::id()).expect("a pid");
    assert_eq!(Sandbox::open(own).expect_err("the test itself").cause, Cause::NoSandbox);
    assert_eq!(Sandbox::open(0).expect_err("no process").cause, Cause::NoSandbox);
    assert_eq!(Sandbox::open(i32::MAX).expect_err("no process").cause, Cause::NoSandbox);
    let mut only_a_network = Command::new("sleep");
    only_a_network.arg("600");
    let unshared = || Ok(unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?);
    #[expect(unsafe_code, reason = "namespaces are made between fork and exec")]
    // SAFETY: the forked child makes one system call.
    unsafe {
        only_a_network.pre_exec(unshared);
    }
    let mut child = only_a_network.spawn().expect("user namespaces are allowed here");
    let failure =
        Sandbox::open(i32::try_from(child.id()).expect("a pid")).expect_err("half a sandbox");
    assert!(failure.detail.contains("mnt"), "{failure:?}");
    child.kill().expect("it runs");
    child.wait().expect("it is the test's child");
}
