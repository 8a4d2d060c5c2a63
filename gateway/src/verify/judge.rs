//! Which probes held?

use super::finding::{self, Finding};
use super::ledger::Ledger;
use super::probes::{NOTHING_DIALLED, PROBES};
use super::witness::Met;

/// All that is known when everything is over.
pub(super) struct Evidence {
    pub(super) report: String,
    pub(super) met: Vec<Met>,
    pub(super) ledger: Ledger,
}

/// What became of one probe.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) probe: &'static str,
    /// Why it is open; without one it held.
    pub(super) reasons: Vec<String>,
}

/// One verdict for each probe, in the order of the table.
pub(super) fn judge(evidence: &Evidence) -> Vec<Verdict> {
    let findings = finding::parse(&evidence.report);
    let mut ledger = evidence.ledger.clone();
    let mut verdicts: Vec<Verdict> = PROBES
        .iter()
        .map(|probe| {
            let finding = findings.get(probe.name);
            let mut reasons = finding.map_or_else(silent, |finding| seen(finding, &mut ledger));
            let met = evidence.met.iter().filter(|met| met.probe == probe.name);
            reasons.extend(met.map(|met| format!("{} was reached", met.what)));
            Verdict { probe: probe.name, reasons }
        })
        .collect();
    let dialled = evidence.ledger.dialled();
    verdicts.push(Verdict { probe: NOTHING_DIALLED, reasons: dialled });
    verdicts
}

fn silent() -> Vec<String> {
    vec!["the prober said nothing of it".to_owned()]
}

fn seen(finding: &Finding, ledger: &mut Ledger) -> Vec<String> {
    let unknown = ledger.unaccounted(&finding.taken).into_iter().map(|taken| {
        let (domain, port) = (taken.domain, taken.port);
        format!("a connection for {domain} port {port} was taken, and not by the gateway alone")
    });
    finding.open.iter().cloned().chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(change: impl Fn(&mut Finding)) -> String {
        let mut lines = String::new();
        for probe in PROBES {
            let mut finding = Finding::of(probe.name);
            change(&mut finding);
            lines += &(serde_json::to_string(&finding).unwrap() + "\n");
        }
        lines
    }

    fn open(report: String, met: Vec<Met>) -> Vec<&'static str> {
        let verdicts = judge(&Evidence { report, met, ledger: Ledger::default() });
        assert_eq!(verdicts.len(), PROBES.len() + 1);
        let open = verdicts.iter().filter(|verdict| !verdict.reasons.is_empty());
        open.map(|verdict| verdict.probe).collect()
    }

    #[test]
    fn all_hold_where_nothing_was_seen_or_met() {
        assert!(open(report(|_| ()), Vec::new()).is_empty());
    }

    #[test]
    fn a_prober_that_says_nothing_holds_nothing() {
        assert_eq!(open(String::new(), Vec::new()).len(), PROBES.len());
    }

    #[test]
    fn what_was_seen_met_or_not_accounted_for_is_open() {
        let seen = report(|finding| {
            match finding.probe.as_str() {
                "udp" => finding.open("an answer"),
                "raw-ipv4" => finding.taken("192.0.2.1", 22),
                _ => {}
            };
        });
        let met = Met { probe: "named-sockets", what: "/run/x".to_owned() };
        assert_eq!(open(seen, vec![met]), ["raw-ipv4", "udp", "named-sockets"]);
    }
}
