//! How does a task become a process of the sandbox?

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpgrp, tcsetpgrp};

use super::plan::Task;
use super::privileges;
use super::terminal::Terminal;

/// `task`, in a process group of its own, with exactly the variables that it names.
fn command(task: &Task) -> Command {
    let mut command = Command::new(&task.program);
    command
        .args(&task.arguments)
        .env_clear()
        .envs(task.variables.iter().map(|(name, value)| (name, value)))
        .process_group(0);
    command
}

/// What runs before PID 1 has given up its rights: it gives up its own.
pub(super) fn preparation(task: &Task) -> Command {
    let mut command = command(task);
    command.current_dir(&task.directory);
    before_exec(&mut command, privileges::confine);
    command
}

/// What the sandbox is for, with the signals blocked that were when outgate was started. PID 1 is
/// in its working directory and confined.
pub(super) fn sandboxed(task: &Task, blocked: &[i32], terminal: Option<&Terminal>) -> Command {
    let mut command = command(task);
    let blocked: SigSet = blocked.iter().filter_map(|it| Signal::try_from(*it).ok()).collect();
    // Open in the child until it executes.
    let terminal = terminal.map(|terminal| terminal.as_fd().try_clone_to_owned());
    before_exec(&mut command, move || {
        if let Some(Ok(terminal)) = &terminal {
            come_to_the_foreground(terminal.as_fd())?;
        }
        Ok(blocked.thread_set_mask()?)
    });
    command
}

fn come_to_the_foreground(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // In a group of its own it is in the background, where only one that blocks SIGTTOU may ask.
    SigSet::from(Signal::SIGTTOU).thread_block()?;
    // A terminal that is gone is the command's trouble, as it were outside.
    let _ = tcsetpgrp(terminal, getpgrp());
    Ok(())
}

fn before_exec(
    command: &mut Command,
    step: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    #[expect(unsafe_code, reason = "only the forked child can do this for itself")]
    // SAFETY: this process has one thread, so the child may do whatever the parent may.
    unsafe {
        command.pre_exec(step);
    }
}
