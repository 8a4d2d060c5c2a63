//! What does the re-executed process do before there is a sandbox?
//!
//! It has one thread and nothing of the gateway's memory. It enters the namespaces, makes the
//! network, hands the listeners out, and forks PID 1; then it waits for PID 1's end, with no right
//! and no descriptor but its end of the channel, so that the gateway's process sees that end when
//! everything inside is gone.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::channel::Channel;
use super::error::InsideError;
use super::message::FromInside;
use super::network::{Capture, Sockets};
use super::plan::Plan;
use super::terminal::Terminal;
use super::{descriptors, init, namespace, network, privileges};

/// What the program is called as, and shows up as among the processes.
pub(super) const NAME: &str = "outgate-sandbox";

/// Ends the program here if it was started to launch a sandbox; to be called before anything else
/// is done.
pub(crate) fn take_over() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    if arguments.next()? != NAME {
        return None;
    }
    let channel = descriptor(arguments.next()).and_then(|channel| adopt(channel).ok());
    // Who types the name gets nothing of it.
    Some(channel.map_or(ExitCode::from(64), run))
}

fn descriptor(argument: Option<OsString>) -> Option<RawFd> {
    let number = argument?.to_str()?.parse().ok()?;
    (number > 2).then_some(number)
}

fn adopt(channel: RawFd) -> io::Result<Channel> {
    #[expect(unsafe_code, reason = "a descriptor that comes as a number has no owner yet")]
    // SAFETY: this process was started with it, and has touched none so far.
    let socket = unsafe { OwnedFd::from_raw_fd(channel) };
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(Channel::new(UnixStream::from(socket)))
}

fn run(mut channel: Channel) -> ExitCode {
    match prepare(&mut channel) {
        Ok((plan, terminal)) => start_init(&plan, channel, terminal),
        Err(error) => {
            // Without a listener, it has ended and took the reason along.
            let _ = channel.send(&FromInside::failed(error));
            ExitCode::FAILURE
        }
    }
}

fn prepare(channel: &mut Channel) -> Result<(Plan, Option<Terminal>), InsideError> {
    descriptors::close_inherited(channel.as_fd()).map_err(InsideError::Descriptors)?;
    die_with_parent()?;
    let terminal = Terminal::open();
    let plan: Plan = channel.receive()?;
    namespace::enter()?;
    // The kernel forgot it with the change of rights. Should the parent have died in between, the
    // channel is closed, which is noticed.
    die_with_parent()?;
    // Not earlier: of a process that can't be dumped, nobody may write the id maps.
    prctl::set_dumpable(false).map_err(io::Error::from)?;
    let (sockets, capture) = network::set_up(&plan.ports)?;
    hand_out(channel, &sockets, capture)?;
    Ok((plan, terminal))
}

fn die_with_parent() -> Result<(), InsideError> {
    let name = std::ffi::CString::new(NAME).expect("a constant without zero");
    prctl::set_name(&name)
        .and_then(|()| prctl::set_pdeathsig(Signal::SIGKILL))
        .map_err(|error| InsideError::System(error.into()))
}

fn hand_out(channel: &mut Channel, sockets: &Sockets, capture: Capture) -> Result<(), InsideError> {
    let transparent = sockets.transparent.iter().map(AsFd::as_fd);
    let dns_udp = sockets.dns_udp.iter().map(AsFd::as_fd);
    let dns_tcp = sockets.dns_tcp.iter().map(AsFd::as_fd);
    let descriptors: Vec<_> = transparent.chain(dns_udp).chain(dns_tcp).collect();
    let ready = FromInside::Ready {
        capture,
        transparent: sockets.transparent.len(),
        dns_udp: sockets.dns_udp.len(),
        dns_tcp: sockets.dns_tcp.len(),
    };
    Ok(channel.send_with(&ready, &descriptors)?)
}

fn start_init(plan: &Plan, channel: Channel, terminal: Option<Terminal>) -> ExitCode {
    // While PID 1 makes the root, which is this process's too, there may be none.
    let forked = descriptors::nowhere().and_then(|nowhere| Ok((nowhere, fork_init()?)));
    match forked {
        Ok((_, ForkResult::Child)) => {
            init::run(plan, channel, terminal);
            ExitCode::SUCCESS
        }
        Ok((nowhere, ForkResult::Parent { child })) => {
            drop(terminal);
            // These three calls can't fail: all they name is open.
            let _ = descriptors::leave_standard_streams(&nowhere);
            // What isn't given up here dies with outgate all the same.
            let _ = privileges::drop_capabilities();
            let _ = waitpid(child, None);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let mut channel = channel;
            let _ = channel.send(&FromInside::failed(error.into()));
            ExitCode::FAILURE
        }
    }
}

fn fork_init() -> io::Result<ForkResult> {
    // Neither ends by what is typed or sent to outgate's process group. SIGCHLD may have come
    // ignored, and then no child could be waited for.
    SigSet::all().thread_block()?;
    #[expect(unsafe_code, reason = "nix leaves it to the caller what a handler does")]
    // SAFETY: there is no handler.
    unsafe {
        signal(Signal::SIGCHLD, SigHandler::SigDfl)?;
    }
    #[expect(unsafe_code, reason = "PID 1 is a child without an execution of its own")]
    // SAFETY: this process has one thread, so the child may do whatever the parent may.
    let forked = unsafe { fork() }?;
    Ok(forked)
}
