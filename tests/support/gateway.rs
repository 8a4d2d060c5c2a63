//! How does a test hold the built program: start it, ask it, look at it, stop it?

mod process;
mod start;
mod told;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::client::{Curl, RawClient};
use crate::http::{Incoming, Response};
use crate::wait::{SOON, wait_until};

use process::Process;

pub use start::{Builder, FailedStart};

/// A drain takes as long as its longest exchange; tests keep theirs short.
const STOP_DEADLINE: Duration = Duration::from_secs(40);

/// The operator's file in the gateway's folder.
const CONFIGURATION: &str = "outgate.toml";

/// `outgate serve`, running. Dropped, it is killed; when the test is failing, what it wrote to
/// stderr is shown.
pub struct Gateway {
    process: Process,
    ready: Value,
    explicit: SocketAddr,
    ca: PathBuf,
    folder: PathBuf,
    state: PathBuf,
    environments: Vec<PathBuf>,
}

impl Gateway {
    /// A gateway from this program, with everything else still to be said.
    pub fn builder(program: impl AsRef<Path>) -> Builder {
        Builder::new(program.as_ref())
    }

    /// The address of the explicit proxy.
    pub fn explicit(&self) -> SocketAddr {
        self.explicit
    }

    /// The PEM file with the CA that its clients must trust.
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// The whole line it printed when it was ready.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// Its state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// `curl` through this gateway, trusting its CA.
    pub fn curl(&self, url: &str) -> Curl {
        Curl::new(url).proxy(self.explicit).ca(&self.ca)
    }

    /// A client of the explicit proxy that sends bytes exactly as given.
    ///
    /// # Panics
    /// When the gateway doesn't accept.
    pub fn client(&self) -> RawClient {
        RawClient::connect(self.explicit, &self.ca)
    }

    /// Every audit line so far: a JSON object with `kind`.
    pub fn audit(&self) -> Vec<Value> {
        self.process.lines().audit.clone()
    }

    /// The audit lines once there are `count`, for up to 5 s.
    ///
    /// # Panics
    /// When there are fewer by then.
    pub fn wait_audit(&self, count: usize) -> Vec<Value> {
        wait_until(SOON, || self.process.lines().audit.len() >= count);
        let audit = self.audit();
        assert!(
            audit.len() >= count,
            "{count} audit lines were due, not {}: {audit:#?}",
            audit.len()
        );
        audit
    }

    /// Every line on stderr that is no audit line.
    pub fn logs(&self) -> Vec<String> {
        self.process.lines().logs.clone()
    }

    /// Whether a log line with `text` came within 5 s.
    pub fn wait_log(&self, text: &str) -> bool {
        wait_until(SOON, || self.process.lines().logs.iter().any(|line| line.contains(text)))
    }

    /// All it wrote, to stdout and stderr: for oracles about secrets.
    pub fn output(&self) -> String {
        self.process.lines().everything.clone()
    }

    /// Writes the first environment anew, in one step as an editor does. It is in force a moment
    /// later.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn set_environment(&self, environment: &Value) {
        self.set_environment_text(&environment.to_string());
    }

    /// [`Gateway::set_environment`] with the text as it is, which may be no JSON.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn set_environment_text(&self, text: &str) {
        let file = self.environments.first().expect("this gateway was started with an environment");
        let new = file.with_extension("new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, file))
            .unwrap_or_else(|fault| panic!("cannot write {}: {fault}", file.display()));
    }

    /// Writes the operator's file anew, in one step; [`Gateway::reload`] asks it to look.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn set_configuration(&self, toml: &str) {
        let file = self.folder.join(CONFIGURATION);
        let new = file.with_extension("new");
        fs::write(&new, toml)
            .and_then(|()| fs::rename(&new, &file))
            .unwrap_or_else(|fault| panic!("cannot write {}: {fault}", file.display()));
    }

    /// Asks it to read its files again (SIGHUP).
    pub fn reload(&self) {
        self.process.signal(Signal::SIGHUP);
    }

    /// Sends a request, as bytes, to the management socket and reads the response.
    ///
    /// # Panics
    /// When there is no socket or no well-formed response.
    pub fn management(&self, request: impl AsRef<[u8]>) -> Response {
        use std::io::Write;
        let socket = self.state.join("management.sock");
        let mut stream = UnixStream::connect(&socket)
            .unwrap_or_else(|fault| panic!("cannot reach {}: {fault}", socket.display()));
        stream.set_read_timeout(Some(SOON)).expect("a timeout above zero can be set");
        stream.write_all(request.as_ref()).expect("the management socket takes a request");
        Incoming::default()
            .response(&mut stream, "GET")
            .unwrap_or_else(|fault| panic!("no response from the management socket: {fault}"))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().is_none()
    }

    /// How many descriptors it has open.
    ///
    /// # Panics
    /// When it has ended.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("it runs, and is ours").count()
    }

    /// Leaves it no more than `most` descriptors, those it has open included.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn limit_descriptors(&self, most: u64) {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        let pid = i32::try_from(self.pid()).expect("a process id is an i32");
        #[expect(unsafe_code, reason = "no safe wrapper sets the limit of another process")]
        // SAFETY: the pointers are a live value and null, as prlimit(2) allows.
        let outcome =
            unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()) };
        assert_eq!(outcome, 0, "prlimit: {}", std::io::Error::last_os_error());
    }

    /// How much processor time it has used so far.
    ///
    /// # Panics
    /// When it has ended.
    pub fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .expect("it runs, so it has a state");
        let (_, fields) = stat.rsplit_once(')').expect("the name stands in brackets");
        // proc_pid_stat(5): user and system time are fields 14 and 15, in hundredths of a second.
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().expect("times are numbers"))
            .sum();
        Duration::from_millis(ticks * 10)
    }

    /// How much memory it has in RAM, in KiB.
    ///
    /// # Panics
    /// When it has ended.
    pub fn resident_kib(&self) -> u64 {
        self.held_kib("VmRSS:")
    }

    /// How much of it is its own: the rest are pages of its program and its libraries, which the
    /// kernel takes and gives as it pleases, and no more than these are.
    ///
    /// # Panics
    /// When it has ended.
    pub fn anonymous_kib(&self) -> u64 {
        self.held_kib("RssAnon:")
    }

    fn held_kib(&self, what: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("it runs, so it has a status");
        status
            .lines()
            .find_map(|line| line.strip_prefix(what))
            .and_then(|value| value.trim().strip_suffix(" kB"))
            .and_then(|number| number.trim().parse().ok())
            .expect("Linux says how much memory a process has")
    }

    /// Asks it to drain (SIGTERM) without waiting.
    pub fn terminate(&self) {
        self.process.signal(Signal::SIGTERM);
    }

    /// Drains it (SIGTERM) and waits; its exit code. Afterwards every audit line is there.
    ///
    /// # Panics
    /// When it is still there after 40 s, or was ended by a signal.
    pub fn stop(&mut self) -> i32 {
        self.terminate();
        self.wait()
    }

    /// Drains it and reads every audit line it wrote: the oracle for "exactly one".
    ///
    /// # Panics
    /// When it does not end with 0, or not within 40 s.
    pub fn final_audit(&mut self) -> Vec<Value> {
        assert_eq!(self.stop(), 0, "the gateway drains and ends in order");
        self.audit()
    }

    /// Waits for its end; its exit code.
    ///
    /// # Panics
    /// As [`Gateway::stop`].
    pub fn wait(&mut self) -> i32 {
        let status = self
            .process
            .wait(STOP_DEADLINE)
            .unwrap_or_else(|| panic!("the gateway had not ended after {STOP_DEADLINE:?}"));
        status.code().unwrap_or_else(|| panic!("the gateway ended with {status}"))
    }

    /// Ends it at once (SIGKILL).
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

#[cfg(test)]
mod tests;
