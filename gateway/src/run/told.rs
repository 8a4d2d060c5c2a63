//! How does a person learn what was refused, while the terminal is the command's?
//!
//! Audit lines in the middle of what a program draws help nobody. Where stderr is a terminal and
//! nobody said otherwise they go to a file beside the gateway's socket, and at the end one line
//! says what of it matters.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

use crate::config::{AuditFile, BindAddress, Settings};
use crate::console::complain;

/// Refusals that are named; more are counted.
const NAMED: usize = 5;

/// A file of audit lines, from where this command's begin.
pub(super) struct Told {
    path: PathBuf,
    begin: u64,
}

#[derive(Deserialize)]
struct Line {
    verdict: String,
    domain: Option<String>,
    reason: Option<String>,
}

impl Told {
    /// Sends audit lines to a file, if they would end on a terminal otherwise.
    pub(super) fn instead_of_a_terminal(settings: &mut Settings) -> Option<Told> {
        let BindAddress::Unix(socket) = &settings.management else { return None };
        if settings.audit != AuditFile::Unsaid || !io::stderr().is_terminal() {
            return None;
        }
        let path = socket.with_extension("audit.jsonl");
        let begin = path.metadata().map_or(0, |found| found.len());
        settings.audit = AuditFile::Path(path.clone());
        Some(Told { path, begin })
    }

    /// Says what was refused, if anything was.
    pub(super) fn sum_up(&self) {
        match self.refusals() {
            Ok(refusals) if refusals.is_empty() => {}
            Ok(refusals) => complain(self.sentence(&refusals)),
            Err(error) => {
                complain(format_args!("outgate: {}: {error}", self.path.display()));
            }
        }
    }

    fn refusals(&self) -> io::Result<BTreeMap<String, usize>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.begin))?;
        let mut refusals = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            let Ok(line) = serde_json::from_str::<Line>(&line?) else { continue };
            if line.verdict == "deny" {
                let domain = line.domain.as_deref().unwrap_or("a connection");
                let reason = line.reason.as_deref().unwrap_or("no reason");
                *refusals.entry(format!("{domain} ({reason})")).or_default() += 1;
            }
        }
        Ok(refusals)
    }

    fn sentence(&self, refusals: &BTreeMap<String, usize>) -> String {
        let named: Vec<&str> = refusals.keys().take(NAMED).map(String::as_str).collect();
        let more = match refusals.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let path = self.path.display();
        let count: usize = refusals.values().sum();
        format!("outgate: refused {count}: {}{more}; see {path}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn says_what_was_refused_since_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let line = |verdict, domain, reason| {
            format!(r#"{{"verdict":"{verdict}","domain":"{domain}","reason":"{reason}"}}"#) + "\n"
        };
        let before = line("deny", "old.test", "domain_not_allowed");
        let mut text = before.clone() + &line("allow", "api.test", "origin_dns");
        text += &line("deny", "evil.test", "domain_not_allowed").repeat(2);
        text += &line("deny", "api.test", "port_not_allowed");
        fs::write(&path, text).unwrap();
        let told = Told { path: path.clone(), begin: before.len() as u64 };
        let expected = format!(
            "outgate: refused 3: api.test (port_not_allowed), evil.test (domain_not_allowed); see {}",
            path.display()
        );
        assert_eq!(told.sentence(&told.refusals().unwrap()), expected);
    }

    #[test]
    fn names_a_few_and_counts_the_rest() {
        let refusals: BTreeMap<_, _> = (0..8).map(|number| (format!("{number}.test"), 2)).collect();
        let told = Told { path: "a".into(), begin: 0 };
        let sentence = told.sentence(&refusals);
        assert!(sentence.starts_with("outgate: refused 16: 0.test, "), "{sentence}");
        assert!(sentence.ends_with("4.test and 3 more; see a"), "{sentence}");
    }
}
