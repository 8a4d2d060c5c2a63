//! What did the gateway write down, and what did it dial?

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::finding::Taken;

/// The audit lines of the sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, Deserialize)]
struct Line {
    domain: Option<String>,
    port: Option<u16>,
    address: Option<String>,
}

impl Ledger {
    /// Reads what the gateway, which has ended, has written.
    pub(super) fn read(path: &Path) -> io::Result<Ledger> {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Ledger { lines })
    }

    /// Of `taken`, what the gateway knows nothing of. Each of its lines stands for one connection,
    /// and is used up.
    pub(super) fn unaccounted(&mut self, taken: &[Taken]) -> Vec<Taken> {
        let mut unknown = Vec::new();
        for taken in taken {
            match self.lines.iter().position(|line| line.tells_of(taken)) {
                Some(at) => drop(self.lines.swap_remove(at)),
                None => unknown.push(taken.clone()),
            }
        }
        unknown
    }

    /// What it dialled, whatever for: names and addresses.
    pub(super) fn dialled(&self) -> Vec<String> {
        let dialled = |line: &Line| {
            let address = line.address.as_ref()?;
            Some(format!("{address} for {}", line.domain.as_deref().unwrap_or("nobody")))
        };
        self.lines.iter().filter_map(dialled).collect()
    }
}

impl Line {
    fn tells_of(&self, taken: &Taken) -> bool {
        self.address.is_none()
            && self.port == Some(taken.port)
            && self.domain.as_deref().map(bare) == Some(&taken.domain)
    }
}

/// An IPv6 address without its brackets.
fn bare(domain: &str) -> &str {
    domain.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(text: &str) -> Ledger {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Ledger::read(file.path()).unwrap()
    }

    fn taken(domain: &str, port: u16) -> Taken {
        Taken { domain: domain.to_owned(), port }
    }

    #[test]
    fn a_line_accounts_for_one_connection() {
        let mut ledger = ledger("{\"domain\":\"192.0.2.1\",\"port\":22,\"verdict\":\"deny\"}\n");
        let other = taken("192.0.2.1", 23);
        assert_eq!(ledger.unaccounted(std::slice::from_ref(&other)), [other]);
        let twice = [taken("192.0.2.1", 22), taken("192.0.2.1", 22)];
        assert_eq!(ledger.unaccounted(&twice), [taken("192.0.2.1", 22)]);
    }

    #[test]
    fn knows_ipv6_addresses_in_brackets() {
        let mut ledger = ledger("{\"domain\":\"[2001:db8::1]\",\"port\":1}\n");
        assert!(ledger.unaccounted(&[taken("2001:db8::1", 1)]).is_empty());
    }

    #[test]
    fn a_line_with_an_address_accounts_for_nothing() {
        let line = "{\"domain\":\"a.example\",\"port\":443,\"address\":\"192.0.2.1:443\"}\n";
        let mut ledger = ledger(line);
        let a = taken("a.example", 443);
        assert_eq!(ledger.unaccounted(std::slice::from_ref(&a)), [a]);
        assert_eq!(ledger.dialled(), ["192.0.2.1:443 for a.example"]);
    }
}
