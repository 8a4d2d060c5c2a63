//! What does real `curl` make of it?

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Finished, Running, clean};
use crate::network;

/// Longer than any exchange of a test but those that say so.
const MAX_TIME: u32 = 20;

/// A `curl` command line about to be run, silent but for errors, without `~/.curlrc` and without
/// the proxy variables of the machine.
#[derive(Clone)]
pub struct Curl {
    url: String,
    arguments: Vec<OsString>,
    input: Vec<u8>,
    max_time: u32,
}

/// A `curl` that runs beside the test.
pub struct RunningCurl {
    running: Running,
    folder: PathBuf,
    deadline: Duration,
}

/// What `curl` saw.
pub struct Answer {
    /// Status of the last response, 0 without one. A refused CONNECT is not one: see
    /// [`Answer::connect_status`].
    pub status: u16,
    /// Status that the proxy gave to the last CONNECT, 0 without one.
    pub connect_status: u16,
    /// Every head in order, as `curl` writes it: that of CONNECT and 1xx included.
    pub heads: Vec<CurlHead>,
    /// The body of the last response.
    pub body: Vec<u8>,
    /// The exit code of `curl`, 0 when all went well.
    pub exit_code: i32,
    /// What `curl` says went wrong.
    pub stderr: String,
    /// All that `--write-out '%{json}'` has.
    pub details: Value,
}

/// One head in the words of `curl`.
#[derive(Clone, Debug)]
pub struct CurlHead {
    /// The status line.
    pub start_line: String,
    /// Names and values in order.
    pub fields: Vec<(String, String)>,
}

impl Curl {
    /// A request for this URL, without a proxy.
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), arguments: Vec::new(), input: Vec::new(), max_time: MAX_TIME }
    }

    /// Through this HTTP proxy, whatever the host.
    #[must_use]
    pub fn proxy(self, address: SocketAddr) -> Self {
        self.argument("--proxy")
            .argument(format!("http://{address}"))
            .argument("--noproxy")
            .argument("")
    }

    /// Trusts these roots and no other.
    #[must_use]
    pub fn ca(self, roots: &Path) -> Self {
        self.argument("--cacert").argument(roots)
    }

    /// With this method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        self.argument("--request").argument(method)
    }

    /// With HEAD, which `curl` must know of, so as not to wait for a body. It then writes the heads
    /// where the body would be.
    #[must_use]
    pub fn head(self) -> Self {
        self.argument("--head")
    }

    /// With this header besides.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        // `curl` drops a header without a value unless it is written with a semicolon.
        let line = if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") };
        self.argument("--header").argument(line)
    }

    /// With this body, as POST unless another method was named, as it is and without a type.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.input = body.into();
        self.argument("--data-binary").argument("@-").argument("--header").argument("Content-Type:")
    }

    /// Over HTTP/2, if the other side agrees by ALPN.
    #[must_use]
    pub fn http2(self) -> Self {
        self.argument("--http2")
    }

    /// Any other argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Gives up after this many seconds instead of 20.
    #[must_use]
    pub fn max_time(mut self, seconds: u32) -> Self {
        self.max_time = seconds;
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When `curl` is missing or outlives its own limit.
    pub fn run(self) -> Answer {
        self.start().wait()
    }

    /// Starts it.
    ///
    /// # Panics
    /// When `curl` is missing.
    pub fn start(self) -> RunningCurl {
        let folder = tempfile::Builder::new()
            .prefix("curl-")
            .tempdir_in(network::folder())
            .expect("the test's folder is writable")
            .keep();
        let mut command = Command::new("curl");
        clean(&mut command)
            .env("HOME", &folder)
            .current_dir(&folder)
            // `-q` counts only as the first argument.
            .args(["-q", "--silent", "--show-error", "--max-time", &self.max_time.to_string()])
            // Unless a test says otherwise, which counts because it comes later.
            .arg("--http1.1")
            .args(["--output", "body", "--dump-header", "heads", "--write-out", "%{json}"])
            .args(&self.arguments)
            .args(["--url", &self.url]);
        let deadline = Duration::from_secs(u64::from(self.max_time) + 5);
        RunningCurl { running: Running::start(&mut command, &self.input), folder, deadline }
    }
}

impl RunningCurl {
    /// Waits for its end.
    ///
    /// # Panics
    /// When it outlives its own limit.
    pub fn wait(self) -> Answer {
        let finished = self.running.finish(self.deadline);
        Answer::read(finished, &self.folder)
    }

    /// What has come of the body so far.
    pub fn body_so_far(&self) -> Vec<u8> {
        fs::read(self.folder.join("body")).unwrap_or_default()
    }

    /// Ends it at once, as a client that vanishes.
    pub fn kill(self) {
        self.running.kill();
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Answer")
            .field("status", &self.status)
            .field("connect_status", &self.connect_status)
            .field("exit_code", &self.exit_code)
            .field("stderr", &self.stderr)
            .field("heads", &self.heads)
            .field("body", &self.text().chars().take(2048).collect::<String>())
            .finish_non_exhaustive()
    }
}

impl Answer {
    fn read(finished: Finished, folder: &Path) -> Self {
        let details: Value = serde_json::from_slice(&finished.stdout).unwrap_or_else(|fault| {
            panic!("curl wrote no JSON ({fault}): {}{}", finished.text(), finished.stderr)
        });
        let status = |name: &str| {
            details[name].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0)
        };
        let heads = fs::read(folder.join("heads")).unwrap_or_default();
        Self {
            status: status("http_code"),
            connect_status: status("http_connect"),
            heads: parse_heads(&String::from_utf8_lossy(&heads)),
            body: fs::read(folder.join("body")).unwrap_or_default(),
            exit_code: finished.code(),
            stderr: finished.stderr,
            details,
        }
    }

    /// The value of a header of the last head: the response's, or that of a refused CONNECT.
    ///
    /// # Panics
    /// When it stands there several times.
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.heads.last()?.values(name);
        assert!(values.len() < 2, "{name} stands there {} times: {values:?}", values.len());
        values.first().copied()
    }

    /// The reason code of a refusal, wherever it was answered.
    pub fn reason(&self) -> Option<&str> {
        self.header("outgate-reason")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|fault| panic!("not JSON ({fault}): {} {}", self.text(), self.stderr))
    }
}

impl CurlHead {
    /// The values of all fields of this name, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        self.fields.iter().filter(named).map(|(_, value)| value.as_str()).collect()
    }
}

fn parse_heads(text: &str) -> Vec<CurlHead> {
    let text = text.replace("\r\n", "\n");
    // Trailers follow as a block of their own, without a status line.
    let blocks = text.split("\n\n").filter(|block| block.starts_with("HTTP/"));
    let parse = |block: &str| {
        let mut lines = block.lines();
        let start_line = lines.next().unwrap_or_default().to_owned();
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        CurlHead { start_line, fields: lines.filter_map(field).collect() }
    };
    blocks.map(parse).collect()
}
