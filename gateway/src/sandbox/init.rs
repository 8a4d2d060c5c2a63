//! What does PID 1 of the sandbox do?
//!
//! It makes the root, runs what comes before the command, gives up all its rights and starts the
//! command. From then on it reaps whoever ends, passes signals on, and ends with the command: with
//! PID 1 the kernel ends everything in the namespace (pid_namespaces(7)). No signal from inside
//! reaches it, and it is not dumpable, so that nobody in there can look into it.

use std::env;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpid};
use rustix::process::{WaitOptions, WaitStatus, wait};

use super::channel::{Channel, ChannelError};
use super::error::InsideError;
use super::message::{FromInside, ToInside};
use super::plan::{Plan, Task};
use super::preparation::{self, PreparationError};
use super::terminal::Terminal;
use super::{descriptors, filesystem, hook, privileges, task};

/// Becomes PID 1; returns when the sandbox shall end. All signals are blocked.
pub(super) fn run(plan: &Plan, channel: Channel, terminal: Option<Terminal>) {
    let mut init = Init { channel, terminal };
    let last = match init.start(plan) {
        Ok(Ok(command)) => init.attend(command).unwrap_or_else(FromInside::failed),
        Ok(Err(none_runs)) => none_runs,
        Err(InsideError::Preparation(PreparationError::Interrupted { signal, .. })) => {
            FromInside::Ended { code: by_signal(signal as i32) }
        }
        Err(error) => FromInside::failed(error),
    };
    // Nobody to tell it to: outgate is gone, and so is this process in a moment.
    let _ = init.channel.send(&last);
}

struct Init {
    channel: Channel,
    terminal: Option<Terminal>,
}

impl Init {
    /// The running command, or what to say where none is or can be run.
    fn start(&mut self, plan: &Plan) -> Result<Result<Pid, FromInside>, InsideError> {
        // With the launcher, its parent, which dies with outgate.
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from)?;
        filesystem::build(&plan.filesystem)?;
        let foreground = match self.channel.receive()? {
            ToInside::Start { foreground } => foreground,
            other => return Err(InsideError::Unexpected(format!("{other:?}"))),
        };
        for preparation in &plan.preparations {
            preparation::run(preparation, &mut self.channel)?;
            end_all_others()?;
        }
        for path in &plan.read_only {
            filesystem::make_read_only(Path::new(path))?;
        }
        privileges::confine().map_err(InsideError::Confine)?;
        let Some(task) = &plan.command else { return Ok(Err(FromInside::Ended { code: 0 })) };
        env::set_current_dir(&task.directory).map_err(|error| InsideError::Directory {
            directory: task.directory.clone().into(),
            error,
        })?;
        let early = self.wait_for_word()?;
        let terminal = self.terminal.as_ref().filter(|_| foreground);
        let mut command = task::sandboxed(task, &plan.blocked_signals, terminal);
        if plan.silent {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        }
        match command.spawn() {
            Ok(command) => {
                descriptors::leave_standard_streams(&descriptors::nowhere()?)?;
                self.channel.send(&FromInside::Started)?;
                let command = Pid::from_raw(command.id().cast_signed());
                for signal in early {
                    self.act_on(signal, Vec::new(), command)?;
                }
                Ok(Ok(command))
            }
            Err(error) => Ok(Err(not_run(task, &error))),
        }
    }

    /// Until the command may run; the signals that came for it meanwhile.
    fn wait_for_word(&mut self) -> Result<Vec<ToInside>, InsideError> {
        self.channel.send(&FromInside::Prepared)?;
        let mut early = Vec::new();
        loop {
            match self.channel.receive()? {
                ToInside::Run => return Ok(early),
                signal @ ToInside::Signal { .. } => early.push(signal),
                other => return Err(InsideError::Unexpected(format!("{other:?}"))),
            }
        }
    }

    /// Serves the command until its end.
    fn attend(&mut self, command: Pid) -> Result<FromInside, InsideError> {
        let signals = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_NONBLOCK)
            .map_err(io::Error::from)?;
        loop {
            if let Some(ended) = self.reap(command)? {
                return Ok(ended);
            }
            let mut waiting = [
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.channel.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut waiting, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let asked = waiting[1].any() == Some(true);
            // Many children that end at once are one signal.
            while signals.read_signal().is_ok_and(|signal| signal.is_some()) {}
            if asked {
                self.obey(command)?;
            }
        }
    }

    /// Waits for all who ended or stopped; what is to be said when the command ended.
    fn reap(&mut self, command: Pid) -> Result<Option<FromInside>, ChannelError> {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid.as_raw_pid() == command.as_raw() => {
                    if let Some(signal) = status.stopping_signal() {
                        self.channel.send(&FromInside::Stopped { signal })?;
                    } else {
                        return Ok(Some(FromInside::Ended { code: exit_code(status) }));
                    }
                }
                // An orphan.
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    fn obey(&mut self, command: Pid) -> Result<(), InsideError> {
        let (message, descriptors) = self.channel.receive_with()?;
        self.act_on(message, descriptors, command)
    }

    fn act_on(
        &self,
        message: ToInside,
        descriptors: Vec<OwnedFd>,
        command: Pid,
    ) -> Result<(), InsideError> {
        // A signal that comes too late is none: its receiver is gone.
        let _ = match message {
            ToInside::Hook => {
                hook::start(descriptors);
                Ok(())
            }
            ToInside::Signal { signal, group } => match Signal::try_from(signal) {
                Ok(signal) if group => killpg(command, signal),
                Ok(signal) => kill(command, signal),
                Err(unknown) => Err(unknown),
            },
            ToInside::Continue { foreground } => {
                if let Some(terminal) = self.terminal.as_ref().filter(|_| foreground) {
                    terminal.give(command);
                }
                killpg(command, Signal::SIGCONT)
            }
            other @ (ToInside::Start { .. } | ToInside::Run) => {
                return Err(InsideError::Unexpected(format!("{other:?}")));
            }
        };
        Ok(())
    }
}

/// Nothing that a preparation left behind may see the rest of the preparations, which are done with
/// rights, or outlive them.
fn end_all_others() -> Result<(), InsideError> {
    // Whoever is not PID 1 would end all that its user runs.
    if getpid() != Pid::from_raw(1) {
        return Err(InsideError::Unexpected("the preparation of another process".to_owned()));
    }
    let everybody = Pid::from_raw(-1);
    // There may be nobody.
    let _ = kill(everybody, Signal::SIGKILL);
    // Orphans become children here, so no child means nobody.
    while wait(WaitOptions::empty()).is_ok() {}
    Ok(())
}

fn exit_code(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => by_signal(signal.unwrap_or_default()),
    }
}

/// As a shell has it.
fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 | signal).unwrap_or(u8::MAX)
}

/// As env(1) has it: 127 for what isn't there, 126 for what can't be executed.
fn not_run(task: &Task, error: &io::Error) -> FromInside {
    let program = task.program.display();
    match error.kind() {
        io::ErrorKind::NotFound => FromInside::NotRun {
            code: 127,
            message: format!("{program}: not found in the sandbox: name a program in its PATH"),
        },
        _ => FromInside::NotRun { code: 126, message: format!("{program}: {error}") },
    }
}
