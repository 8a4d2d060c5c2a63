//! How does a test sit at a terminal?

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::unistd::setsid;

use crate::wait::{SOON, wait_for, wait_until};

/// A terminal with a program that has it for its own, as one logs in at. Dropped, it is hung up.
pub struct Terminal {
    keyboard: File,
    child: Child,
    shown: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
    stop: PipeWriter,
    /// Up to where the test has looked.
    seen: usize,
}

impl Terminal {
    /// Starts `command` as the leader of the terminal's session.
    ///
    /// # Panics
    /// When there is no pty, or the program can't be started.
    pub fn start(command: &mut Command) -> Self {
        let pty = openpty(None, None).expect("there are ptys");
        let (keyboard, line) = (File::from(pty.master), File::from(pty.slave));
        let clone = || line.try_clone().expect("a descriptor can be doubled");
        command.stdin(clone()).stdout(clone()).stderr(clone());
        let master = keyboard.as_raw_fd();
        #[expect(unsafe_code, reason = "only the forked child can make the terminal its own")]
        // SAFETY: the closure makes three system calls. The descriptor that it closes is its own
        // copy, and no longer used there.
        unsafe {
            command.pre_exec(move || {
                libc::close(master);
                setsid()?;
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("the program can be started");
        let shown = Arc::default();
        let (stopped, stop) = io::pipe().expect("there are pipes");
        let double = keyboard.try_clone().expect("a descriptor can be doubled");
        let reader = read(double, &shown, stopped);
        Self { keyboard, child, shown, reader, stop, seen: 0 }
    }

    /// Types this.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Waits until this is shown, behind what was waited for before; what was shown in between.
    ///
    /// # Panics
    /// When it isn't within 10 s.
    pub fn expect(&mut self, text: &str) -> String {
        let found = wait_for(SOON * 2, || {
            let shown = self.shown.lock().expect("no reader panics");
            shown[self.seen..].find(text).map(|at| self.seen + at)
        });
        let found = found.unwrap_or_else(|| panic!("no `{text}` but:\n{}", self.everything()));
        let between = self.everything()[self.seen..found].to_owned();
        self.seen = found + text.len();
        between
    }

    /// All that was shown.
    ///
    /// # Panics
    /// Never.
    pub fn everything(&self) -> String {
        self.shown.lock().expect("no reader panics").clone()
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// When it doesn't end within 5 s.
    pub fn end(&mut self) -> ExitStatus {
        let ended = wait_for(SOON, || self.child.try_wait().expect("the child is ours"));
        ended.unwrap_or_else(|| panic!("it runs on:\n{}", self.everything()))
    }

    /// Hangs up, and waits until the program has ended for it.
    ///
    /// # Panics
    /// When it doesn't.
    pub fn hang_up(self) {
        let Self { keyboard, mut child, reader, stop, .. } = self;
        // The reader has the other handle.
        drop((keyboard, stop));
        reader.join().expect("no reader panics");
        let ended = wait_until(SOON, || child.try_wait().is_ok_and(|status| status.is_some()));
        assert!(ended, "the program outlived its terminal");
    }
}

/// Reads what is shown until the other end of `stopped` is closed.
fn read(mut from: File, shown: &Arc<Mutex<String>>, stopped: PipeReader) -> JoinHandle<()> {
    let shown = Arc::clone(shown);
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        loop {
            let readable = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
            let mut waiting = [readable(stopped.as_fd()), readable(from.as_fd())];
            poll(&mut waiting, PollTimeout::NONE).expect("descriptors can be polled");
            if waiting[0].any() == Some(true) {
                return;
            }
            // Reading fails when nobody has the terminal open any more.
            let Ok(length @ 1..) = from.read(&mut buffer) else { return };
            let text = String::from_utf8_lossy(&buffer[..length]);
            shown.lock().expect("no reader panics").push_str(&text);
        }
    })
}
