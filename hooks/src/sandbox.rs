//! Where do commands run? In the namespaces of a process of the sandbox, and nowhere else.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use tokio::process::{Child, Command};

use crate::command::{Spawner, Started, Streams};
use crate::outcome::{Cause, Failure};

/// A process whose user, mount, network and PID namespaces are other than the gateway's. It is held
/// by descriptor, so that its number can pass to no other, and so are the namespaces that it has
/// now: the process may belong to the sandbox, and could enter others that it has prepared.
#[derive(Debug)]
pub struct Sandbox {
    process: OwnedFd,
    namespaces: Vec<(CloneFlags, OwnedFd)>,
    root: OwnedFd,
}

/// Starts commands in a sandbox.
#[derive(Debug)]
pub struct InSandbox {
    /// The sandbox.
    pub sandbox: Arc<Sandbox>,
    /// The program that calls [`supervise`](crate::supervise), and the name it is called by.
    pub supervisor: (PathBuf, String),
    /// Where in the sandbox commands run.
    pub directory: String,
    /// All of their environment.
    pub env: Vec<(String, String)>,
}

/// The kinds of namespaces, that of the user first: it gives the right to enter the others.
const KINDS: [(&str, CloneFlags); 7] = [
    ("user", CloneFlags::CLONE_NEWUSER),
    ("mnt", CloneFlags::CLONE_NEWNS),
    ("net", CloneFlags::CLONE_NEWNET),
    ("pid", CloneFlags::CLONE_NEWPID),
    ("ipc", CloneFlags::CLONE_NEWIPC),
    ("uts", CloneFlags::CLONE_NEWUTS),
    ("cgroup", CloneFlags::CLONE_NEWCGROUP),
];

/// Without these of its own, a process is not in a sandbox.
const OWN: CloneFlags = CloneFlags::CLONE_NEWUSER
    .union(CloneFlags::CLONE_NEWNS)
    .union(CloneFlags::CLONE_NEWNET)
    .union(CloneFlags::CLONE_NEWPID);

impl Sandbox {
    /// Opens the process with this number.
    pub fn open(pid: i32) -> Result<Sandbox, Failure> {
        let process = open_pidfd(pid).map_err(|error| none(format!("process {pid}: {error}")))?;
        let unseen = |error: io::Error| none(format!("namespaces of process {pid}: {error}"));
        let mut namespaces = Vec::new();
        for (name, kind) in KINDS {
            let own = identity(&open(&format!("/proc/self/ns/{name}")).map_err(unseen)?);
            let theirs = open(&format!("/proc/{pid}/ns/{name}")).map_err(unseen)?;
            if own.map_err(unseen)? != identity(&theirs).map_err(unseen)? {
                namespaces.push((kind, theirs.into()));
            } else if OWN.contains(kind) {
                let detail = format!("process {pid} has the gateway's own {name} namespace");
                return Err(none(detail));
            }
        }
        let root = super::open_root(Path::new(&format!("/proc/{pid}/root"))).map_err(unseen)?;
        let sandbox = Sandbox { process, namespaces, root };
        // What was opened was of this process, and not of one that has its number by now.
        if sandbox.is_alive() { Ok(sandbox) } else { Err(none(format!("process {pid} has ended"))) }
    }

    /// Whether the process still runs.
    pub fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(self.process.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO) == Ok(0)
    }

    /// Its root folder.
    pub fn root(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    pub(crate) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    pub(crate) fn root_folder(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Those that are not the gateway's own.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = (CloneFlags, BorrowedFd<'_>)> {
        self.namespaces.iter().map(|(kind, namespace)| (*kind, namespace.as_fd()))
    }
}

impl Spawner for InSandbox {
    async fn start(&self, streams: Streams) -> Result<Started, Failure> {
        if !self.sandbox.is_alive() {
            return Err(none("the sandbox has ended".to_owned()));
        }
        let (program, name) = &self.supervisor;
        let process = spawn_supervisor(program, name, streams)
            .map_err(|error| Failure::new(Cause::CannotStart, error.to_string()))?;
        Ok(Started {
            process: Some(process),
            enter: Some(Arc::clone(&self.sandbox)),
            directory: self.directory.clone(),
            env: self.env.clone(),
        })
    }
}

/// Starts `program` under this name, as a supervisor on `streams`.
pub fn spawn_supervisor(program: &Path, name: &str, streams: Streams) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0(name).env_clear();
    command.stdin(streams.control).stdout(streams.stdout).stderr(streams.stderr).spawn()
}

fn none(detail: String) -> Failure {
    Failure::new(Cause::NoSandbox, detail)
}

fn open(path: &str) -> io::Result<File> {
    File::open(path)
}

/// Two namespaces are one if these are equal (namespaces(7)).
fn identity(namespace: &File) -> io::Result<(u64, u64)> {
    namespace.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[expect(unsafe_code, reason = "there is no safe pidfd_open")]
fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: it takes numbers and makes a descriptor, which is closed on exec.
    let opened = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let raw = i32::try_from(opened).map_err(|_| Errno::EBADF)?;
    // SAFETY: the descriptor was made by the call above and is known to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
