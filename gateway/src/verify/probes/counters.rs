//! Did anything leave by an interface?
//!
//! The kernel counts what each one sent. An answer proves nothing, and neither does none.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::verify::finding::Finding;

/// Packets sent, by interface.
pub(super) struct Counters(BTreeMap<String, u64>);

impl Counters {
    pub(super) fn read() -> io::Result<Counters> {
        Ok(Counters(parse(&fs::read_to_string("/proc/net/dev")?)))
    }

    /// All interfaces but `lo`, which leads nowhere.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Tries something, and notes what left meanwhile.
pub(super) fn watched(finding: &mut Finding, attempt: impl FnOnce(&mut Finding)) {
    let before = Counters::read();
    attempt(finding);
    let (Ok(before), Ok(after)) = (before, Counters::read()) else {
        return finding.open("what interfaces send can't be counted");
    };
    for (interface, sent) in &after.0 {
        let before = before.0.get(interface).copied().unwrap_or_default();
        if *sent > before {
            finding.open(format_args!("{} packets left by {interface}", sent - before));
        }
    }
}

/// Two lines of headings; then the name, a colon, eight numbers of what was received, and of what
/// was sent bytes and packets (proc(5)).
fn parse(text: &str) -> BTreeMap<String, u64> {
    let interfaces = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let counted = interfaces.map(|(name, numbers)| {
        let sent = numbers.split_whitespace().nth(9).and_then(|sent| sent.parse().ok());
        (name.trim().to_owned(), sent.unwrap_or(u64::MAX))
    });
    counted.filter(|(name, _)| name != "lo").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_sent() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 1 2 0 0\n  \
                    eth0: 1500 10 0 0 0 0 0 0 700 7 0 0 0 0 0 0\n";
        let counted = parse(text);
        assert_eq!(counted.into_iter().collect::<Vec<_>>(), [("eth0".to_owned(), 7)]);
    }
}
