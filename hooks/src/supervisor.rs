//! Who watches over a command, inside its sandbox, until nothing of it is left?
//!
//! A process of its own. Orphans go to the nearest subreaper above them (prctl(2),
//! `PR_SET_CHILD_SUBREAPER`), so that whatever the command starts, and however often it forks or
//! leaves its session, stays below this process; it ends when it has no children any more. It
//! obeys the gateway over one socket and keeps no time itself: the deadlines are in
//! [`command`](crate::command), and a socket that closes means that the gateway has gone or
//! doesn't wait any longer.
//!
//! The gateway re-executes itself and calls [`supervise`] first thing, before it has threads or
//! secrets.

mod child;
mod control;
mod enter;
mod limits;
mod process;

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub(crate) use control::{Gateway, Job, Report};
use control::{Order, Received, Supervisor};
use enter::Side;

/// How many milliseconds a pass over the descendants waits for the kernel to report their ends.
const PASS: u8 = 20;

/// Runs the command that is described on the socket at descriptor 0; returns when the last of its
/// descendants has been reaped. The process must have one thread.
pub fn supervise() -> std::io::Result<()> {
    let (mut supervisor, received) = Supervisor::receive()?;
    // Every signal is left pending: the sandbox's own user could end this process by one. (That
    // user could send SIGKILL; then the command dies with it, and the handler has failed.)
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)?;
    if let Some(inside) = &received.sandbox {
        match enter::enter(inside, &received.job.enter) {
            Ok(Side::Inside) => {}
            Ok(Side::Outside) => return Ok(()),
            Err(error) => return supervisor.report(Report::NotEntered(errno(&error))),
        }
    }
    match start(received) {
        Ok(main) => Watch::new(supervisor, main)?.run(),
        Err(error) => supervisor.report(Report::NotStarted(errno(&error))),
    }
}

fn start(received: Received) -> std::io::Result<Pid> {
    prctl::set_dumpable(false)?;
    prctl::set_child_subreaper(true)?;
    if !process::can_be_seen() {
        return Err(Errno::ENOSYS.into());
    }
    // Dropped here is the descriptor of the sandbox too.
    child::start(&received.job, received.stdin)
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::EIO as i32)
}

/// A running command.
struct Watch {
    supervisor: Supervisor,
    main: Pid,
    ended: bool,
    /// Everything was asked to end, and may take its time until the gateway says kill.
    asked: bool,
    ends: SignalFd,
}

impl Watch {
    fn new(supervisor: Supervisor, main: Pid) -> std::io::Result<Watch> {
        let ends = SignalFd::with_flags(
            &SigSet::from_iter([Signal::SIGCHLD]),
            SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
        )?;
        Ok(Watch { supervisor, main, ended: false, asked: false, ends })
    }

    /// Until the command ends; once it is asked to, until all that it started has ended.
    fn run(mut self) -> std::io::Result<()> {
        while self.reap() && (self.asked || !self.ended) {
            let [ordered, _] =
                wait([self.supervisor.as_fd(), self.ends.as_fd()], PollTimeout::NONE)?;
            while self.ends.read_signal()?.is_some() {}
            if !ordered {
                continue;
            }
            match self.supervisor.order() {
                Order::Terminate => {
                    self.asked = true;
                    for process in process::descendants() {
                        process.signal(Signal::SIGTERM);
                        // One that was stopped hears of it only when it goes on.
                        process.signal(Signal::SIGCONT);
                    }
                }
                Order::Kill => break,
            }
        }
        self.kill()
    }

    /// Kills what is left, again and again: what was forked during one pass is found by the next.
    fn kill(mut self) -> std::io::Result<()> {
        while self.reap() {
            for process in process::descendants() {
                process.signal(Signal::SIGKILL);
            }
            wait([self.ends.as_fd()], PASS.into())?;
            while self.ends.read_signal()?.is_some() {}
        }
        Ok(())
    }

    /// Whether there are still children. The gateway is told of the command's own end at once,
    /// before what it left behind is gone.
    fn reap(&mut self) -> bool {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(_) => return false,
            };
            if status.pid() != Some(self.main) {
                continue;
            }
            self.ended = true;
            let report = match status {
                WaitStatus::Exited(_, code) => Report::Exited(code),
                WaitStatus::Signaled(_, signal, _) => Report::Signalled(signal as i32),
                _ => continue,
            };
            // A gateway that is gone needs no report; what is left is killed all the same.
            let _ = self.supervisor.report(report);
        }
    }
}

/// Waits until one can be read, or is at its end.
fn wait<const N: usize>(
    ends: [BorrowedFd<'_>; N],
    patience: PollTimeout,
) -> std::io::Result<[bool; N]> {
    let mut polled = ends.map(|end| PollFd::new(end, PollFlags::POLLIN));
    match poll(&mut polled, patience) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled.map(|end| end.revents().is_some_and(|events| !events.is_empty())))
}
