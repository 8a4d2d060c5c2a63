//! What does the program say while it runs, and how is it ended?

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::wait::{SOON, wait_for, wait_until};

/// A child whose two outputs are read line by line.
pub(super) struct Process {
    child: Child,
    lines: Arc<Mutex<Lines>>,
    readers: Vec<JoinHandle<()>>,
    ended: Option<ExitStatus>,
}

/// What it has said so far.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) stdout: Vec<String>,
    pub(super) audit: Vec<Value>,
    pub(super) logs: Vec<String>,
    /// Both outputs, in the order of their coming.
    pub(super) everything: String,
}

impl Process {
    pub(super) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[expect(unsafe_code, reason = "only the forked child can ask to die with its parent")]
        // SAFETY: the closure makes one system call.
        unsafe {
            // A test that is killed runs no destructor. The signal comes with the end of the
            // starting thread, which in a test is the thread of the test.
            command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|fault| panic!("cannot start {:?}: {fault}", command.get_program()));
        let lines = Arc::new(Mutex::new(Lines::default()));
        let stdout = child.stdout.take().expect("it was asked for");
        let stderr = child.stderr.take().expect("it was asked for");
        let readers = vec![
            read_lines(stdout, &lines, |lines, line| lines.stdout.push(line)),
            read_lines(stderr, &lines, Lines::sort),
        ];
        Self { child, lines, readers, ended: None }
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("no reader panics")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Once it has been waited for, its number may be another's.
        if self.ended.is_none() {
            let pid = i32::try_from(self.pid()).expect("a process id is an i32");
            kill(Pid::from_raw(pid), signal).expect("a child that was not waited for has its id");
        }
    }

    pub(super) fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the child is ours");
        }
        self.ended
    }

    /// Its end, once all it said has been read.
    pub(super) fn wait(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let status = wait_for(deadline, || self.try_wait())?;
        // Not longer: a process that it started may hold the pipes open.
        wait_until(SOON, || self.readers.iter().all(JoinHandle::is_finished));
        Some(status)
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.wait(Duration::MAX);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            show(&self.lines().everything);
        }
    }
}

impl Lines {
    fn sort(&mut self, line: String) {
        match serde_json::from_str::<Value>(&line) {
            Ok(record) if record.get("kind").is_some() => self.audit.push(record),
            _ => self.logs.push(line),
        }
    }
}

fn read_lines(
    pipe: impl Read + Send + 'static,
    lines: &Arc<Mutex<Lines>>,
    keep: fn(&mut Lines, String),
) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            line.clear();
            let mut lines = lines.lock().expect("no reader panics");
            lines.everything += &text;
            lines.everything.push('\n');
            keep(&mut lines, text);
        }
    })
}

#[expect(clippy::print_stderr, reason = "a failing test shows what the gateway said")]
fn show(everything: &str) {
    eprintln!("--- the gateway said:\n{everything}---");
}
