//! Where does a secret come from that a person wants to store?

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::console::ask;
use crate::failure::Failure;

/// The secret fields of each type.
pub(super) const SECRETS: [(&str, &[&str]); 7] = [
    ("bearer_token", &["token"]),
    ("oauth2", &["client_secret", "refresh_token"]),
    ("environment_variable", &["value"]),
    ("basic", &["password"]),
    ("api_key_query", &["key"]),
    ("aws_sigv4", &["secret_access_key", "session_token"]),
    ("gcp_service_account", &["key_file_json"]),
];
/// Of these, what may be left empty: only temporary keys come with one.
const OPTIONAL: [&str; 1] = ["session_token"];

/// The longest value is 16 KiB; what is longer is refused where it is stored.
const MOST: u64 = 64 << 10;

/// Adds the secret fields that are still missing.
pub(super) fn fill(
    said: &mut Map<String, Value>,
    kind: &str,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let known = SECRETS.iter().find(|(known, _)| *known == kind);
    // The store knows what is wrong with any other type.
    let Some((_, secrets)) = known else { return Ok(()) };
    let missing: Vec<_> = secrets.iter().filter(|secret| !said.contains_key(**secret)).collect();
    let values = match file {
        Some(path) => {
            let named = |error| Failure::input(format_args!("{}: {error}", path.display()));
            lines(File::open(path).map_err(named)?, missing.len()).map_err(named)?
        }
        None if io::stdin().is_terminal() => {
            let typed = missing.iter().map(|secret| prompt(secret));
            typed.collect::<io::Result<_>>().map_err(Failure::input)?
        }
        None => lines(io::stdin(), missing.len()).map_err(Failure::input)?,
    };
    for (secret, value) in missing.into_iter().zip(values) {
        if value.is_empty() && OPTIONAL.contains(secret) {
            continue;
        }
        said.insert((*secret).to_owned(), Value::String(value.to_string()));
    }
    Ok(())
}

/// One value is all there is, but for one line end; several are on a line each.
fn lines(from: impl Read, count: usize) -> io::Result<Vec<Zeroizing<String>>> {
    let mut from = BufReader::new(from.take(MOST));
    let mut values = Vec::new();
    for _ in 0..count {
        let mut value = Zeroizing::new(String::new());
        match count {
            1 => from.read_to_string(&mut value)?,
            _ => from.read_line(&mut value)?,
        };
        let end = value.strip_suffix('\n').unwrap_or(&value);
        let length = end.strip_suffix('\r').unwrap_or(end).len();
        value.truncate(length);
        values.push(value);
    }
    Ok(values)
}

fn prompt(secret: &str) -> io::Result<Zeroizing<String>> {
    let quiet = Quiet::begin()?;
    ask(format_args!("{secret} (not shown): "));
    quiet.wait()?;
    let mut line = Zeroizing::new(String::new());
    io::stdin().lock().take(MOST).read_line(&mut line)?;
    drop(quiet);
    ask("\n");
    let length = line.trim_end_matches(['\n', '\r']).len();
    line.truncate(length);
    Ok(line)
}

/// A terminal that does not show what is typed, until it is dropped. Signals that end the process
/// wait until then: one that came at once would leave the terminal so.
struct Quiet {
    before: Termios,
    signals: SignalFd,
    mask: SigSet,
}

impl Quiet {
    fn begin() -> io::Result<Quiet> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let ends = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP];
        let ends: SigSet = ends.into_iter().collect();
        let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC)?;
        let mask = SigSet::thread_get_mask()?;
        ends.thread_block()?;
        let quiet = Quiet { before, signals, mask };
        let mut silent = quiet.before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(io::stdin().as_fd(), SetArg::TCSAFLUSH, &silent)?;
        Ok(quiet)
    }

    /// Until a line is there. A signal is left for when the mask is as it was.
    fn wait(&self) -> io::Result<()> {
        let stdin = io::stdin();
        let mut both = [stdin.as_fd(), self.signals.as_fd()]
            .map(|source| PollFd::new(source, PollFlags::POLLIN));
        loop {
            match poll(&mut both, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if both[1].any() == Some(true) => {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                }
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing anyway.
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSAFLUSH, &self.before);
        // What came meanwhile ends the process here.
        let _ = self.mask.thread_set_mask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_all_there_is_and_several_are_a_line_each() {
        let read = |text: &str, count| -> Vec<String> {
            let values = lines(text.as_bytes(), count).unwrap();
            values.iter().map(|value| value.to_string()).collect()
        };
        assert_eq!(read("tok\n", 1), ["tok"]);
        assert_eq!(read("tok", 1), ["tok"]);
        // Refused where it is stored, and not cut here.
        assert_eq!(read("a\nb\n\n", 1), ["a\nb\n"]);
        assert_eq!(read("secret\r\nrefresh\n", 2), ["secret", "refresh"]);
        assert_eq!(read("secret", 2), ["secret", ""]);
    }

    #[test]
    fn a_session_token_may_be_left_out() {
        let fields = |input: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("value");
            std::fs::write(&path, input).unwrap();
            let mut said = Map::new();
            fill(&mut said, "aws_sigv4", Some(&path)).unwrap();
            said.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(fields("secret\n"), ["secret_access_key"]);
        assert_eq!(fields("secret\ntoken\n"), ["secret_access_key", "session_token"]);
    }

    #[test]
    fn what_is_said_already_is_not_asked_for() {
        let mut said = Map::new();
        said.insert("token".to_owned(), serde_json::json!({"from_file": "/x"}));
        fill(&mut said, "bearer_token", Some(Path::new("/dev/null"))).unwrap();
        assert_eq!(said.len(), 1);
    }
}
