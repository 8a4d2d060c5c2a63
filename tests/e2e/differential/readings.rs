//! What has a server read?

use outgate_tests::prelude::*;
use serde_json::Value;

use crate::servers::{Server, Servers};

/// A whole request, as its reader understood it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
    /// The values of `Host`.
    pub(crate) host: Vec<String>,
    /// The values of the header that the gateway injects.
    pub(crate) injected: Vec<String>,
}

/// All that one server has read on one port.
#[derive(Default)]
pub(crate) struct Readings {
    pub(crate) whole: Vec<Whole>,
    /// First lines of what it would not read to its end.
    pub(crate) refused: Vec<String>,
}

impl Readings {
    pub(crate) fn of(servers: &Servers, server: Server, port: u16) -> Readings {
        if server == Server::Strict {
            let whole = servers.strict(port).requests().into_iter().map(strict).collect();
            return Readings { whole, refused: Vec::new() };
        }
        let mut all = Readings::default();
        for line in servers.notes(server).split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            // nginx writes the bytes of a body as they are.
            let line: String = line.iter().map(|byte| char::from(*byte)).collect();
            let line: Value = serde_json::from_str(&line)
                .unwrap_or_else(|fault| panic!("{server:?} wrote no JSON ({fault}): {line}"));
            if line["port"].as_str() == Some(port.to_string().as_str()) {
                all.add(&line);
            }
        }
        all
    }

    fn add(&mut self, line: &Value) {
        // nginx says both of every request.
        let is_whole =
            line.get("method").is_some() && line.get("status").is_none_or(|s| s == "299");
        if !is_whole {
            return self.refused.push(text(&line["line"]));
        }
        let list = |name: &str| {
            let list = line[name].as_array().map(|list| list.iter().map(text).collect());
            list.unwrap_or_default()
        };
        let body = match line.get("text") {
            Some(text) => text.as_str().expect("text").chars().map(|c| c as u8).collect(),
            None => unhex(&text(&line["body"])),
        };
        let (method, target) = (text(&line["method"]), text(&line["target"]));
        let (host, injected) = (list("host"), list("injected"));
        self.whole.push(Whole { method, target, body, host, injected });
    }
}

fn strict(request: Request) -> Whole {
    let values = |name| request.head.values(name).into_iter().map(str::to_owned).collect();
    let (host, injected) = (values("host"), values("x-injected"));
    Whole { method: request.method, target: request.target, body: request.body, host, injected }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text but {value}")).to_owned()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    pairs.collect::<Result<_, _>>().expect("hexadecimal digits")
}
