//! Does a terminal serve a command in a sandbox as it does any other, and no more?

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_tests::prelude::*;
use outgate_tests::pty::Terminal;
use outgate_tests::run::processes_with;

const STOP: &str = "\x1a";
const INTERRUPT: &str = "\x03";
const END: &str = "\x04";

/// A shell with job control that was told to run a script in a sandbox, with `behind` behind.
fn shell_with(script: &str, behind: &str) -> Terminal {
    let words = world!().run().words(&["/bin/sh", "-c", script]);
    shell(&format!("{} {behind}", quoted(words.iter().map(OsString::as_os_str))))
}

/// A shell with job control that was given this line.
fn shell(line: &str) -> Terminal {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-i").env("PS1", "$ ").env_remove("ENV").current_dir("/");
    let mut shell = Terminal::start(&mut shell);
    shell.expect("$ ");
    shell.press(&format!("{line}\n"));
    shell
}

fn quoted<'a>(words: impl Iterator<Item = &'a OsStr>) -> String {
    let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// The same with a `cat` that is known to run: dash(1) loses a signal that comes while it starts it.
fn shell_with_cat() -> Terminal {
    let mut shell = shell_with("cat", "");
    shell.press("here\n");
    // Once by the terminal, once by cat.
    shell.expect("here");
    shell.expect("here");
    shell
}

#[test]
fn what_is_typed_reaches_the_command() {
    isolated(|| {
        let mut shell = shell_with("echo up-$((40+2)); read l; echo got-$l", "");
        shell.expect("up-42");
        shell.press("typed\n");
        shell.expect("got-typed");
        shell.expect("$ ");
        shell.press("echo code-$?\n");
        shell.expect("code-0");
    });
}

#[test]
fn an_interrupt_ends_the_command_and_not_the_shell() {
    isolated(|| {
        let mut shell = shell_with_cat();
        shell.press(INTERRUPT);
        shell.expect("$ ");
        shell.press("echo code-$?\n");
        shell.expect("code-130");
    });
}

#[test]
fn a_stop_gives_the_terminal_back_and_fg_goes_on() {
    isolated(|| {
        let mut shell = shell_with_cat();
        for round in 1..=3 {
            shell.press(STOP);
            shell.expect("Stopped");
            shell.press(&format!("echo shell-$((100+{round}))\n"));
            shell.expect(&format!("shell-10{round}"));
            shell.press("fg\n");
            shell.press(&format!("inside-{round}\n"));
            shell.expect(&format!("inside-{round}"));
            shell.expect(&format!("inside-{round}"));
        }
        shell.press(END);
        shell.expect("$ ");
        shell.press("echo code-$?\n");
        shell.expect("code-0");
    });
}

#[test]
fn in_the_background_it_stops_when_it_wants_the_terminal() {
    isolated(|| {
        let mut shell = shell_with("read l; echo got-$l", "&");
        let stopped = wait_until(Duration::from_secs(10), || {
            shell.press("jobs; echo asked-$((40+2))\n");
            shell.expect("asked-42").contains("Stopped")
        });
        assert!(stopped, "{}", shell.everything());
        shell.press("fg\n");
        shell.press("typed\n");
        shell.expect("got-typed");
    });
}

#[test]
fn fg_of_what_ran_in_the_background_all_along_reaches_it() {
    isolated(|| {
        let script = "trap 'told=1' USR1; echo up-$((40+2)); \
                      while [ -z $told ]; do sleep 0.02; done; read l; echo got-$l";
        let mut shell = shell_with(script, "& echo pid-$!.");
        shell.expect("pid-");
        let outgate = loop {
            // The line that was typed is shown too.
            match shell.expect(".").parse() {
                Ok(pid) => break Pid::from_raw(pid),
                Err(_) => shell.expect("pid-"),
            };
        };
        shell.expect("up-42");
        shell.press("echo shell-$((40+2)); fg\n");
        shell.expect("shell-42");
        // What the shell shows when it has done so.
        shell.expect("got-");
        kill(outgate, Signal::SIGUSR1).unwrap();
        shell.press("typed\n");
        shell.expect("got-typed");
    });
}

#[test]
fn a_hangup_ends_what_runs_at_the_terminal() {
    isolated(|| {
        let marker = format!("16.{}", std::process::id());
        let mut shell = shell_with(&format!("echo up-$((40+2)); exec sleep {marker}"), "");
        shell.expect("up-42");
        assert!(wait_until(Duration::from_secs(5), || processes_with(&marker) > 0));
        shell.hang_up();
        assert!(wait_until(Duration::from_secs(5), || processes_with(&marker) == 0));
    });
}

#[test]
fn nothing_is_typed_into_the_terminal_from_inside() {
    isolated(|| {
        let words = world!().run().command_inside("types_into_the_terminal");
        let words = [words.get_program()].into_iter().chain(words.get_args());
        let binary = std::env::current_exe().unwrap();
        let mut shell = shell(&format!("{} < {}", quoted(words), binary.display()));
        shell.expect("refused 4 times, the terminal has 0 bytes");
    });
}

#[test]
#[ignore = "runs inside the sandbox of another test"]
fn types_into_the_terminal() {
    let terminal = File::options().read(true).write(true).open("/dev/tty").unwrap();
    let requests = [
        libc::TIOCSTI,
        libc::TIOCLINUX,
        libc::TIOCSTI | 1 << 32,
        libc::TIOCLINUX | 0xffff_ffff << 32,
    ];
    let refused = requests.iter().filter(|request| {
        #[expect(unsafe_code, reason = "an ioctl by number")]
        // SAFETY: both read one byte.
        let done = unsafe { libc::syscall(libc::SYS_ioctl, terminal.as_raw_fd(), **request, b"x") };
        done == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    });
    let refused = refused.count();
    let mut waiting = 0;
    #[expect(unsafe_code, reason = "an ioctl by number")]
    // SAFETY: it writes an int.
    unsafe {
        libc::ioctl(terminal.as_raw_fd(), libc::FIONREAD, &raw mut waiting);
    }
    println!("refused {refused} times, the terminal has {waiting} bytes");
}
