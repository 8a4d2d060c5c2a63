//! How does the gateway's process get a sandbox?

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::io::{FdFlags, fcntl_setfd};

use super::channel::Channel;
use super::error::SandboxError;
use super::launcher;
use super::message::FromInside;
use super::network::{Capture, Sockets};
use super::plan::Plan;
use super::terminal::{self, Terminal};

/// A sandbox comes up in milliseconds; one that takes longer than this does not.
const DEADLINE: Duration = Duration::from_secs(30);

/// A sandbox whose network is there, and in which nothing runs yet.
#[derive(Debug)]
pub(crate) struct Launched {
    /// What the gateway serves.
    pub(crate) sockets: Sockets,
    /// Whose traffic comes to them.
    pub(crate) capture: Capture,
    pub(super) launcher: Launcher,
    pub(super) socket: UnixStream,
    pub(super) terminal: Option<Terminal>,
}

impl Launched {
    /// Starts a launcher, and waits until the network of its sandbox is there.
    ///
    /// The sandbox dies with the thread that calls this, and its command finds signals as this
    /// process has them: for a command, call it from the first thread, before any signal is caught.
    pub(crate) fn launch(plan: &Plan) -> Result<Launched, SandboxError> {
        let (ours, theirs) = UnixStream::pair().map_err(SandboxError::Spawn)?;
        let launcher = Launcher::start(theirs).map_err(SandboxError::Spawn)?;
        let deadlines = ours
            .set_read_timeout(Some(DEADLINE))
            .and_then(|()| ours.set_write_timeout(Some(DEADLINE)));
        deadlines.map_err(SandboxError::Spawn)?;
        let mut channel = Channel::new(ours);
        channel.send(plan)?;
        let (sockets, capture) = match channel.receive_with()? {
            (FromInside::Ready { capture, transparent, dns_udp, dns_tcp }, descriptors) => {
                (sort(descriptors, [transparent, dns_udp, dns_tcp]), capture)
            }
            (FromInside::Failed { message }, _) => return Err(SandboxError::Inside(message)),
            (other, _) => return Err(SandboxError::Unexpected(format!("{other:?}"))),
        };
        let sockets = sockets.ok_or_else(|| SandboxError::Unexpected("too few sockets".into()))?;
        // Preparations alone have no use for one.
        let terminal = match plan.command {
            Some(_) => {
                terminal::ignore_background_stops().map_err(SandboxError::Spawn)?;
                Terminal::open()
            }
            None => None,
        };
        Ok(Launched { sockets, capture, launcher, socket: channel.into_socket(), terminal })
    }
}

/// The signals that this thread blocks.
pub(crate) fn blocked_signals() -> Vec<i32> {
    // It fails for no argument that there is.
    let blocked = SigSet::thread_get_mask().unwrap_or(SigSet::empty());
    blocked.iter().map(|signal| signal as i32).collect()
}

/// The launcher's process. Dropped, it is killed, and everything in the sandbox with it.
#[derive(Debug)]
pub(super) struct Launcher(Child);

impl Launcher {
    fn start(channel: UnixStream) -> io::Result<Launcher> {
        let number = channel.as_raw_fd();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(launcher::NAME).arg(number.to_string()).env_clear();
        #[expect(unsafe_code, reason = "only the forked child may let a descriptor be inherited")]
        // SAFETY: the closure makes one system call, on a descriptor that is open until `channel`
        // is dropped below.
        unsafe {
            command.pre_exec(move || inherit(BorrowedFd::borrow_raw(number)));
        }
        let child = command.spawn()?;
        drop(channel);
        Ok(Launcher(child))
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn inherit(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// The descriptors as what they are, if as many came as were told of.
fn sort(descriptors: Vec<OwnedFd>, counts: [usize; 3]) -> Option<Sockets> {
    if descriptors.len() != counts.iter().sum::<usize>() {
        return None;
    }
    let [transparent, dns_udp, _] = counts;
    let mut descriptors = descriptors.into_iter();
    let transparent = descriptors.by_ref().take(transparent).map(TcpListener::from).collect();
    let dns_udp = descriptors.by_ref().take(dns_udp).map(UdpSocket::from).collect();
    let dns_tcp = descriptors.map(TcpListener::from).collect();
    Some(Sockets { transparent, dns_udp, dns_tcp })
}
