//! What does a client in the sandbox see?
//!
//! A real curl, with nothing of our own process's variables, told where the gateway is and whom to
//! trust, as a sandbox would be.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// How curl is called.
pub(super) struct Curl {
    pub(super) proxy: String,
    pub(super) ca: PathBuf,
    pub(super) path: Option<OsString>,
}

/// What one call of curl showed.
#[derive(Debug)]
pub(super) struct Seen {
    /// The body.
    pub(super) body: String,
    /// What `--verbose` said: `> ` what was sent, `< ` what came back.
    verbose: String,
}

impl Curl {
    /// The command for a person to type.
    pub(super) fn command(&self, url: &str) -> String {
        format!("curl --proxy {} --cacert {} {url}", self.proxy, self.ca.display())
    }

    /// Asks through the gateway. That curl reports a failure is no error here: refusals are among
    /// the things that are shown.
    pub(super) fn get(&self, url: &str) -> Result<Seen, Failure> {
        let mut command = self.plain();
        // Whatever the address, it is the gateway that has to refuse it.
        command.arg("--noproxy").arg("").arg("--proxy").arg(&self.proxy);
        run(command.arg("--cacert").arg(&self.ca).arg(url))
    }

    /// Asks past the gateway, as a program outside of the sandbox may.
    pub(super) fn get_directly(&self, url: &str) -> Result<Seen, Failure> {
        run(self.plain().arg(url))
    }

    fn plain(&self) -> Command {
        let mut command = Command::new("curl");
        command.env_clear().stdin(Stdio::null());
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        // `-q`: the person's own .curlrc has no say.
        command.args(["-q", "--silent", "--verbose", "--max-time", "20"]);
        command
    }
}

fn run(command: &mut Command) -> Result<Seen, Failure> {
    let output = command.output().map_err(|error| {
        Failure::start(format_args!("curl can't be run ({error}): install it, then try again"))
    })?;
    Ok(Seen {
        body: String::from_utf8_lossy(&output.stdout).into_owned(),
        verbose: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Seen {
    /// The status of the last answer, CONNECT's where there was no other.
    pub(super) fn status(&self) -> Option<u16> {
        let mut lines = self.verbose.lines().rev();
        let (_, status) = lines.find_map(|line| line.strip_prefix("< HTTP/"))?.split_once(' ')?;
        status.get(..3)?.parse().ok()
    }

    /// The code in `outgate-reason`.
    pub(super) fn reason(&self) -> Option<&str> {
        let lines =
            self.verbose.lines().filter_map(|line| line.strip_prefix("< ")?.split_once(':'));
        let mut named = lines.filter(|(name, _)| name.eq_ignore_ascii_case("outgate-reason"));
        named.next().map(|(_, code)| code.trim())
    }

    /// The sentence of a refusal.
    pub(super) fn message(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        Some(body.get("error")?.get("message")?.as_str()?.to_owned())
    }

    /// The head that curl sent inside the tunnel, line by line.
    pub(super) fn sent(&self) -> Vec<&str> {
        let lines = self.verbose.lines().filter_map(|line| line.strip_prefix("> "));
        let lines: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_request = |line: &&str| line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/2");
        let tunnelled = lines.iter().rposition(is_request).unwrap_or(0);
        lines.get(tunnelled..).unwrap_or_default().to_vec()
    }

    /// Whether `text` is anywhere in what the client sent or got to see.
    pub(super) fn shows(&self, text: &str) -> bool {
        self.body.contains(text) || self.verbose.contains(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_curl_says() {
        let verbose = "* x\n> CONNECT a:1 HTTP/1.1\r\n> Host: a:1\r\n> \r\n< HTTP/1.1 200 OK\r\n\
                       > GET /p HTTP/1.1\r\n> Host: a:1\r\n> \r\n< HTTP/1.1 403 Forbidden\r\n\
                       < Outgate-Reason: path_not_allowed\r\n";
        let body = r#"{"error": {"message": "no"}}"#;
        let seen = Seen { body: body.into(), verbose: verbose.into() };
        assert_eq!(seen.status(), Some(403));
        assert_eq!(seen.reason(), Some("path_not_allowed"));
        assert_eq!(seen.message().as_deref(), Some("no"));
        assert_eq!(seen.sent(), ["GET /p HTTP/1.1", "Host: a:1"]);
        assert!(seen.shows("path_not") && !seen.shows("secret"));
    }

    #[test]
    fn reads_it_over_http2_too() {
        let verbose = "> CONNECT a:1 HTTP/1.1\r\n< HTTP/1.1 200 OK\r\n> GET / HTTP/2\r\n\
                       > Host: a:1\r\n< HTTP/2 403 \r\n< outgate-reason: domain_not_allowed\r\n";
        let seen = Seen { body: String::new(), verbose: verbose.into() };
        assert_eq!((seen.status(), seen.reason()), (Some(403), Some("domain_not_allowed")));
        assert_eq!(seen.sent(), ["GET / HTTP/2", "Host: a:1"]);
    }
}
