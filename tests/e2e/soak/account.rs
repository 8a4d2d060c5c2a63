//! Has every request its one line, and no line a secret?

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::load::{Change, Load};
use super::scene::Scene;
use super::*;

/// Faults that a failing test shows of each kind.
const SHOWN: usize = 5;
/// One line of as many is looked through for every form of the secret: that takes a while.
const LOOKED_THROUGH: u64 = 20;

/// The audit, counted.
#[derive(Default)]
pub(super) struct Account {
    lines: u64,
    /// By the number of the request.
    numbered: HashMap<u64, u32>,
    hooks: u64,
    hook_requests: u64,
    changes: u64,
    strangers: u64,
    /// Lines of nothing that anybody did.
    others: Vec<String>,
    faults: Vec<String>,
}

impl Account {
    /// Drains the gateway and reads every line.
    pub(super) fn of(scene: &mut Scene, load: &Load) -> Account {
        assert_eq!(scene.gateway.stop(), 0, "it ends in order");
        assert_secret_absent(scene.gateway.output(), &scene.secret);
        let mut account = Account::default();
        let file = File::open(&scene.audit).expect("the audit is in its file");
        for line in BufReader::new(file).lines() {
            let line = line.expect("the file can be read");
            assert!(!line.contains(&scene.secret), "a secret got out");
            if account.lines.is_multiple_of(LOOKED_THROUGH) {
                assert_secret_absent(&line, &scene.secret);
            }
            account.add(&line);
        }
        account.compare(load);
        account
    }

    fn add(&mut self, text: &str) {
        let line: Value = serde_json::from_str(text).expect("one JSON object a line");
        self.lines += 1;
        match (line["kind"].as_str(), number(&line)) {
            (Some("request" | "tunnel"), Some(number)) => {
                *self.numbered.entry(number).or_default() += 1;
            }
            (Some("request"), None) if line["path"] == "/events" => self.hook_requests += 1,
            (Some("hook"), _) => self.hooks += 1,
            (Some("credential"), _) => self.changes += 1,
            (Some("tunnel"), None) if line["reason"] == "proxy_authentication_required" => {
                self.strangers += 1;
            }
            _ => self.others.push(text.to_owned()),
        }
    }

    fn compare(&mut self, load: &Load) {
        let of = |number| self.numbered.get(&number).copied().unwrap_or(0);
        let wrong = (0..load.numbers()).filter(|number| of(*number) != 1);
        let mut faults: Vec<_> =
            wrong.map(|number| format!("request {number} has {} lines", of(number))).collect();
        // Stored once, then rotated.
        let pairs = [
            ("hooks", self.hooks, load.times(Change::ToolCall)),
            ("requests of hooks", self.hook_requests, load.times(Change::ToolCall)),
            ("changes of credentials", self.changes, load.times(Change::Rotation) + 1),
            ("strangers", self.strangers, load.times(Change::Stranger)),
        ];
        for (what, lines, done) in pairs {
            if lines != done {
                faults.push(format!("{what}: {lines} lines for {done}"));
            }
        }
        self.faults = faults;
    }

    pub(super) fn check(&self) {
        let first = |all: &[String]| all[..all.len().min(SHOWN)].join("\n");
        assert!(
            self.faults.is_empty() && self.others.is_empty(),
            "lost or doubled:\n{}\nlines of nothing:\n{}",
            first(&self.faults),
            first(&self.others)
        );
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account { lines, numbered, hooks, changes, others, faults, .. } = self;
        write!(
            formatter,
            "{lines} audit lines: of {} requests, {hooks} hooks, {changes} changes of credentials; \
             {} lost or doubled, {} of nothing",
            numbered.len(),
            faults.len(),
            others.len()
        )
    }
}

/// The number of a request, from its domain or its path.
fn number(line: &Value) -> Option<u64> {
    let domain = line["domain"].as_str().unwrap_or_default();
    let refused =
        domain.strip_prefix('d').and_then(|name| name.strip_suffix(".denied.example.test"));
    let path = line["path"].as_str().unwrap_or_default();
    refused.or_else(|| path.rsplit_once('/').map(|(_, last)| last))?.parse().ok()
}
