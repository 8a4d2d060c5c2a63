//! How does a test become PID 1 of a sandbox?
//!
//! The test binary is started again for this one test, in new namespaces; as the first child in
//! them it builds the file system, and then does what the test is about.

use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, getegid, geteuid};

use super::super::*;

/// The folder of the stage; its presence says "you are PID 1".
const FOLDER: &str = "OUTGATE_TEST_STAGE";
/// Left behind by a test that ran to its end.
const FINISHED: &str = "finished";

/// A home with a state folder, and a root for the sandbox.
pub(super) struct Stage {
    base: PathBuf,
    root: &'static str,
    working: PathBuf,
    files: Vec<PathBuf>,
    values: Vec<PathBuf>,
    /// What the host shows a second time, and where.
    shown: Vec<(PathBuf, PathBuf)>,
    /// Removed with the stage, but not by the process inside.
    _folders: Vec<tempfile::TempDir>,
}

impl Stage {
    pub(super) fn new() -> Stage {
        // What is in `/tmp` can't be seen inside.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let stage = Stage { _folders: vec![folder], ..Stage::at(base, "root") };
        fs::create_dir_all(stage.state_dir()).unwrap();
        fs::create_dir_all(stage.root()).unwrap();
        fs::write(stage.state_dir().join("ca.key"), "SECRET").unwrap();
        fs::write(stage.home().join("file"), "of the host").unwrap();
        stage
    }

    /// With an environment file beside other files, one in a folder of its own, and a socket.
    pub(super) fn with_secrets() -> Stage {
        let stage = Stage::new();
        fs::create_dir(stage.home().join("own")).unwrap();
        fs::write(stage.home().join("own/env.json"), "SECRET").unwrap();
        fs::write(stage.home().join("env.json"), "SECRET").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(stage.home().join("socket")).unwrap();
        // It stays open for as long as the test runs.
        std::mem::forget(socket);
        stage.hide("env.json").hide("own/env.json")
    }

    fn reopened(base: PathBuf) -> Stage {
        let root = if base.join("home/root").exists() { "home/root" } else { "root" };
        Stage::at(base, root)
    }

    fn at(base: PathBuf, root: &'static str) -> Stage {
        let (working, shown) = (PathBuf::new(), Vec::new());
        let (files, values) = (Vec::new(), Vec::new());
        Stage { base, root, working, files, values, shown, _folders: Vec::new() }
    }

    pub(super) fn rooted_in_home(mut self) -> Stage {
        self.root = "home/root";
        fs::create_dir_all(self.root()).unwrap();
        self
    }

    pub(super) fn hide(mut self, file: &str) -> Stage {
        self.files.push(self.home().join(file));
        self
    }

    /// A value's file, which may be gone.
    pub(super) fn hide_value(mut self, file: &str) -> Stage {
        self.values.push(self.home().join(file));
        self
    }

    pub(super) fn showing(mut self, item: &str, place: &str) -> Stage {
        let (item, place) = (self.base.join(item), self.base.join(place));
        if item.is_dir() {
            fs::create_dir_all(&place).unwrap();
        } else {
            fs::write(&place, "").unwrap();
        }
        self.shown.push((item, place));
        self
    }

    /// In a folder of the home, or in this one elsewhere.
    pub(super) fn working_in(mut self, folder: impl Into<PathBuf>) -> Stage {
        self.working = folder.into();
        fs::create_dir_all(self.working()).unwrap();
        self
    }

    /// In `a/b` of a folder that is nowhere inside.
    pub(super) fn working_in_shared_memory(mut self) -> Stage {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let working = folder.path().join("a/b");
        self._folders.push(folder);
        self.working_in(working)
    }

    pub(super) fn working(&self) -> PathBuf {
        self.home().join(&self.working)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    pub(super) fn root(&self) -> PathBuf {
        self.base.join(self.root)
    }

    pub(super) fn state_dir(&self) -> PathBuf {
        self.home().join(".local/state/outgate")
    }

    pub(super) fn secrets(&self) -> Vec<PathBuf> {
        [".local/state/outgate", "env.json", "own", "socket"]
            .map(|name| self.home().join(name))
            .into()
    }

    /// Whether nothing of what is at `path` can be read.
    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        let path = path.display();
        shell(&format!("cat {path} {path}/* 2>/dev/null; true")).is_empty()
    }

    pub(super) fn trust(&self) -> TrustFiles {
        TrustFiles {
            ca: "the CA\n".to_owned(),
            bundle: "the CA\nand roots\n".to_owned(),
            folder: vec![
                ("0a0a0a0a.0".to_owned(), "the CA\n".to_owned()),
                ("0b0b0b0b.0".to_owned(), "a root\n".to_owned()),
            ],
            java: vec![0xfe, 0xed],
            policy: "{}".to_owned(),
        }
    }

    pub(super) fn plan(&self) -> Result<FilesystemPlan, PlanError> {
        let home = self.home();
        let request = FilesystemRequest {
            sandbox_root: &self.root(),
            state_dirs: &[self.state_dir()],
            files: &self.files,
            values: &self.values,
            working_directory: &self.working(),
            home: Some(&home),
            sockets: &SocketSearch::start([home.as_path()]).finish(),
        };
        let servers = ["198.18.0.1", "fd6f:7574:6761:7465::1"].map(|text| text.parse().unwrap());
        FilesystemPlan::new(&request, servers.into(), self.trust())
    }
}

/// Runs the body of the current test as PID 1 of a sandbox with the file system of `stage`.
pub(super) fn inside(stage: impl FnOnce() -> Stage, test: impl FnOnce(&Stage)) {
    building(
        stage,
        |_| {},
        |built, stage| {
            built.unwrap_or_else(|error| panic!("{error}"));
            test(stage);
        },
    );
}

/// The same with what somebody does between the plan and the building, however that ends.
pub(super) fn building(
    stage: impl FnOnce() -> Stage,
    meanwhile: impl FnOnce(&Stage),
    test: impl FnOnce(Result<(), FilesystemError>, &Stage),
) {
    let Some(base) = env::var_os(FOLDER).map(PathBuf::from) else {
        let stage = stage();
        let plan = serde_json::to_string(&stage.plan().unwrap()).unwrap();
        meanwhile(&stage);
        fs::write(stage.base.join("plan"), plan).unwrap();
        let mut command = again();
        command.env(FOLDER, &stage.base);
        enter_namespaces(&mut command, stage.shown.clone());
        show(&command.output().unwrap());
        assert!(stage.base.join(FINISHED).exists(), "the test did not run to its end inside");
        return;
    };
    let plan = fs::read_to_string(base.join("plan")).unwrap();
    let built = build(&serde_json::from_str(&plan).unwrap());
    let stage = Stage::reopened(base);
    test(built, &stage);
    fs::write(stage.base.join(FINISHED), "").unwrap();
}

/// Runs a script as the command would run: without any capability.
pub(super) fn shell(script: &str) -> String {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = without_capabilities(&mut command).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A process without capabilities makes user and mount namespaces of its own, shows a folder of
/// the home a second time, and moves what is around the state folder into it.
pub(super) fn attack(home: PathBuf) -> String {
    let mut command = Command::new("/bin/sh");
    let script = "mount --bind a /mnt && mv .local/state a/ && cat /mnt/state/outgate/ca.key";
    fs::create_dir(home.join("a")).unwrap();
    command.args(["-c", script]).current_dir(home);
    without_capabilities(&mut command);
    #[expect(unsafe_code, reason = "the child has to be in its namespaces before it executes")]
    // SAFETY: the closure makes one system call.
    unsafe {
        command.pre_exec(|| {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(io::Error::from)
        });
    }
    match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => "unshare: ENOSPC".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn again() -> Command {
    let test = thread::current().name().expect("a test has a name").to_owned();
    // Inside, the program's own path may not be visible, but what runs can be run again.
    let mut command = Command::new("/proc/self/exe");
    command.args([test.as_str(), "--exact", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null());
    command
}

fn enter_namespaces(command: &mut Command, shown: Vec<(PathBuf, PathBuf)>) {
    let maps =
        [("uid_map", format!("0 {} 1", geteuid())), ("gid_map", format!("0 {} 1", getegid()))];
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC;
    #[expect(unsafe_code, reason = "only a forked child without threads enters a user namespace")]
    // SAFETY: the closure makes system calls on strings that exist already.
    unsafe {
        command.pre_exec(move || {
            unshare(flags)?;
            fs::write("/proc/self/setgroups", "deny")?;
            for (name, map) in &maps {
                fs::write(format!("/proc/self/{name}"), map)?;
            }
            for (item, place) in &shown {
                let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
                mount(Some(item), place, None::<&str>, flags, None::<&str>)?;
            }
            become_first()
        });
    }
}

/// The PID namespace begins with the next child: that one goes on, and this process waits for it.
fn become_first() -> io::Result<()> {
    #[expect(unsafe_code, reason = "a process enters a PID namespace by a fork only")]
    // SAFETY: this process is itself a forked child with one thread.
    match unsafe { nix::unistd::fork()? } {
        ForkResult::Child => Ok(()),
        ForkResult::Parent { child } => {
            let ended = matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0)));
            #[expect(unsafe_code, reason = "what the test process does at its end is not ours")]
            // SAFETY: the call ends this process at once.
            unsafe {
                libc::_exit(i32::from(!ended))
            }
        }
    }
}

fn without_capabilities(command: &mut Command) -> &mut Command {
    #[expect(unsafe_code, reason = "the child gives its rights up before it executes")]
    // SAFETY: the closure makes system calls with numbers.
    unsafe {
        command.pre_exec(|| {
            for capability in 0..=63 {
                // Beyond the last one that the kernel knows there is nothing to drop.
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            nix::sys::prctl::set_no_new_privs().map_err(io::Error::from)
        })
    }
}

/// What happened inside, for whoever reads of a failure.
fn show(output: &Output) {
    print!("{}", String::from_utf8_lossy(&output.stdout));
    print!("{}", String::from_utf8_lossy(&output.stderr));
}
