//! How does a test run a program to its end, and never longer than it should?

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::wait::wait_for;

/// A command that answers at once is done long before this, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a program left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// All of its standard error, as text.
    pub stderr: String,
}

impl Finished {
    /// The exit code.
    ///
    /// # Panics
    /// When a signal ended it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("the program ended with {}: {}", self.status, self.stderr))
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Runs `outgate` with these arguments, an empty standard input and nothing of the test's
/// environment but `PATH`.
///
/// # Panics
/// When it can't be started or is still running after 20 s.
pub fn outgate(program: impl AsRef<Path>, arguments: &[&str]) -> Finished {
    let mut command = Command::new(program.as_ref());
    run(clean(&mut command).args(arguments), b"", DEADLINE)
}

/// Clears the environment but for `PATH`: no proxy, no trust variable, no `HOME` of the developer.
pub fn clean(command: &mut Command) -> &mut Command {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default())
}

/// Runs a command to its end with `input` on its standard input.
///
/// # Panics
/// When it can't be started or is still running after `deadline`.
pub fn run(command: &mut Command, input: &[u8], deadline: Duration) -> Finished {
    Running::start(command, input).finish(deadline)
}

/// A program that runs beside the test. Dropped, it is killed.
pub struct Running {
    child: Child,
    name: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts it, with its pipes served by threads.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start(command: &mut Command, input: &[u8]) -> Self {
        let mut started = Self::attend(command.stdin(Stdio::piped()));
        let mut stdin = started.child.stdin.take().expect("it was asked for");
        let input = input.to_vec();
        // The program may leave its input unread.
        thread::spawn(move || stdin.write_all(&input));
        started
    }

    /// Starts it with the standard input that it has, and its outputs served by threads.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn attend(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|fault| panic!("cannot start {name}, is it installed? {fault}"));
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { child, name, stdout, stderr }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it is still running after `deadline`.
    pub fn finish(mut self, deadline: Duration) -> Finished {
        let status = wait_for(deadline, || self.child.try_wait().expect("the child is ours"));
        let Some(status) = status else {
            let name = self.name.clone();
            drop(self);
            panic!("{name} was still running after {deadline:?} and was killed");
        };
        let take = |pipe: &mut Option<JoinHandle<Vec<u8>>>| {
            pipe.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        let stdout = take(&mut self.stdout);
        let stderr = String::from_utf8_lossy(&take(&mut self.stderr)).into_owned();
        Finished { status, stdout, stderr }
    }

    /// Ends it at once, as a client that vanishes.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a broken pipe is still what the program said.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_input_output_and_exit_code() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo trouble >&2; exit 3"]);
        let finished = run(&mut command, b"hello", DEADLINE);
        assert_eq!((finished.code(), finished.text().as_str()), (3, "hello"));
        assert_eq!(finished.stderr, "trouble\n");
    }

    #[test]
    #[should_panic(expected = "was still running")]
    fn kills_what_runs_too_long() {
        run(Command::new("sleep").arg("30"), b"", Duration::from_millis(50));
    }
}
