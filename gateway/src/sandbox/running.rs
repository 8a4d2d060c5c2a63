//! How does the gateway's process follow what goes on in the sandbox?

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::signal::Signal;
use outgate_hooks::Streams;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::channel::{ChannelError, decode, encode, send_with};
use super::error::SandboxError;
use super::launch::{Launched, Launcher};
use super::message::{FromInside, ToInside};
use super::network::{Capture, Sockets};
use super::terminal::{self, Terminal};

/// The kernel ends the processes of the sandbox at once, unless one hangs in a file system.
const END: Duration = Duration::from_secs(5);

/// What happened inside.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// All is as the command shall find it; see [`Running::run`].
    Prepared,
    /// The command runs.
    Started,
    /// It was stopped; see [`Running::follow_stop`].
    Stopped(Signal),
    /// It ended, with the exit code that outgate takes on.
    Ended(u8),
    /// It can't be run: 126 or 127, and why.
    NotRun(u8, String),
}

/// A sandbox whose command runs, or is about to.
#[derive(Debug)]
pub(crate) struct Running {
    stream: UnixStream,
    read: Vec<u8>,
    terminal: Option<Terminal>,
    /// Whether the command was given the terminal and has it still, as far as is known.
    given: bool,
    _launcher: Launcher,
}

impl Launched {
    /// Takes the sockets out, to be served before [`Launched::start`].
    pub(crate) fn take_sockets(&mut self) -> (Sockets, Capture) {
        (std::mem::take(&mut self.sockets), self.capture.clone())
    }

    /// Lets the preparations run. Needs a runtime.
    pub(crate) async fn start(self) -> Result<Running, SandboxError> {
        self.socket.set_nonblocking(true).map_err(ChannelError::from)?;
        let stream = UnixStream::from_std(self.socket).map_err(ChannelError::from)?;
        let mut running = Running {
            stream,
            read: Vec::new(),
            terminal: self.terminal,
            given: false,
            _launcher: self.launcher,
        };
        let foreground = running.has_terminal();
        running.given = foreground;
        running.send(&ToInside::Start { foreground }).await?;
        Ok(running)
    }
}

impl Running {
    /// The next event; dropped before it is ready, nothing is lost.
    pub(crate) async fn event(&mut self) -> Result<Event, SandboxError> {
        loop {
            if let Some(message) = decode(&mut self.read)? {
                return event(message);
            }
            self.stream.readable().await.map_err(ChannelError::from)?;
            match self.stream.try_read_buf(&mut self.read) {
                Ok(0) => return Err(SandboxError::Vanished),
                Ok(_) => {}
                // It is told so where it had not read all that it was sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(SandboxError::Vanished);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(ChannelError::from(error).into()),
            }
        }
    }

    /// Lets the command run, once all is prepared.
    pub(crate) async fn run(&mut self) -> Result<(), SandboxError> {
        self.send(&ToInside::Run).await
    }

    /// Passes on a signal that outgate got: to all of the command's group where it came from the
    /// keyboard, which sends to whole groups.
    pub(crate) async fn signal(&mut self, signal: Signal) -> Result<(), SandboxError> {
        let group = self.has_terminal();
        self.send(&ToInside::Signal { signal: signal as i32, group }).await
    }

    /// Has PID 1 start a supervisor of a hook on these streams; only once the command runs.
    pub(crate) async fn start_hook(&mut self, streams: Streams) -> Result<(), SandboxError> {
        unless_gone(hand_over(&mut self.stream, &encode(&ToInside::Hook)?, &streams).await)
    }

    /// Stops as the command did, whatever its reason, and goes on with it. The caller of outgate
    /// sees a job that was stopped, and has the terminal.
    pub(crate) async fn follow_stop(&mut self, signal: Signal) -> Result<(), SandboxError> {
        // A shell's `fg` of what ran in the background all along moves outgate to the foreground,
        // and tells nobody. The command stops where it first wants the terminal.
        let wanted = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if !(wanted && self.has_terminal()) {
            self.take_terminal();
            terminal::stop(signal).map_err(ChannelError::from)?;
        }
        self.given = self.has_terminal();
        let foreground = self.given;
        self.send(&ToInside::Continue { foreground }).await
    }

    /// Whether the terminal that outgate was started from was hung up.
    pub(crate) fn lost_terminal(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::is_gone)
    }

    /// Waits until nothing of the sandbox is left, which is as good as at once after its end.
    pub(crate) async fn end(mut self) {
        let gone = async { while self.event().await.is_ok() {} };
        let _ = timeout(END, gone).await;
        self.take_terminal();
    }

    fn has_terminal(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::is_ours)
    }

    fn take_terminal(&mut self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| self.given) {
            terminal.take();
        }
        self.given = false;
    }

    async fn send(&mut self, message: &ToInside) -> Result<(), SandboxError> {
        let frame = encode(message)?;
        unless_gone(self.stream.write_all(&frame).await)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.take_terminal();
    }
}

/// Descriptors go with the first few bytes, and the rest follows.
async fn hand_over(stream: &mut UnixStream, frame: &[u8], streams: &Streams) -> io::Result<()> {
    let Streams { control, stdout, stderr } = streams;
    let along = [control.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let send = || send_with(&*stream, frame, &along);
    let sent = stream.async_io(Interest::WRITABLE, send).await?;
    stream.write_all(frame.get(sent..).unwrap_or_default()).await
}

/// Where the sandbox ends just now, its last message, still to be read, says why.
fn unless_gone(sent: io::Result<()>) -> Result<(), SandboxError> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        sent => Ok(sent.map_err(ChannelError::from)?),
    }
}

fn event(message: FromInside) -> Result<Event, SandboxError> {
    match message {
        FromInside::Prepared => Ok(Event::Prepared),
        FromInside::Started => Ok(Event::Started),
        FromInside::Stopped { signal } => Ok(Event::Stopped(
            Signal::try_from(signal).map_err(|_| SandboxError::Unexpected(signal.to_string()))?,
        )),
        FromInside::Ended { code } => Ok(Event::Ended(code)),
        FromInside::NotRun { code, message } => Ok(Event::NotRun(code, message)),
        FromInside::Failed { message } => Err(SandboxError::Inside(message)),
        ready @ FromInside::Ready { .. } => Err(SandboxError::Unexpected(format!("{ready:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hook_that_starts_while_the_sandbox_ends_is_no_failure_of_it() {
        let (mut stream, inside) = UnixStream::pair().unwrap();
        drop(inside);
        let (control, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let (_, stdout) = io::pipe().unwrap();
        let streams = Streams {
            control: control.into(),
            stderr: stdout.try_clone().unwrap().into(),
            stdout: stdout.into(),
        };
        let sent = hand_over(&mut stream, &encode(&ToInside::Hook).unwrap(), &streams).await;
        assert_eq!(sent.as_ref().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        unless_gone(sent).unwrap();
        assert!(unless_gone(Err(io::ErrorKind::TimedOut.into())).is_err());
    }
}
