//! What does the prober report?
//!
//! One line of JSON for each probe.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// What one probe found out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) probe: String,
    /// What it got, in a few words each.
    pub(super) open: Vec<String>,
    /// Connections that somebody took. That was the gateway, or they went out.
    pub(super) taken: Vec<Taken>,
}

/// A connection as the gateway should have written it down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// The name that it was meant for, or the address.
    pub(super) domain: String,
    pub(super) port: u16,
}

impl Finding {
    pub(super) fn of(probe: &str) -> Finding {
        Finding { probe: probe.to_owned(), ..Finding::default() }
    }

    pub(super) fn open(&mut self, what: impl Display) {
        self.open.push(what.to_string());
    }

    pub(super) fn taken(&mut self, domain: impl Display, port: u16) {
        self.taken.push(Taken { domain: domain.to_string(), port });
    }
}

/// The report by probe. A line that makes no sense reports nothing, and of two for the same probe
/// neither counts.
pub(super) fn parse(report: &str) -> BTreeMap<String, Finding> {
    let mut findings = BTreeMap::new();
    let mut twice = Vec::new();
    for finding in report.lines().filter_map(|line| serde_json::from_str::<Finding>(line).ok()) {
        if let Some(before) = findings.insert(finding.probe.clone(), finding) {
            twice.push(before.probe);
        }
    }
    findings.retain(|probe, _| !twice.contains(probe));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_whole_lines_that_come_once() {
        let line = |probe: &str| serde_json::to_string(&Finding::of(probe)).unwrap();
        let [one, two, three] = ["one", "two", "three"].map(line);
        let report = format!("noise\n{one}\n{two}\n{two}\n{}", &three[..three.len() - 2]);
        assert_eq!(parse(&report).into_keys().collect::<Vec<_>>(), ["one"]);
    }
}
