//! Is a hooks file right, and may its URLs be called?

use outgate_hooks::{Action, GroupState, HookFile, HookUrl, Phase, compile};
use outgate_policy::{Denial, Environment, Problem, Request, Scheme};

use super::Findings;

/// What is wrong with it, under each of these environments.
pub(super) fn check(text: &str, environments: &[&Environment]) -> Findings {
    match compile(text) {
        Ok(compiled) => {
            let mut problems = compiled.problems;
            problems.extend(refused(&compiled.file, environments));
            Findings::of(problems, compiled.warnings)
        }
        Err(unreadable) => Findings::of(unreadable.problems, Vec::new()),
    }
}

/// The URLs that an environment refuses.
fn refused(file: &HookFile, environments: &[&Environment]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (place, url) in urls(file) {
        for environment in environments {
            if let Err(denial) = judge(url, environment) {
                let message = format!("environment {}: {denial}", environment.id);
                problems.push(Problem::new(place.as_str(), message));
            }
        }
    }
    problems
}

fn urls(file: &HookFile) -> impl Iterator<Item = (String, &HookUrl)> {
    file.groups.iter().flat_map(|group| {
        let rules = match &group.state {
            GroupState::Active(rules) => Some(rules),
            GroupState::Off | GroupState::Invalid { .. } => None,
        };
        let phases = [Phase::PreToolExecution, Phase::PostToolExecution];
        let rules = rules.into_iter().flat_map(move |rules| phases.map(|phase| rules.of(phase)));
        rules.flatten().flat_map(|rule| &rule.handlers).filter_map(|handler| {
            match &handler.action {
                Action::Http { url: Some(url), .. } => {
                    Some((format!("{}.{}.url", group.name.escape_debug(), handler.place), url))
                }
                Action::Http { url: None, .. } | Action::Command(_) => None,
            }
        })
    })
}

/// As the data path will judge it; its addresses are known only then.
fn judge(url: &HookUrl, environment: &Environment) -> Result<(), Denial> {
    let destination = url.destination();
    environment.policy.judge_tunnel(destination)?;
    let path = url.uri().path_and_query().map_or("/", |path| path.as_str());
    let request = Request { destination, scheme: Scheme::Https, method: "POST", path };
    environment.policy.judge_request(&request).map(drop)
}
