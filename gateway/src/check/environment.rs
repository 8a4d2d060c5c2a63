//! Is an environment file right, with the hooks that it brings along?

use std::path::Path;

use outgate_policy::{Environment, Problem, Source, compile};

use super::{Examined, Findings, hooks};
use crate::environments::{default_id, read_origins};

/// Where hooks are found, below the root or a working directory.
const HOOKS_FILE: &str = ".agents/hooks.json";

/// Reads it.
pub(super) fn examine(text: &str, file: &Path) -> Examined {
    match compile(text, &default_id(file)) {
        Ok(environment) => {
            let origins = read_origins(&environment.policy, file).err().unwrap_or_default();
            let mut findings = Findings::of(origins, environment.warnings.clone());
            check_inline_hooks(&environment, &mut findings);
            Examined::Environment(Box::new(environment), findings)
        }
        Err(found) => Examined::Done(Findings::of(found.problems, found.warnings)),
    }
}

fn check_inline_hooks(environment: &Environment, findings: &mut Findings) {
    for (index, source) in environment.sources.iter().enumerate() {
        let Source::Inline { target, content, .. } = source else {
            continue;
        };
        if !target.relative().ends_with(HOOKS_FILE) {
            continue;
        }
        let place = format!("sources[{index}].content");
        let found = match std::str::from_utf8(content) {
            Ok(text) => hooks::check(text, &[environment]),
            Err(_) => Findings::problem("a hooks file is UTF-8"),
        };
        let within = |text: &String| Problem::new(place.as_str(), text.as_str()).to_string();
        findings.problems.extend(found.problems.iter().map(within));
        findings.warnings.extend(found.warnings.iter().map(within));
    }
}
